"""Lengths that are given and never read: the mask is made of them, and the model is asked again."""

import pytest
from tests.support.checking import check_text
from tests.support.repairing import repair_text, run

from rlproof.judge.findings import FixStatus

HELPER = """import torch


def attention_of(rows):
    mask = torch.zeros(len(rows), max(len(r) for r in rows))
    for k, row in enumerate(rows):
        mask[k, : len(row)] = 1
    return mask


"""
BODY = """    logits = {model}(input_ids={ids}, attention_mask=mask).logits[:, :-1]
    logps = torch.log_softmax(logits.float(), dim=-1)
    return logps.gather(-1, {ids}[:, 1:].unsqueeze(-1)).squeeze(-1)
"""
FORMS = {
    "helper": HELPER
    + "def token_logps(model, input_ids, lengths):\n    mask = attention_of(list(input_ids))\n"
    + BODY.format(model="model", ids="input_ids"),
    "ones": "import torch\n\n\n"
    + "def sequence_logps(policy, tokens, seq_lens):\n    mask = torch.ones_like(tokens)\n"
    + BODY.format(model="policy", ids="tokens"),
    "other names": "import torch as th\n\n\n"
    + "def get_log_probs(actor, sequences, seq_lengths):\n"
    + "    mask = th.ones(sequences.shape, dtype=th.long)\n"
    + BODY.format(model="actor", ids="sequences").replace("torch", "th"),
}


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_mask_is_made_of_the_lengths(tmp_path, name):
    pytest.importorskip("torch")
    report = repair_text(tmp_path, FORMS[name])
    [finding] = [f for f in report.findings if f.code == "MSK013"]
    assert not finding.by_reading
    assert finding.evidence.got != finding.evidence.expected
    assert report.repair.status is FixStatus.VERIFIED, report.repair.message
    assert repair_text(tmp_path, report.repair.text).repair is None


def test_the_repaired_mask_is_what_the_model_gets(tmp_path):
    torch = pytest.importorskip("torch")
    given = []

    def model(input_ids, attention_mask):
        given.append(attention_mask.tolist())
        logits = torch.zeros(*input_ids.shape, 4)
        return type("Answer", (), {"logits": logits})

    score = run(repair_text(tmp_path, FORMS["helper"]).repair.text)["token_logps"]
    for lengths in ([3, 1], torch.tensor([3, 1])):
        score(model, torch.zeros(2, 3, dtype=torch.long), lengths)
    assert given == [[[1, 1, 1], [1, 0, 0]]] * 2


def test_left_padding_has_no_edit(tmp_path):
    """Rows that end in one column begin at others: which, the lengths alone don't say here."""
    pytest.importorskip("torch")
    report = repair_text(tmp_path, FORMS["ones"] + '\n\nPADDING_SIDE = "left"\n')
    assert report.repair is None or report.repair.status is FixStatus.SUGGESTED


def test_lengths_that_are_read_are_healthy(tmp_path):
    pytest.importorskip("torch")
    text = FORMS["ones"].replace(
        "torch.ones_like(tokens)", "(torch.arange(tokens.shape[1]) < seq_lens[:, None]).long()"
    )
    assert "MSK013" not in {f.code for f in check_text(tmp_path, text).findings}
