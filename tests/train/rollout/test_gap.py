"""The gap of two engines, against numbers worked out by hand."""

import math

import pytest

torch = pytest.importorskip("torch")

from rlproof.errors import ConfigError  # noqa: E402
from rlproof.train.rollout.gap import measure  # noqa: E402
from rlproof.watch.vocabulary import load  # noqa: E402


def logs(*rows):
    return torch.tensor(rows, dtype=torch.float64).log()


def test_two_tokens_by_hand():
    """π_sampler = ½, ⅕ and π_trainer = ¼, ½: |log| = log 2, log 2.5; ρ = ½ and 2.5, of which 2.5
    is outside [0.5, 2]; k3 = ρ − 1 − log ρ = −½ + log 2 and 1.5 − log 2.5."""
    gap = measure(logs([0.5, 0.2, 0.9]), logs([0.25, 0.5, 0.1]), torch.tensor([[1, 1, 0]]))
    assert gap.mean == pytest.approx((math.log(2) + math.log(2.5)) / 2)
    assert gap.largest == pytest.approx(math.log(2.5))
    assert gap.kl == pytest.approx((-0.5 + math.log(2) + 1.5 - math.log(2.5)) / 2)
    assert (gap.outside, gap.tokens) == (0.5, 2)


def test_k3_estimates_the_divergence_from_the_sampler():
    """Over all tokens weighed by π_sampler, k3 is KL(π_sampler ‖ π_trainer) exactly: 10 tokens
    drawn as often as π_sampler = (0.7, 0.3) says, π_trainer = (0.4, 0.6)."""
    sampler, trainer = logs([0.7] * 7 + [0.3] * 3), logs([0.4] * 7 + [0.6] * 3)
    expected = 0.7 * math.log(0.7 / 0.4) + 0.3 * math.log(0.3 / 0.6)
    assert measure(sampler, trainer, torch.ones(1, 10)).kl == pytest.approx(expected)


def test_slots_outside_the_mask_may_hold_anything():
    sampler = torch.tensor([[-1.0, math.nan, -math.inf]])
    gap = measure(sampler, torch.full((1, 3), -1.0), torch.tensor([[1, 0, 0]]))
    assert (gap.mean, gap.largest, gap.kl, gap.outside, gap.tokens) == (0, 0, 0, 0, 1)
    assert measure(sampler, sampler, torch.zeros(1, 3)).tokens == 0


def test_the_band_is_the_callers():
    sampler, trainer, mask = logs([0.5, 0.5]), logs([0.4, 0.6]), torch.ones(1, 2)
    assert measure(sampler, trainer, mask).outside == 0
    assert measure(sampler, trainer, mask, band=(0.9, 1.5)).outside == 0.5


def test_metrics_have_the_names_of_the_dictionary():
    found = measure(logs([0.5]), logs([0.4]), torch.ones(1, 1), behind=2).metrics()
    assert {"sampler-logprob-gap", "sampler-kl"} <= {m.name for m in load().metrics} & set(found)
    assert found["sampler-behind"] == 2


def test_wrong_input_is_named():
    ones = torch.ones(1, 2)
    with pytest.raises(ConfigError, match="one shape"):
        measure(ones, ones, torch.ones(2, 1))
    with pytest.raises(ConfigError, match=r"band is \(2, 1\)"):
        measure(ones, ones, ones, band=(2, 1))
