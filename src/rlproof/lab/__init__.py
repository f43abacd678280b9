"""Exact enumeration on small tabular policies, and every claim of the defence as code.

Nothing is sampled: every sequence and every group of completions is visited with its
probability. NumPy only.
"""
