"""How many rows a micro-batch has, where bounds of slices are all that says so."""

import pytest
from tests.support.checking import check_text, strong

LOOP = """\
import torch


def update(policy, optimizer, rollout, size=2, eps=0.2):
    count = len(rollout.ids)
    tokens = rollout.mask.sum()
    for k in range({times}):
        {first}
        mask = rollout.mask[{cut}]
        logps = policy(rollout.ids[{cut}])
        ratio = torch.exp(logps - rollout.old[{cut}])
        terms = -ratio * rollout.advantages[{cut}, None]
        loss = {loss}
        loss.backward()
    optimizer.step()
"""
MEAN = "(terms * mask).sum() / mask.sum()"


@pytest.mark.parametrize(
    ("first", "cut", "loss", "expected"),
    [
        ("at = k * size", "at : at + size", MEAN, ["AGG001"]),
        ("pass", "k * 3 : (k + 1) * 3", MEAN, ["AGG001"]),
        ("pass", "k * size : size * (k + 1)", MEAN, ["AGG001"]),
        ("pass", "k : k + 1", MEAN, []),  # one row: the mean over rows
        ("pass", "k * rollout.size : (k + 1) * rollout.size", MEAN, []),  # not fixed
        ("pass", "k * size : k * size + k", MEAN, []),  # not the same in each round
        ("pass", "0 : 2", MEAN, []),  # no rows that move with the loop
        ("pass", "k * size : (k + 1) * size", "(terms * mask).sum() / tokens", []),
        ("pass", "k * size : (k + 1) * size", f"{MEAN} * len(mask) / count", ["AGG001"]),
        ("pass", "k : k + 1", f"{MEAN} * len(mask) / count", []),
        ("at = rollout.size * k", "at : at + rollout.size", f"{MEAN} * (len(mask) / count)",
         ["AGG001"]),
    ],
)  # fmt: skip
def test_rows_of_a_micro_batch(tmp_path, first, cut, loss, expected):
    pytest.importorskip("torch")
    text = LOOP.format(times="4", first=first, cut=cut, loss=loss)
    assert strong(check_text(tmp_path, text)) == expected


def test_unknown_sizes_weighted_by_rows_are_a_warning(tmp_path):
    pytest.importorskip("torch")
    cut = "k * rollout.size : (k + 1) * rollout.size"
    text = LOOP.format(times="4", first="pass", cut=cut, loss=f"{MEAN} * len(mask) / count")
    [finding] = [f for f in check_text(tmp_path, text).findings if f.code == "AGG001"]
    assert finding.severity == "warning"
