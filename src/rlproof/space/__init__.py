"""The space of GRPO-family objectives: one module per axis, pure functions, published values.

Faulty values of the same axes live with their faults, in `rlproof.faults`.
"""
