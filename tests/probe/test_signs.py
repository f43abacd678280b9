"""Whether a script works on negative log-probs, decided from the values of its own function."""

import pytest

from rlproof.bind.sandbox import Sandbox
from rlproof.probe.signs import has_negative_log_probs
from rlproof.read.script import read

LISTS = """\
import math

def token_logps(theta, rows, tokens):
    out = []
    for row, line in zip(rows, tokens):
        total = math.log(sum(math.exp(x) for x in theta[row]))
        out.append([{sign}(theta[row][t] - total) for t in line])
    return out
"""
NUMPY = """\
import numpy as np

def compute_logps(logits, labels):
    logits = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return {sign}np.take_along_axis(logits, labels[..., None], -1)[..., 0]
"""


@pytest.mark.parametrize("text", [LISTS, NUMPY], ids=["lists", "numpy"])
@pytest.mark.parametrize(("sign", "negative"), [("", False), ("-", True)])
def test_sign_is_read_from_values(tmp_path, text, sign, negative):
    """A log-probability is ≤ 0; positive numbers throughout are its negative."""
    assert answer(tmp_path, text.format(sign=sign)) is negative


@pytest.mark.parametrize(
    "text",
    [
        "def token_logps(theta, tokens, weird):\n    return 1.0\n",  # can't be called
        "def token_logps(theta, rows, tokens):\n    raise ValueError\n",
        "def token_logps(theta, rows, tokens):\n    return 'positive'\n",
        "def token_logps(theta, rows, tokens):\n    return []\n",
        "def loss(logp, advantages):\n    return 1.0\n",  # there is none
    ],
)
def test_nothing_is_said_without_values(tmp_path, text):
    assert answer(tmp_path, text) is False


def answer(folder, text):
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    script = read(str(path))
    with Sandbox(script.source) as sandbox:
        return has_negative_log_probs(script, sandbox)


@pytest.mark.parametrize(
    "text",
    [
        LISTS.replace("{sign}(theta", "math.exp(theta"),
        NUMPY.replace("{sign}np.take_along_axis(logits,", "np.take_along_axis(np.exp(logits),"),
    ],
    ids=["lists", "numpy"],
)
def test_probabilities_are_no_negative_log_probs(tmp_path, text):
    """They are positive as well, but each is nearer to p than to −log p."""
    assert "sign" not in text
    assert answer(tmp_path, text) is False
