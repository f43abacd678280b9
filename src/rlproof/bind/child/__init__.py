"""What runs inside the child process. Standard library only, so that it starts quickly."""
