"""Designed inputs, one axis of the objective at a time, and what the script answers."""
