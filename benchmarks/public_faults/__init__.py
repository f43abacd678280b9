"""Public bug reports as small scripts, logs and records of our own, and what rlproof says."""
