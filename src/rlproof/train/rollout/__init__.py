"""Completions for training: sampled here, by a server, or in several turns."""
