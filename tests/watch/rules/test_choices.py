"""Rules beside a choice: small groups, several updates, no reference, natural ends are silent.

Each silent run has a neighbour, changed in one thing, that is not.
Shapes: B rows, T slots.
"""

import json

import numpy as np
import pytest

from rlproof.watch.command import inspect_path
from rlproof.watch.record import Recorder

B, T, EOS = 8, 24, 2


def recorded(path, *facts, steps=2, updates=1, **values):
    recorder = Recorder(path, every=1)
    for step in range(steps):
        for update in range(updates):
            recorder.record(step=step, update=update, **values)
    recorder.close()
    return {f.rule.code for f in inspect_path(str(path), facts).findings}


def logged(path, rows, *facts):
    path.write_text("".join(json.dumps({"step": n, **row}) + "\n" for n, row in enumerate(rows)))
    return {f.rule.code: str(f.severity) for f in inspect_path(str(path), facts).findings}


@pytest.mark.parametrize(
    ("size", "dead", "reward", "said"),
    [
        (2, 0.7, 0.18, True),  # 0.18² + 0.82² = 0.705, of eight 0.82⁸ = 0.204
        (8, 0.7, 0.18, False),  # no small group
        (4, 0.45, 0.18, False),  # 0.82⁴ = 0.45 is less than half
        (2, 0.98, 0.01, False),  # of eight 0.92: hard prompts, not small groups
        (2, 0.95, 0.3, False),  # chance would be 0.58: something else makes them equal
        (2, 0.7, -0.18, False),  # no share of successes
    ],
)
def test_small_groups_are_a_note_where_chance_explains_them(tmp_path, size, dead, reward, said):
    rows = [{"reward": reward, "zero_std_frac": dead}] * 12
    found = logged(tmp_path / "a.jsonl", rows, f"group_size={size}")
    assert found.get("LOG016") == ("note" if said else None)


@pytest.mark.parametrize(("kl", "said"), [(0.01, False), (900.0, False), (2e4, True)])
def test_a_large_divergence_is_not_an_explosion(tmp_path, kl, said):
    found = logged(tmp_path / "a.jsonl", [{"kl": 0.01}, {"kl": kl}, {"kl": 0.02}])
    assert ("LOG017" in found) == said


@pytest.mark.parametrize(
    ("facts", "updates", "said"),
    [(("updates=4",), 4, False), ((), 4, False), (("updates=3",), 4, True)],
)
def test_several_updates_are_a_choice_until_they_are_declared(tmp_path, facts, updates, said):
    old = -np.random.default_rng(0).uniform(0.2, 2, (B, T))
    found = recorded(
        tmp_path / "a.jsonl", *facts, updates=updates, new_logps=old, old_logps=old
    )  # fmt: skip
    assert ("STP024" in found) == said


def ends(last):
    """Rows that reach the limit, with an end token in the last slot of these log-probs."""
    rng = np.random.default_rng(1)
    tokens, logps = rng.integers(3, 900, (B, T)), -rng.uniform(0.1, 2, (B, T))
    tokens[:, -1], logps[:, -1] = EOS, last
    return {"tokens": tokens, "new_logps": logps, "mask": np.ones((B, T))}


@pytest.mark.parametrize(("last", "said"), [(-11.0, True), (-2.5, False), (-0.1, False)])
def test_ends_that_the_policy_may_have_chosen_are_silent(tmp_path, last, said):
    """Eight ends of −2.5 nats have a joint probability of 2e-9, but each one is none of a kind."""
    found = recorded(tmp_path / "a.jsonl", "eos=2", f"longest={T}", **ends(last))
    assert ("STP023" in found) == said


def test_an_end_token_outside_of_the_mask_is_silent(tmp_path):
    values = ends(-11.0)
    values["mask"][:, -1] = 0
    assert "STP023" not in recorded(tmp_path / "a.jsonl", "eos=2", f"longest={T}", **values)


@pytest.mark.parametrize(
    ("facts", "said"), [((), True), (("beta=0",), False), (("beta=0.1",), True)]
)
def test_a_reference_of_zeros_that_nothing_uses_is_silent(tmp_path, facts, said):
    new = -np.random.default_rng(2).uniform(0.2, 2, (B, T))
    values = {"new_logps": new, "old_logps": new, "ref_logps": np.zeros((B, T))}
    assert ("STP025" in recorded(tmp_path / "a.jsonl", *facts, **values)) == said


def test_a_reference_that_is_sure_where_the_policy_is_too_is_silent(tmp_path):
    new = np.full((B, T), -1e-4)
    values = {"new_logps": new, "old_logps": new, "ref_logps": np.zeros((B, T))}
    assert "STP025" not in recorded(tmp_path / "a.jsonl", **values)


@pytest.mark.parametrize(("gap", "said"), [(20.0, True), (5.0, False)])
def test_one_token_of_many_is_off_by_more_than_rounding(tmp_path, gap, said):
    """One of 1,600 tokens: a mean of 20/1600 = 0.0125, and a share of 0.06 %, are both allowed."""
    new = -np.random.default_rng(3).uniform(0.2, 2, (8, 200))
    old = new.copy()
    old[2, 190] -= gap
    assert ("STP005" in recorded(tmp_path / "a.jsonl", new_logps=new, old_logps=old)) == said
