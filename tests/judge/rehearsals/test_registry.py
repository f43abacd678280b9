"""A rehearsal that can't be made says why, ends in time, and says the same twice."""

import pytest
from tests.support.rehearsing import rehearse

from rlproof.faults.registry import catalogue
from rlproof.judge.rehearsals.registry import IDENTITIES

UPDATE = """
def update(policy, batch, optimizer):
    loss = -(policy.log_probs(batch["ids"]) * batch["advantages"].view(-1, 1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_every_identity_is_of_a_fault_and_says_what_it_is():
    assert set(IDENTITIES) <= set(catalogue())
    assert all(identity.says for identity in IDENTITIES.values())


def test_a_fault_without_an_identity_is_refused(tmp_path):
    found = rehearse(tmp_path, UPDATE, "SUR001", "update")
    assert (found.holds, found.reason) == (None, "no identity is known that it would violate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "name", "why"),
    [
        ('batch["ids"]', 'batch["zebra"]', "update", "could stand in for `zebra`"),
        ("policy.log_probs", "policy.galaxy", "update", "the policy has no `galaxy`"),
        ("optimizer.step()", "optimizer.step(); 1 / 0", "update", "ZeroDivisionError"),
        ("optimizer.step()", "open('x', 'w')", "update", "stand-ins"),
        ("", "", "elsewhere", "no function that can be called from outside"),
    ],
)
def test_what_the_stage_lacks_is_named(tmp_path, old, new, name, why):
    pytest.importorskip("torch")
    found = rehearse(tmp_path, UPDATE.replace(old, new) if old else UPDATE, "DAT001", name)
    assert found.holds is None
    assert why in found.reason
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_function_that_does_not_end_is_stopped(tmp_path):
    pytest.importorskip("torch")
    text = UPDATE.replace("optimizer.step()", "optimizer.step()\n    while True: pass")
    found = rehearse(tmp_path, text, "DAT001", "update", seconds=3.0)
    assert found.holds is None
    assert "3 s" in found.reason


@pytest.mark.slow
def test_an_endless_loop_of_steps_has_shown_enough(tmp_path):
    pytest.importorskip("torch")
    body = UPDATE.replace("    loss =", "    while True:\n     loss =").replace("\n    ", "\n     ")
    text = body.replace("\n     while True:\n      loss", "\n    while True:\n     loss")
    assert rehearse(tmp_path, text, "DAT001", "update").holds is True


@pytest.mark.slow
def test_the_same_twice(tmp_path):
    pytest.importorskip("torch")
    text = UPDATE.replace('["advantages"].view', '["advantages"].flip(0).view')
    one, other = (rehearse(tmp_path, text, "DAT001", "update") for _ in range(2))
    assert one == other
    assert one.holds is False
