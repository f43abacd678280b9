"""Roles from docstrings and annotations, for names that say nothing."""

import ast

import pytest

from rlproof.read.descriptions import described
from rlproof.read.names import Slot, objective_slot

GOOGLE = '''
def f(a, b, c, d, e=0.2):
    """Clipped surrogate.

    Args:
        a: log-probs of the current policy, (B, T).
        b (Tensor): log-likelihoods under the behaviour policy.
        c: advantages, made from the rewards of a group.
        d: 1 for completion tokens.
        e: clip range.
    """
'''
SPHINX = '''
def f(a, b, c, d):
    """Loss.

    :param a: log-probabilities of the policy
    :param Tensor b: reference log-probabilities
    :param c: advantages
    :param d: loss mask
    """
'''
NUMPY = '''
def f(x, y):
    """Loss.

    Parameters
    ----------
    x : ndarray
        Log-probs under the policy that generated the batch.
    y : ndarray
        Advantages.
    """
'''
ONE_LINE = '''
def f(a, c, w):
    """REINFORCE. a: logprobs, c: advantages, w: weight of the KL"""
'''
TYPED = """
def f(x: OldLogProbs, y: types.Advantages, z: AdvantageConfig, w: Tensor): pass
"""
TWICE = '''
def f(x, y):
    """x: log-probs, y: log-probs"""
'''
NAMED = '''
def f(old_logps, ratio):
    """
    old_logps: advantages
    ratio: difference of log-probs
    """
'''
SAMPLED = '''
def f(a, b, c):
    """
    a: log-probs of the sampled tokens under the current policy
    b: local log-probs, only a shape reference
    c: log-probs of the generated tokens under the reference model
    """
'''
NEW, OLD, REF, ADV = Slot.NEW, Slot.OLD, Slot.REF, Slot.ADVANTAGES
FUNCTIONS = {
    GOOGLE: {"a": NEW, "b": OLD, "c": ADV, "d": Slot.MASK, "e": Slot.CLIP},
    SPHINX: {"a": NEW, "b": REF, "c": ADV, "d": Slot.MASK},
    NUMPY: {"x": OLD, "y": ADV},
    ONE_LINE: {"a": NEW, "c": ADV, "w": Slot.BETA},
    TYPED: {"x": OLD, "y": ADV},  # a settings class is no array
    TWICE: {},  # which of the two is the new one is not said
    SAMPLED: {"c": REF},  # two that could be the new ones: neither is
    NAMED: {},  # a name that speaks wins, and a difference is no log-prob
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_described(text):
    assert described(ast.parse(text).body[0], objective_slot) == FUNCTIONS[text]
