"""The model without weights: what it answers is the table, looked up by hand.

Expected logits are sums of two lines of the table; which lines follows from counting the real
tokens before a slot.
"""

from math import exp, log

import pytest

from rlproof.bind.model import EOS, PAD, WORDS, Texts, ladder, places, rung, steep, wild

torch = pytest.importorskip("torch")
from rlproof.bind.child import standin  # noqa: E402
from rlproof.bind.child.arrays import build, has_gradient  # noqa: E402
from rlproof.bind.child.load import UnavailableError  # noqa: E402

TABLE = wild()
IDS = torch.tensor([[0, 0, 4, 7], [3, 5, 2, 0]])
MASK = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])


def model(table=TABLE):
    kind, value = table.wire()
    return build(kind, value)


def lines(*pairs):
    return torch.tensor([TABLE.logits(token, place) for token, place in pairs])


def test_padding_is_not_counted_where_the_mask_says_so():
    logits = model()(input_ids=IDS, attention_mask=MASK).logits
    assert torch.allclose(logits[0, 2:], lines((4, 0), (7, 1)))
    assert torch.allclose(logits[1, :3], lines((3, 0), (5, 1), (2, 2)))


def test_without_a_mask_padding_is_text():
    logits = model()(IDS).logits
    assert torch.allclose(logits[0, 2:], lines((4, 2), (7, 3)))
    assert torch.allclose(logits[1, :3], lines((3, 0), (5, 1), (2, 2)))


def test_what_masked_slots_hold_changes_nothing():
    other = IDS.clone()
    other[MASK == 0] = 9
    same = [model()(ids, MASK).logits[MASK.bool()] for ids in (IDS, other)]
    assert torch.equal(*same)


@pytest.mark.parametrize("shift", [0, 3])
def test_positions_count_by_their_differences(shift):
    """As for a rotary model: an offset of all positions does nothing, starting anew does."""
    ids, ones = torch.tensor([[4, 7, 2, 9]]), torch.ones(1, 4, dtype=torch.long)
    positions = torch.tensor([[0, 1, 0, 1]]) + shift
    logits = model()(ids, attention_mask=ones, position_ids=positions).logits
    assert torch.allclose(logits[0], lines((4, 0), (7, 1), (2, 0), (9, 1)))


def test_positions_alone_are_taken_as_they_are():
    logits = model()(torch.tensor([[4, 7]]), position_ids=torch.tensor([[5, 6]])).logits
    assert torch.allclose(logits[0], lines((4, 5), (7, 6)))


@pytest.mark.parametrize("keep", ["logits_to_keep", "num_logits_to_keep"])
def test_only_the_last_logits_are_kept(keep):
    whole = model()(IDS, MASK).logits
    assert torch.equal(model()(IDS, MASK, **{keep: 2}).logits, whole[:, -2:])
    assert torch.equal(model()(IDS, MASK, **{keep: 0}).logits, whole)
    assert torch.equal(model()(IDS, MASK, logits_to_keep=torch.tensor([1])).logits, whole[:, 1:2])


def test_it_answers_like_a_model_of_hugging_face():
    policy = model()
    out = policy(IDS, attention_mask=MASK, use_cache=False, return_dict=True)
    assert out["logits"] is out.logits is out[0] is out.get("logits") is out.to_tuple()[0]
    assert "logits" in out
    out["logits"] = out["logits"].float()
    assert out["logits"] is out.logits
    assert out.loss is None
    assert policy(IDS, return_dict=False)[0].shape == (2, 4, WORDS)
    assert (policy.config.vocab_size, str(policy.device), policy.dtype) == (
        WORDS, "cpu", torch.float32,
    )  # fmt: skip
    assert policy.training
    assert not policy.eval().training
    assert not hasattr(policy.module, "module"), "a loop that unwraps must end"
    assert torch.equal(policy.module.forward(IDS, MASK).logits, out.logits)


def test_the_head_and_what_is_below_it_give_the_same():
    policy = model()
    hidden = policy.model(IDS, attention_mask=MASK).last_hidden_state
    assert torch.equal(policy.lm_head(hidden), policy(IDS, MASK).logits)


def test_it_can_be_differentiated_and_keeps_its_precision_under_autocast():
    policy = model()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = policy(IDS, MASK).logits
    assert logits.dtype == torch.float32
    logits.sum().backward()
    assert sum(p.grad is not None for p in policy.parameters()) == 3
    with torch.no_grad():
        assert not has_gradient(policy(IDS, MASK).logits)
    assert has_gradient([{"logps": logits}, None])


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda m: m.generate(IDS), "generates nothing"),
        (lambda m: m(IDS, labels=IDS), "computes no loss"),
        (lambda m: m(IDS, past_key_values=()), "no caches"),
        (lambda m: m(IDS, pixel_values=IDS), "takes no `pixel_values`"),
        (lambda m: m(IDS[0]), r"shape \(rows, tokens\)"),
        (lambda m: m(IDS, MASK[:, None]), "attention mask of shape"),
        (lambda m: m.get_input_embeddings(), "no embeddings"),
    ],
)
def test_what_it_can_not_answer_it_refuses_with_a_reason(call, reason):
    with pytest.raises(UnavailableError, match=reason):
        call(model())


def test_keys_are_attributes_too():
    batch = build("tensors", {"input_ids": ["torch:int", [[1, 2]]]})
    assert batch.input_ids is batch["input_ids"] is batch.to("cpu")["input_ids"]
    with pytest.raises(AttributeError):
        batch.labels  # noqa: B018
    known = standin.tokenizer({"pad": PAD, "eos": EOS})
    assert (known.pad_token_id, known.eos_token_id) == (0, 10)


def test_texts_are_laid_out_with_prompts_ending_in_one_column():
    texts = Texts([[4], [7, 2]], [[6, 1], [9]], TABLE)
    assert texts.ids() == [[0, 4, 6, 1], [7, 2, 9, 0]]
    assert texts.attention() == [[0, 1, 1, 1], [1, 1, 1, 0]]
    assert texts.real() == [[0, 0, 1, 1], [0, 0, 1, 0]]
    assert texts.starts() == [2, 2]
    assert places(texts.attention()) == [[0, 0, 1, 2], [0, 1, 2, 2]]


def test_texts_are_laid_out_with_all_rows_starting_at_once():
    texts = Texts([[4], [7, 2]], [[6, 1], [9]], TABLE, side="right")
    assert texts.ids() == [[4, 6, 1], [7, 2, 9]]
    assert texts.starts() == [1, 2]
    assert texts.real() == [[0, 1, 1], [0, 0, 1]]


def test_the_simple_tables_are_what_evidence_says_of_them():
    """After n tokens the logit of word 1 is n: place n − 1, since places count what is before."""
    assert ladder().logits(5, 2) == [0.0, 3.0, *[0.0] * 9]
    assert steep(120.0).logits(0, 7) == [0.0, 120.0, *[0.0] * 9]
    assert rung(3) == pytest.approx(log(exp(3) / (exp(3) + 10)))


def test_the_wild_table_has_no_line_twice_and_stays_small():
    every = [tuple(line) for line in (*TABLE.tokens, *TABLE.places)]
    assert len(set(every)) == len(every)
    assert max(abs(x) for line in every for x in line) <= 3.0
