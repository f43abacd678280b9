"""The tabular run against `tiny.train`, and against differences of each published loss."""

import json
import random

import numpy as np
import pytest

from rlproof import tiny
from rlproof.errors import ConfigError
from rlproof.space.published import OBJECTIVES
from rlproof.train.tabular import Run, Sampled, Settings, entropy, rule_of, spread
from rlproof.watch.record import Recorder


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({}, {}),
        ({"steps": 7, "seed": 3, "group_size": 5, "epochs": 3}, {}),
        ({"steps": 9, "lr": 8.0}, {"clip_eps": 0.05, "beta": 0.3}),
    ],
)
def test_it_is_the_tiny_trainer_to_the_bit(settings, same):
    run = Run(Settings(**settings, **same))
    history = [{k: h[k] for k in ("reward", "clip_frac")} for h in run.steps()]
    assert (run.theta, history) == tiny.train(**settings, **same)


def test_metrics_of_the_first_step_by_hand():
    # The policy is uniform and equal to the reference: entropy log 4, no KL, ρ = 1, and with
    # ρ = 1 the loss is −Σ_t A / N over the tokens. The batch is drawn again from the same seed.
    first = next(Run(Settings(steps=1)).steps())
    theta = [[0.0] * 4 for _ in range(4)]
    _, _, mask, rewards = tiny.rollout(theta, range(4), 8, 5, random.Random(0))
    adv = np.array(tiny.group_advantages(rewards, 8))
    lengths = np.array(mask).sum(1)
    assert first["entropy"] == pytest.approx(np.log(4))
    assert first["kl"] == pytest.approx(0, abs=1e-15)
    assert first["length"] == pytest.approx(lengths.mean())
    assert first["loss"] == pytest.approx(-(adv * lengths).sum() / lengths.sum())
    assert first["reward_std"] == pytest.approx(np.std(rewards))
    assert first["adv_std"] == pytest.approx(adv.std())
    assert (first["adv_max"], first["adv_min"]) == (adv.max(), adv.min())
    assert first["zero_std_frac"] == np.mean(
        [len(set(rewards[i : i + 8])) == 1 for i in (0, 8, 16, 24)]
    )


def test_entropy_and_spread():
    # (1/2, 1/4, 1/8, 1/8): 1/2·1 + 1/4·2 + 2·1/8·3 = 1.75 bits. Spread of 0 and 2 is 1.
    assert entropy([np.log(p) for p in (0.5, 0.25, 0.125, 0.125)]) == pytest.approx(
        1.75 * np.log(2)
    )
    assert spread([0.0, 2.0]) == 1.0


def moved_batch(seed):
    """A batch of a policy that is not the one trained, nor the reference."""
    rng = random.Random(seed)
    theta, old, ref = (
        [[rng.uniform(-0.1, 0.1) for _ in range(4)] for _ in range(4)] for _ in "abc"
    )
    rows, tokens, mask, rewards = tiny.rollout(old, range(4), 4, 5, rng)
    logps = (tiny.token_logps(table, rows, tokens) for table in (old, ref))
    return theta, Sampled(rows, tokens, mask, rewards, *logps)


SMOOTH = [  # objectives whose loss has the slope that is descended: nothing in them is stopped
    name
    for name, one in OBJECTIVES.items()
    if one.objective.surrogate in ("min-clip", "unclipped", "log-prob", "soft-gate", "dual-clip")
    and one.objective.ratio != "sequence-mean-token"
    and one.objective.rejection.action == one.objective.mismatch.action == "none"
]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_gradient_of_a_published_objective_is_the_slope_of_its_loss(name):
    # Ratios are within 20 % for logits within 0.1, so no token sits on the kink of the clip but
    # those of gspo's and gmpo's narrow ones, which h = 1e-6 misses with this seed.
    theta, batch = moved_batch(5)
    rule = rule_of(Settings(objective=name, group_size=4))
    adv = rule.advantages(batch)

    def loss(th):
        return rule.loss(tiny.token_logps(th, batch.rows, batch.tokens), batch, adv)

    found = np.array(rule.gradient(theta, batch, adv))
    assert np.abs(found).max() > 1e-3
    assert found == pytest.approx(np.array(tiny.numeric_grad(loss, theta, 1e-6)), abs=1e-7)


def test_smooth_objectives_are_most_of_them():
    assert {"grpo", "dapo", "dr_grpo", "gspo", "rloo", "gmpo", "sapo"} <= set(SMOOTH)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_published_objective_learns(name):
    # The lowest of 60 steps at the defaults is dr_grpo, .869, which divides by 5 tokens a row.
    run = Run(Settings(objective=name))
    first, *_ = list(run.steps())
    assert run.expected_reward > 0.85
    assert first["reward"] == pytest.approx(0.17604166666666668)  # drawn as by `tiny.train`


def test_a_recorded_step_holds_what_it_was_computed_from(tmp_path):
    path = tmp_path / "steps.jsonl"
    recorder = Recorder(path, every=2)
    list(Run(Settings(steps=3), recorder).steps())
    recorder.close()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["step"], row.get("update")) for row in rows] == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert rows[0]["facts"]["clip_low"] == 0.2
    assert {"advantages", "mask", "new_logps", "old_logps", "ref_logps"} <= set(rows[0]["arrays"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "--steps is 0, expected 1 or more"),
        ({"group_size": 0}, "--group-size is 0"),
        ({"epochs": 0}, "--epochs is 0"),
        ({"lr": 0.0}, "--lr is 0.0, expected a number above 0"),
        ({"lr": float("nan")}, "--lr is nan"),
        ({"clip_eps": -0.1}, "--clip-eps is -0.1"),
        ({"beta": float("inf")}, "--beta is inf"),
        ({"objective": "dapo", "beta": 0.1}, "dapo has its own"),
        ({"objective": "gpro"}, "did you mean"),
        ({"objective": "zzz"}, "expected a published one: grpo, dapo"),
        ({"lr": 1e308}, "step 1: the logits left the range of floats at --lr 1e.308; lower"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(ConfigError, match=message):
        list(Run(Settings(**settings)).steps())
