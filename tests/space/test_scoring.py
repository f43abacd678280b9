"""From logits to log-probs: by hand, and against the library of the caller."""

import numpy as np
import pytest

from rlproof.space.objective import Objective
from rlproof.space.scoring import log_probs


def test_by_hand():
    """Logits 0, ln 3 give probabilities 1/4 and 3/4; at temperature 1/2, 1/10 and 9/10."""
    logits = np.array([[[0.0, np.log(3)]] * 2])
    tokens = np.array([[0, 1]])
    assert np.exp(log_probs(logits, tokens)) == pytest.approx(np.array([[0.25, 0.75]]))
    cold = Objective(temperature=0.5).log_probs(logits, tokens)
    assert np.exp(cold) == pytest.approx(np.array([[0.1, 0.9]]))


def test_large_logits_do_not_overflow():
    logits = np.array([[[1e4, 0.0, -1e4]]])
    assert log_probs(logits, np.array([[0]]))[0, 0] == 0.0
    assert log_probs(logits, np.array([[1]]))[0, 0] == -1e4


def test_as_torch_computes_it():
    torch = pytest.importorskip("torch")
    source = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 5, generator=source, dtype=torch.float64)
    tokens = torch.randint(5, (2, 3), generator=source)
    expected = (logits / 0.7).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    found = log_probs(logits, tokens, 0.7)
    assert np.asarray(found) == pytest.approx(np.asarray(expected), rel=1e-12)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_above_0(temperature):
    with pytest.raises(ValueError, match=r"temperature = .*; expected a number above 0"):
        log_probs(np.zeros((1, 1, 2)), np.zeros((1, 1)), temperature)
