"""From a recognised function to something that can be called: a sandboxed child process."""
