"""Facts about a training loop from its syntax tree alone: nothing is run."""
