"""Source to targets: which functions play which part, and where each step is written."""
