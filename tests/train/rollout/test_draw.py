"""One draw: which token, with which log-prob."""

import math

import pytest

torch = pytest.importorskip("torch")

from rlproof.train.rollout.draw import BLOCK, draw, inverse_cdf, probabilities  # noqa: E402
from rlproof.train.sampling import Sampling  # noqa: E402

# The page of SMP001: 0.6, 0.3, 0.1.
LOGITS = torch.tensor([[0.6, 0.3, 0.1]]).log()


@pytest.mark.parametrize("vocabulary", [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_a_grid_of_uniforms_gives_the_probabilities(vocabulary):
    """u = (i + ½)/N for all i hits a token ⌊pN⌋ or ⌈pN⌉ times, plus one for each rounded edge."""
    count = 20_000
    generator = torch.Generator().manual_seed(vocabulary)
    probs = (3 * torch.randn(vocabulary, generator=generator)).softmax(0)
    grid = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    drawn = inverse_cdf(probs.expand(count, -1), grid)
    hits = torch.bincount(drawn, minlength=vocabulary)
    assert (hits - count * probs).abs().max() <= 2
    assert (drawn.diff() >= 0).all()  # the distribution function is monotonous


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
def test_a_token_of_probability_zero_is_never_drawn(uniform):
    probs = torch.zeros(2, 2 * BLOCK + 3)
    probs[0, BLOCK + 1], probs[1, [0, BLOCK]] = 1.0, 0.5
    drawn = inverse_cdf(probs, torch.full((2,), uniform, dtype=torch.float64))
    assert drawn.tolist() == [BLOCK + 1, 0 if uniform < 0.5 else BLOCK]


def test_rare_tokens_are_reached_beyond_float32():
    """One half in one token, the other in 2¹⁶ of 2⁻¹⁷ each: u = ½ + 2⁻¹⁷(k + ½) is the k-th.

    A float32 distribution function near 1 has steps of 2⁻²⁴, u itself needs 18 bits more."""
    probs = torch.full((4, 2**16 + 1), 2.0**-17)
    probs[:, 0] = 0.5
    k = torch.tensor([0, 1, 40_000, 65_535])
    uniforms = 0.5 + 2.0**-17 * (k.double() + 0.5)
    assert inverse_cdf(probs, uniforms).tolist() == (k + 1).tolist()


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        ({}, [0.6, 0.3, 0.1]),
        ({"top_p": 0.8}, [2 / 3, 1 / 3, 0]),
        ({"top_p": 0.5}, [1, 0, 0]),
        ({"top_k": 2}, [2 / 3, 1 / 3, 0]),
        ({"top_k": 9}, [0.6, 0.3, 0.1]),
        ({"min_p": 0.4}, [2 / 3, 1 / 3, 0]),
        ({"top_k": 2, "top_p": 0.65}, [1, 0, 0]),  # after top_k the first has 2/3
        ({"temperature": 0.5}, [36 / 46, 9 / 46, 1 / 46]),  # squares, renormalised
    ],
)
def test_cuts_by_hand(cut, left):
    sampling = Sampling(**cut)
    assert probabilities(LOGITS, sampling)[0].tolist() == pytest.approx(left, abs=1e-6)
    tokens, logps = draw(LOGITS, torch.zeros(1, dtype=torch.float64), sampling)
    assert tokens.tolist() == [0]
    assert logps.item() == pytest.approx(math.log(left[0]), abs=1e-6)


def test_greedy_is_the_likeliest_with_probability_one():
    tokens, logps = draw(LOGITS.flip(1), torch.tensor([0.9]), Sampling(temperature=0))
    assert (tokens.tolist(), logps.tolist()) == ([2], [0.0])


@pytest.mark.parametrize("temperature", [0, 1])
def test_logits_that_are_not_numbers_show(temperature):
    logits = torch.tensor([[0.0, math.nan], [0.0, 1.0]])
    _, logps = draw(logits, torch.zeros(2, dtype=torch.float64), Sampling(temperature=temperature))
    assert logps.isnan().tolist() == [True, False]
