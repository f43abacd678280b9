"""Suggested edits of the script, located on its syntax tree."""
