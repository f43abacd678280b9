"""Logs and dumps of training runs as one stream of items."""
