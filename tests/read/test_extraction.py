"""Which functions ask a model for log-probs, and what each of their parameters carries."""

import ast

import pytest

from rlproof.read.extraction import extraction_target, keys_of, names_log_probs
from rlproof.read.names import Slot

BODY = (
    "    logits = {model}({ids}).logits\n"
    "    return logits.log_softmax(-1).gather(-1, {ids}[..., None])\n"
)


def target(signature, model="model", ids="ids", body=BODY):
    source = f"def {signature}:\n{body.format(model=model, ids=ids)}"
    return extraction_target(ast.parse(source).body[0])


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("input_ids", Slot.TOKENS), ("sequences", Slot.TOKENS), ("query_responses", Slot.TOKENS),
        ("prompt_completion_ids", Slot.TOKENS), ("prompt_ids", Slot.PROMPT_TOKENS),
        ("queries", Slot.PROMPT_TOKENS), ("attention_mask", Slot.ATTENTION),
        ("prompt_mask", Slot.PROMPT_MASK), ("response_mask", Slot.COMPLETION_MASK),
        ("action_mask", Slot.COMPLETION_MASK), ("logits_to_keep", Slot.KEEP),
        ("num_actions", Slot.KEEP), ("completion_len", Slot.KEEP), ("prompt_len", Slot.START),
        ("prompt_lens", Slot.START), ("context_length", Slot.START),
        ("response_start", Slot.START), ("temperature", Slot.TEMPERATURE),
        ("micro_batch_size", Slot.CHUNK), ("pad_token_id", Slot.PAD), ("labels", Slot.LABELS),
        ("tokenizer", Slot.TOKENIZER), ("position_ids", Slot.POSITIONS),
        ("compute_entropy", Slot.SWITCH), ("device", Slot.DEVICE),
        ("pixel_values", None), ("pixel_attention_mask", None), ("max_length", None),
        ("prompt_text", None), ("name", None),
    ],
)  # fmt: skip
def test_names_of_parameters(name, slot):
    found = target(f"get_logps(model, ids, {name}=None)")
    assert found.parameters[-1].slot is slot


@pytest.mark.parametrize("model", ["model", "policy", "actor", "ref_model", "self_model"])
def test_a_model_is_called(model):
    found = target(f"token_logps({model}, ids)", model)
    assert found.parameter(Slot.MODEL).name == model


def test_a_table_is_no_model():
    body = "    return [policy[t] for t in ids]\n"
    assert target("token_logps(policy, ids)", body=body) is None


@pytest.mark.parametrize(
    "signature",
    ["grpo_loss(model, ids)", "train(model, ids)", "entropy(model, ids)", "generate(model, ids)",
     "get_logps(model, prompt_text)", "score(model, ids, advantages)"],
)  # fmt: skip
def test_other_functions_that_ask_a_model(signature):
    assert target(signature) is None


def test_a_name_that_says_nothing_is_enough_where_the_body_scores():
    assert target("score(model, ids)") is not None
    assert target("score(model, ids)", body="    return model(ids).logits\n") is None


def test_completions_without_a_prompt_are_whole_texts():
    assert target("logps(model, completions)").parameter(Slot.TOKENS).name == "completions"


def test_a_bare_mask_is_what_it_is_used_for():
    fed = "    return model(ids, attention_mask=mask).logits * 1\n"
    used = "    return model(ids).logits * mask\n"
    assert target("logps(model, ids, mask)", body=fed).has(Slot.ATTENTION)
    assert target("logps(model, ids, mask)", body=used).has(Slot.COMPLETION_MASK)


def test_keys_of_a_batch():
    node = ast.parse(
        "def logps(model, batch):\n"
        "    logits = model(batch['input_ids'], batch.get('attention_mask')).logits\n"
        "    return logits, batch.responses, batch['extra']\n"
    ).body[0]
    keys = keys_of(node, "batch")
    assert keys.slots == {
        "input_ids": Slot.TOKENS,
        "attention_mask": Slot.ATTENTION,
        "responses": Slot.COMPLETION_TOKENS,
    }
    assert keys.unknown == ("extra",)


@pytest.mark.parametrize(
    ("name", "promised"),
    [("get_per_token_logps", True), ("selective_log_softmax", True),
     ("compute_token_log_probabilities", True), ("text_log_likelihood", True),
     ("token_probs", False), ("log_metrics", False), ("log_softmax", False)],
)  # fmt: skip
def test_names_that_promise_log_probs(name, promised):
    assert names_log_probs(name) is promised
