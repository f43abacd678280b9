"""Candidate edits, one file per subject; `rlproof.repair.candidates` says which fault has which."""
