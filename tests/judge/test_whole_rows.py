"""Rows that are masked as a whole in measures, and losses that take squares only."""

import pytest
from tests.support.checking import check_text

LOSS = """
import torch


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * mask).sum() / mask.sum().clamp(min=1)


def levels(token_mask, sample_mask):
    return token_mask * sample_mask.unsqueeze(-1)


def mean_entropy(logits, mask):
    logps = torch.log_softmax(logits, -1)
    entropy = -(logps.exp() * logps).sum(-1)
    return ((entropy * mask).sum(1) / mask.sum(1)).mean()
"""
SQUARES = """
import torch


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    log_ratio = logps - old_logps
    moved = -((log_ratio.detach() * mask).sum(1) / mask.sum(1)).unsqueeze(1)
    keep = ~((advantages < 0) & (moved > 0.5))
    ratio = torch.exp(log_ratio)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -((gain * keep * mask).sum(1) / mask.sum(1)).mean()
"""


def strong(tmp_path, text):
    pytest.importorskip("torch")
    return [f.code for f in check_text(tmp_path, text).findings if f.severity != "note"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", ["AGG005"]),
        ("mask.sum(1)).mean()", "mask.sum(1).clamp(min=1)).mean()", []),
        ("sample_mask", "other_mask", []),  # a product of two masks of tokens takes no row out
        ("return ((entropy * mask).sum(1) / mask.sum(1)).mean()",
         "return (entropy * mask).sum() / mask.sum()", []),
    ],
)  # fmt: skip
def test_a_measure_of_a_batch_with_an_empty_row(tmp_path, old, new, expected):
    assert strong(tmp_path, LOSS.replace(old, new) if old else LOSS) == expected


def test_a_row_that_meets_columns_is_found_beside_a_loss_that_takes_squares(tmp_path):
    assert strong(tmp_path, SQUARES) == ["SUR017"]
    assert strong(tmp_path, SQUARES.replace("advantages < 0", "adv < 0").replace(
        "    log_ratio", "    adv = advantages.unsqueeze(1)\n    log_ratio", 1)) == []  # fmt: skip
