"""DAT001: what is known of a row goes to that row."""

import pytest
from tests.support.rehearsing import rehearse
from tests.support.sampling import one_in

EPOCHS = """
import torch

def learn(policy, batch, optimizer, epochs=2, size=8):
    ids, adv = batch["ids"], ADVANTAGES
    for _ in range(epochs):
        order = torch.randperm(len(ids))
        for rows in order.split(size):
            logps = policy.log_probs(ids[rows])
            ratio = torch.exp(logps - logps.detach())
            loss = -(ratio * adv[PICKED].view(-1, 1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
WHITE = '(batch["advantages"] - batch["advantages"].mean()) / (batch["advantages"].std() + 1e-8)'


def epochs(picked, advantages='batch["advantages"]'):
    return EPOCHS.replace("PICKED", picked).replace("ADVANTAGES", advantages)


@pytest.mark.parametrize("advantages", one_in(99, ['batch["advantages"]', WHITE]))
def test_two_permutations_give_a_row_the_advantage_of_another(tmp_path, advantages):
    pytest.importorskip("torch")
    text = epochs("torch.randperm(len(ids))[: len(rows)]", advantages)
    found = rehearse(tmp_path, text, "DAT001", "learn")
    assert found.holds is False
    assert found.evidence.expected == [5.0, 14.0]
    assert set(found.evidence.got) - {5.0, 14.0}


@pytest.mark.slow
@pytest.mark.parametrize("advantages", ['batch["advantages"]', WHITE])
def test_one_permutation_keeps_it_with_whitening_too(tmp_path, advantages):
    """Whitening moves all other advantages, by the same whichever row is marked."""
    pytest.importorskip("torch")
    assert rehearse(tmp_path, epochs("rows", advantages), "DAT001", "learn").holds is True


@pytest.mark.slow
def test_whitening_inside_a_step_keeps_it(tmp_path):
    """A step with one of the two marked rows says nothing; rows 5 and 8, 0 and 23 may share one."""
    pytest.importorskip("torch")
    text = epochs("rows").replace(
        "adv[rows].view(-1, 1)", "(adv[rows] - adv[rows].mean()).view(-1, 1)"
    )
    assert rehearse(tmp_path, text, "DAT001", "learn").holds is not False


FILTER = """
def keep_spread(batch, group_size):
    groups = batch["reward"].view(-1, group_size)
    keep = (groups.std(dim=1) > 0).repeat_interleave(group_size)
    kept = {k: v[keep] for k, v in batch.items()}
    kept["reward"] = REWARDS
    return kept
"""


@pytest.mark.slow
def test_a_filter_that_cuts_one_column_is_shown(tmp_path):
    pytest.importorskip("torch")
    text = FILTER.replace("REWARDS", 'batch["reward"][: int(keep.sum())]')
    found = rehearse(tmp_path, text, "DAT001", "keep_spread")
    assert found.holds is False
    assert "entry of `reward`" in found.evidence.input


@pytest.mark.slow
@pytest.mark.parametrize("made", ['batch["reward"][keep]', 'batch["reward"][keep] * 2 + 1'])
def test_a_filter_that_picks_or_computes_anew_is_not(tmp_path, made):
    pytest.importorskip("torch")
    found = rehearse(tmp_path, FILTER.replace("REWARDS", made), "DAT001", "keep_spread")
    assert found.holds is not False
    assert found.holds is True or "no columns" in found.reason
