"""MSK004: the end of a completion is trained, what fills it up is not."""

import pytest
from tests.support.rehearsing import rehearse

LOOP = """
def train(model, tokenizer, loader, reward, optimizer):
    tokenizer.pad_token = tokenizer.eos_token
    for prompts in loader:
        width = 5
        ids = model.generate(prompts, do_sample=True, pad_token_id=tokenizer.pad_token_id)
        answers = ids[:, width:]
        MASK
        logps = model(ids).logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        logps = logps[:, width - 1 :]
        per = -(logps * reward(ids).view(-1, 1)) * mask
        loss = per.sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BY_END = "ended = (answers == tokenizer.eos_token_id).int(); mask = (ended.cumsum(1) - ended == 0)"
BY_LENGTH = """import torch
        length = torch.tensor([r.index(2) + 1 if 2 in r else len(r) for r in answers.tolist()])
        mask = (torch.arange(answers.shape[1]) < length[:, None]).float()"""


def test_a_mask_by_the_padding_id_loses_the_end(tmp_path):
    pytest.importorskip("torch")
    text = LOOP.replace("MASK", "mask = (answers != tokenizer.pad_token_id).float()")
    found = rehearse(tmp_path, text, "MSK004", "train")
    assert found.holds is False
    assert found.evidence.got == [0.0, 0.0]


@pytest.mark.slow
def test_a_mask_that_keeps_what_follows_is_shown(tmp_path):
    pytest.importorskip("torch")
    text = LOOP.replace("MASK", "mask = (answers < 57).float()")
    found = rehearse(tmp_path, text, "MSK004", "train")
    assert found.holds is False
    assert found.evidence.got[1] != 0


@pytest.mark.slow
@pytest.mark.parametrize("mask", [BY_END, BY_LENGTH])
def test_the_end_and_nothing_behind_it(tmp_path, mask):
    pytest.importorskip("torch")
    assert rehearse(tmp_path, LOOP.replace("MASK", mask), "MSK004", "train").holds is True


@pytest.mark.slow
def test_no_mask_says_nothing(tmp_path):
    pytest.importorskip("torch")
    text = LOOP.replace("MASK", "import torch; mask = torch.ones(answers.shape)")
    found = rehearse(tmp_path, text, "MSK004", "train")
    assert (found.holds, found.reason) == (None, "every slot is trained: there is no mask")
