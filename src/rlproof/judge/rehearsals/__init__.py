"""Identities that a right training loop keeps, each checked by executing it with stand-ins.

A function of the script is run in the sandbox; models, data, reward functions and optimizers are
stand-ins (`rlproof.bind.child.rehearsal`). What holds there holds for these inputs; an identity
that fails is a proof, one that holds is evidence.
"""
