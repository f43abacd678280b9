"""Rules for logs: what the examples of the pages leave open."""

import json

import numpy as np
import pytest

from rlproof.space.advantages import Advantage, advantages
from rlproof.watch.command import inspect_path
from rlproof.watch.rules.log003 import bound
from rlproof.watch.vocabulary import load


def found(path, rows, *facts):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {f.rule.code: str(f.severity) for f in inspect_path(str(path), facts).findings}


def rows_of(how, steps=12, groups=8, size=8, bessel=False, seed=0):
    """What a right trainer logs under one formula; every prompt has a difficulty of its own."""
    rng = np.random.default_rng(seed)
    for step in range(steps):
        chance = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], groups)
        rewards = (rng.random((groups, size)) < chance[:, None]).astype(float)
        adv = advantages(rewards.ravel(), size, how)
        dead = float((rewards.min(1) == rewards.max(1)).mean())
        yield {
            "step": step, "adv_mean": float(adv.mean()), "adv_std": float(adv.std(ddof=bessel)),
            "adv_max": float(adv.max()), "adv_min": float(adv.min()), "zero_std_frac": dead,
            "reward": float(rewards.mean()),
        }  # fmt: skip


POPULATION, SAMPLE = Advantage(), Advantage(scale="sample-std", eps=1e-4)
BATCH = Advantage("batch-mean", "batch-population-std")


@pytest.mark.parametrize("size", [2, 4, 16])
@pytest.mark.parametrize("bessel", [False, True])
@pytest.mark.parametrize(("how", "scale"), [(POPULATION, "population"), (SAMPLE, "sample")])
def test_right_advantages_keep_all_identities(tmp_path, how, scale, bessel, size):
    """Under either std, whichever std the logger uses, where only the recipe is declared."""
    rows = list(rows_of(how, size=size, bessel=bessel))
    assert found(tmp_path / "a.jsonl", rows, "objective=grpo") == {}
    assert found(tmp_path / "b.jsonl", rows) == {}
    if not bessel:
        facts = (f"scale={scale}-std", f"group_size={size}")
        assert found(tmp_path / "c.jsonl", rows, *facts) == {}


@pytest.mark.parametrize("facts", [("scale=population-std",), ("objective=grpo",),
                                   ("scale=sample-std",)])  # fmt: skip
def test_statistics_of_the_batch_break_them(tmp_path, facts):
    assert found(tmp_path / "a.jsonl", rows_of(BATCH), *facts)["LOG001"] == "error"


def test_statistics_of_the_batch_are_a_note_where_nothing_is_declared(tmp_path):
    assert found(tmp_path / "a.jsonl", rows_of(BATCH)) == {"LOG001": "note"}


@pytest.mark.parametrize("facts", [("scale=batch-population-std",), ("objective=reinforce++",)])
def test_and_silent_where_the_batch_is_declared(tmp_path, facts):
    assert found(tmp_path / "a.jsonl", rows_of(BATCH), *facts) == {}


@pytest.mark.parametrize("size", [2, 3, 8, 16])
@pytest.mark.parametrize("scale", ["population-std", "sample-std"])
def test_the_bound_is_reached_by_one_success_and_by_nothing_larger(size, scale):
    how = Advantage(scale=scale, eps=0.0)
    one = np.array([1.0] + [0.0] * (size - 1))
    assert advantages(one, size, how).max() == pytest.approx(bound(size, scale))
    rng = np.random.default_rng(0)
    for _ in range(200):
        rewards = rng.exponential(size=size) ** 3
        assert np.abs(advantages(rewards, size, how)).max() <= bound(size, scale) * (1 + 1e-12)


def test_an_entropy_bonus_explains_a_rest(tmp_path):
    rows = [
        {"loss": 0.5 + 0.04 * k - 0.01 * h, "policy_loss": 0.5, "kl": k, "entropy": h}
        for k, h in ((0.1, 1.0), (0.2, 0.7), (0.4, 0.9))
    ]
    assert found(tmp_path / "a.jsonl", rows, "beta=0.04") == {}
    assert found(tmp_path / "b.jsonl", rows, "beta=0.04", "entropy_coefficient=0.02") == {
        "LOG007": "warning"
    }


def test_a_subtracted_divergence_is_an_error(tmp_path):
    rows = [{"loss": 0.5 - 0.04 * k, "policy_loss": 0.5, "kl": k} for k in (0.1, 0.2)]
    assert found(tmp_path / "a.jsonl", rows, "beta=0.04") == {"LOG007": "error"}


def test_k1_may_be_negative(tmp_path):
    rows = [{"step": 0, "kl": -0.02}]
    assert found(tmp_path / "a.jsonl", rows) == {}
    assert found(tmp_path / "b.jsonl", rows, "estimator=k1") == {}
    assert found(tmp_path / "c.jsonl", rows, "estimator=k3") == {"LOG005": "error"}


def test_a_spread_over_tokens_is_at_most_a_note(tmp_path):
    """Long completions count more often: neither identity holds, and nothing is wrong."""
    rng, rows = np.random.default_rng(0), []
    for step in range(30):
        rewards = (rng.random((8, 8)) < rng.choice([0.0, 0.3, 0.7], (8, 1))).astype(float)
        adv, lengths = advantages(rewards.ravel(), 8, POPULATION), rng.integers(10, 400, 64)
        tokens = np.repeat(adv, lengths)
        dead = float((rewards.min(1) == rewards.max(1)).mean())
        rows.append({"step": step, "adv_mean": float(tokens.mean()),
                     "adv_std": float(tokens.std()), "zero_std_frac": dead})  # fmt: skip
    severities = found(tmp_path / "a.jsonl", rows, "scale=population-std")
    assert set(severities.values()) == {"note"}


def test_verl_s_mean_over_tokens_is_not_held_to_zero(tmp_path):
    rows = [{"critic/advantages/mean": 0.2, "critic/score/mean": 0.5, "actor/entropy": 1.0}]
    assert found(tmp_path / "a.jsonl", rows, "objective=grpo") == {}


@pytest.mark.parametrize("seed", range(20))
def test_a_noisy_reward_does_not_collapse(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows = [{"step": i, "reward": r} for i, r in enumerate(rng.normal(0.3, 0.1, 200))]
    assert found(tmp_path / "a.jsonl", rows) == {}


@pytest.mark.parametrize("seed", range(20))
def test_a_reward_that_wanders_upwards_does_not_collapse(tmp_path, seed):
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(0.004, 0.01, 200)) + rng.normal(0, 0.05, 200)
    rows = [{"step": i, "reward": r} for i, r in enumerate(walk)]
    assert found(tmp_path / "a.jsonl", rows) == {}


@pytest.mark.parametrize("framework", load().read)
@pytest.mark.parametrize("facts", [(), ("objective=grpo", "group_size=8", "vocabulary=50000")])
def test_a_framework_s_own_keys_raise_nothing(tmp_path, framework, facts):
    """Every key that the dictionary knows of it; what is a count or in percent may be large."""
    keys = {
        alias.key: 37.0 if "count" in alias.differs or "percent" in alias.differs else 0.25
        for metric in load().metrics
        for alias in metric.aliases
        if alias.framework == framework
    }
    keys |= {"adv_mean": 0.0} if framework == "Oat" else {}  # by row: 0.25 would be one too many
    rows = [{"step": step, **keys} for step in range(30)]
    assert found(tmp_path / "a.jsonl", rows, *facts) == {}
    assert inspect_path(str(tmp_path / "a.jsonl"), facts).framework == framework


def test_a_log_of_trl(tmp_path):
    """The keys of TRL 1.16 and transformers, with values of a run at its start and later."""
    history = [
        {
            "step": step, "epoch": 0.01 * step, "loss": 0.0 if step < 2 else 1e-4 * step,
            "grad_norm": 0.3, "learning_rate": 1e-6, "num_tokens": 1e5 * step,
            "completions/mean_length": 180.0, "completions/min_length": 20.0,
            "completions/max_length": 256.0, "completions/clipped_ratio": 0.4,
            "reward": 0.3 + 0.005 * step, "reward_std": 0.4, "frac_reward_zero_std": 0.25,
            "kl": 2e-4 * step, "entropy": 0.4, "policy_loss": -1e-8,
            "clip_ratio/low_mean": 0.0, "clip_ratio/low_min": 0.0, "clip_ratio/high_mean": 0.0,
            "clip_ratio/high_max": 0.0, "clip_ratio/region_mean": 0.0,
            "sampling/sampling_logp_difference/mean": 0.012,
            "sampling/importance_sampling_ratio/mean": 1.0,
        }
        for step in range(1, 41)
    ]  # fmt: skip
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history}))
    shown = inspect_path(str(path), ("objective=grpo", "updates=1", "group_size=8", "beta=0.04"))
    assert shown.findings == ()
    assert [f.rule.code for f in shown.normal] == ["QST002", "QST003"]
