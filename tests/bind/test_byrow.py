"""Losses that take one number a row: old log-probs of whole rows, masks that drop rows."""

import pytest
from tests.support.checking import check_text, strong
from tests.support.sampling import one_in

from rlproof.bind.byrow import ByRow
from rlproof.read.names import Slot

torch = pytest.importorskip("torch")

SEQUENCE = """
import torch


def sequence_loss(logps, old_seq_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    new = {new}
    ratio = torch.exp(new - old_seq_logps)
    kept = ratio.clamp(1 - clip_eps, 1 + clip_eps)
    surrogate = torch.min(ratio * advantages, kept * advantages)
    gap = ref_logps - logps
    kl = ((gap.exp() - gap - 1) * mask).sum(1)
    return -surrogate.mean() + beta * kl.mean()
"""
ROWS = """
import torch


def loss_fn(logps, old_logps, advantages, {masks}, clip_eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages[:, None]
    low = torch.min(ratio * adv, ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv)
    per_row = (low * token_mask).sum(1) / token_mask.sum(1)
    return -(per_row * row_mask).mean()
"""


def test_the_number_of_a_row_is_made_of_its_real_tokens():
    rows, mask = [[-1.0, -2.0, -9.0], [-3.0, -9.0, -9.0]], [[1, 1, 0], [1, 0, 0]]
    assert ByRow(frozenset({Slot.OLD})).of(Slot.OLD, rows, mask) == [-3.0, -3.0]
    assert ByRow(frozenset({Slot.OLD}), "mean").of(Slot.OLD, rows, mask) == [-1.5, -3.0]
    assert ByRow(frozenset({Slot.OLD}), "total").of(Slot.OLD, rows, mask) == [-12.0, -21.0]
    assert ByRow(frozenset({Slot.OLD}), "average").of(Slot.OLD, rows, mask) == [-4.0, -7.0]
    assert ByRow(frozenset({Slot.OLD})).of(Slot.REF, rows, mask) is rows


@pytest.mark.parametrize(
    ("new", "level"),
    one_in(
        2,
        [
            ("(logps * mask).sum(1)", "sequence-sum"),
            ("(logps * mask).sum(1) / mask.sum(1)", "sequence-mean"),
        ],
    ),
)
def test_old_log_probs_of_rows_are_sums_or_means_as_the_new_ones_are(tmp_path, new, level):
    report = check_text(tmp_path, SEQUENCE.format(new=new))
    [target] = report.targets
    assert (strong(report), report.skipped) == ([], ())
    assert target.objective["level"] == level
    assert target.objective["divergence"] == "k3"
    assert target.objective["divergence_aggregation"] == "sequence-sum"


def test_a_sum_that_counts_padding_is_no_published_objective(tmp_path):
    report = check_text(tmp_path, SEQUENCE.format(new="logps.sum(1)"))
    assert report.targets[0].recipe is None
    assert "level" not in report.targets[0].objective
    assert [s.reason.partition(":")[0] for s in report.skipped] == ["unknown objective"]


@pytest.mark.parametrize("masks", ["token_mask, row_mask", "row_mask, token_mask"])
def test_one_of_two_masks_keeps_whole_rows(tmp_path, masks):
    report = check_text(tmp_path, ROWS.format(masks=masks))
    [target] = report.targets
    assert (strong(report), report.skipped) == ([], ())
    assert (target.recipe, target.objective["aggregation"]) == ("grpo", "sequence-mean")
