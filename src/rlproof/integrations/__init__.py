"""Where other people's trainers meet rlproof: one module or package for each framework."""
