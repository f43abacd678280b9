"""What a training run writes down, and what can be proved from it alone."""
