"""Rules for logs, recorded steps and rollout dumps: one file each, with its page beside it."""
