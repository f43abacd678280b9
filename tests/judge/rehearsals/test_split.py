"""AGG001: how rows are dealt out to micro-batches does not matter."""

import pytest
from tests.support.rehearsing import rehearse

LOOP = """
def update(policy, batch, optimizer, micro=4):
    ids, mask, adv = batch["ids"], batch["mask"], batch["advantages"]
    total = mask.sum()
    optimizer.zero_grad()
    for start in range(0, len(ids), micro):
        rows = slice(start, start + micro)
        logps = policy.log_probs(ids[rows])
        terms = -(logps - logps.detach()).exp() * adv[rows].view(-1, 1) * mask[rows]
        loss = LOSS
        loss.backward()
    optimizer.step()
"""
TRAINER = """
class Learner:
    def __init__(self, actor, optimizer):
        self.actor, self.optimizer = actor, optimizer

    def step(self, rollout):
        parts = list(zip(rollout["ids"].chunk(6), rollout["loss_mask"].chunk(6),
                         rollout["advantages"].chunk(6)))
        count = sum(m.sum() for _, m, _ in parts)
        for tokens, keep, gain in parts:
            terms = self.actor.log_probs(tokens) * gain.unsqueeze(-1) * keep
            (-terms.sum() / DIVISOR).backward()
        self.optimizer.step()
"""
PER_MICRO = "terms.sum() / mask[rows].sum() * micro / len(ids)"


def test_a_mean_inside_micro_batches_depends_on_how_they_are_cut(tmp_path):
    pytest.importorskip("torch")
    found = rehearse(tmp_path, LOOP.replace("LOSS", PER_MICRO), "AGG001", "update")
    assert found.holds is False
    one, other = found.evidence.got
    assert one != other
    assert found.evidence.expected == [one, one]
    bad = TRAINER.replace("DIVISOR", "keep.sum() / 6")
    assert rehearse(tmp_path, bad, "AGG001", "Learner.step").holds is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        "terms.sum() / total",
        "terms.sum() / (16 * len(ids))",  # a constant
        "(terms.sum(1) / mask[rows].sum(1)).sum() / len(ids)",  # the mean of each row first
    ],
)
def test_published_aggregations_keep_it(tmp_path, loss):
    pytest.importorskip("torch")
    assert rehearse(tmp_path, LOOP.replace("LOSS", loss), "AGG001", "update").holds is True


@pytest.mark.slow
def test_a_class_with_one_divisor_keeps_it(tmp_path):
    pytest.importorskip("torch")
    good = TRAINER.replace("DIVISOR", "count")
    assert rehearse(tmp_path, good, "AGG001", "Learner.step").holds is True


@pytest.mark.slow
def test_one_micro_batch_says_nothing(tmp_path):
    pytest.importorskip("torch")
    text = LOOP.replace("LOSS", PER_MICRO).replace("micro=4", "micro=24")
    found = rehearse(tmp_path, text, "AGG001", "update")
    assert (found.holds, found.reason) == (
        None, "its first step has one micro-batch, with nothing to deal out",
    )  # fmt: skip
