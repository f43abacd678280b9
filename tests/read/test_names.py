"""The dictionary of parameter names. The spellings are those of the libraries named beside them."""

import keyword

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlproof.read.names import (
    Slot,
    advantage_slot,
    bare_slot,
    gradient_slot,
    is_logp,
    is_negative_logp,
    objective_slot,
    token_slot,
    words,
)

SAME = settings(derandomize=True, deadline=None)
PARTS = ["old", "ref", "new", "logp", "log", "probs", "clip", "eps", "low", "kl", "coef", "x"]
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,24}", fullmatch=True) | st.lists(
    st.sampled_from(PARTS), min_size=1, max_size=4
).map("_".join)
READERS = [objective_slot, advantage_slot, token_slot, gradient_slot, bare_slot]

TRL = {  # trl/trainer/grpo_trainer.py
    "per_token_logps": Slot.NEW,
    "old_per_token_logps": Slot.OLD,
    "ref_per_token_logps": Slot.REF,
    "sampling_per_token_logps": Slot.OLD,
    "completion_mask": Slot.MASK,
    "advantages": Slot.ADVANTAGES,
    "epsilon": Slot.CLIP,
    "epsilon_low": Slot.CLIP_LOW,
    "epsilon_high": Slot.CLIP_HIGH,
    "beta": Slot.BETA,
    "max_completion_length": Slot.WIDTH,
}
VERL = {  # verl/trainer/ppo/core_algos.py
    "old_log_prob": Slot.OLD,
    "log_prob": Slot.NEW,
    "ref_log_prob": Slot.REF,
    "rollout_log_probs": Slot.OLD,
    "response_mask": Slot.MASK,
    "cliprange": Slot.CLIP,
    "cliprange_low": Slot.CLIP_LOW,
    "cliprange_high": Slot.CLIP_HIGH,
    "clip_ratio_c": Slot.CAP,
    "kl_loss_coef": Slot.BETA,
}
OPENRLHF = {  # openrlhf/models/loss.py
    "log_probs": Slot.NEW,
    "old_log_probs": Slot.OLD,
    "action_mask": Slot.MASK,
    "clip_eps": Slot.CLIP,
    "clip_eps_low": Slot.CLIP_LOW,
    "clip_eps_high": Slot.CLIP_HIGH,
    "dual_clip": Slot.CAP,
}
NEMO = {  # nemo_rl/algorithms/loss_functions.py
    "curr_logprobs": Slot.NEW,
    "prev_logprobs": Slot.OLD,
    "generation_logprobs": Slot.OLD,
    "reference_policy_logprobs": Slot.REF,
    "token_mask": Slot.MASK,
    "ratio_clip_min": Slot.CLIP_LOW,
    "ratio_clip_max": Slot.CLIP_HIGH,
    "reference_policy_kl_penalty": Slot.BETA,
}
CLEANRL = {  # cleanrl/ppo.py
    "newlogprob": Slot.NEW,
    "mb_advantages": Slot.ADVANTAGES,
    "clip_coef": Slot.CLIP,
}
SINGLE_FILE = {  # spellings of small scripts
    "logp": Slot.NEW,
    "lp_new": Slot.NEW,
    "logpi_old": Slot.OLD,
    "newLogProbs": Slot.NEW,
    "oldLogProbs": Slot.OLD,
    "oldlogp": Slot.OLD,
    "reflogp": Slot.REF,
    "logprobs_ref": Slot.REF,
    "sft_logps": Slot.REF,
    "behavior_logprobs": Slot.OLD,
    "lprobs_old": Slot.OLD,
    "A": Slot.ADVANTAGES,
    "adv": Slot.ADVANTAGES,
    "m": Slot.MASK,
    "valid": Slot.MASK,
    "eps": Slot.CLIP,
    "epsClip": Slot.CLIP,
    "eps_lo": Slot.CLIP_LOW,
    "eps_hi": Slot.CLIP_HIGH,
    "clip_lower": Slot.CLIP_LOW,
    "cap": Slot.CAP,
    "kl_coef": Slot.BETA,
    "kl_weight": Slot.BETA,
    "lambda_kl": Slot.BETA,
    "seq_lens": Slot.LENGTHS,
    "group_size": Slot.GROUP_SIZE,
    "max_len": Slot.WIDTH,
    "temperature": Slot.TEMPERATURE,
}
LIBRARIES = {**TRL, **VERL, **OPENRLHF, **NEMO, **CLEANRL, **SINGLE_FILE}


@pytest.mark.parametrize(("name", "slot"), list(LIBRARIES.items()))
def test_parameter_of_a_loss(name, slot):
    assert objective_slot(name) is slot


@pytest.mark.parametrize(
    "name",
    [
        "gamma",
        "lam",
        "labels",
        "input_ids",
        "ent_coef",
        "vf_coef",
        "loss_agg_mode",
        "tokenizer",
        "optimizer",
        "values",
        "entropies",
        "learning_rate",
        "beta1",
        "step",
        "seed",
        "device",
        "num_items_in_batch",
        "x",
        "hidden_states",
    ],
)
def test_unrelated_name_has_no_slot_in_a_loss(name):
    assert objective_slot(name) is None


def test_dual_clip_cap_of_nemo():
    assert objective_slot("ratio_clip_c") is Slot.CAP


@pytest.mark.parametrize("name", ["norm_adv", "normalize_advantages"])
def test_switch_about_advantages_is_not_the_advantages(name):
    assert objective_slot(name) is not Slot.ADVANTAGES


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("newLogProbs_2", ["new", "log", "probs", "2"]),  # the docstring's example
        ("old_log_prob", ["old", "log", "prob"]),
        ("_private__name_", ["private", "name"]),
        ("A", ["a"]),
        ("KLCoef", ["klcoef"]),  # capitals in a row are one word
        ("clip2Low", ["clip2", "low"]),
        ("_", []),
    ],
)
def test_words(name, parts):
    assert words(name) == parts


@pytest.mark.parametrize("name", ["nll", "old_nll", "new_nlls", "neg_logp", "negative_log_probs"])
def test_negative_log_probs(name):
    assert is_negative_logp(name)
    assert is_logp(name)


@pytest.mark.parametrize("name", ["logp", "negative_rewards", "neg", "old_log_probs", "clip_neg"])
def test_not_negative_log_probs(name):
    assert not is_negative_logp(name)


@pytest.mark.parametrize("name", ["login", "catalog", "help", "lpad", "logger", "probs", "dialog"])
def test_not_log_probs(name):
    assert not is_logp(name)


@pytest.mark.parametrize(
    ("reader", "name", "slot"),
    [
        (advantage_slot, "rewards", Slot.REWARDS),
        (advantage_slot, "token_level_rewards", Slot.REWARDS),  # verl
        (advantage_slot, "index", Slot.GROUP_IDS),  # verl
        (advantage_slot, "num_generations", Slot.GROUP_SIZE),  # TRL
        (advantage_slot, "epsilon", Slot.EPS),
        (advantage_slot, "response_mask", Slot.MASK),
        (advantage_slot, "reward_fn", Slot.REWARD_FUNCTION),
        (advantage_slot, "normalize_by_std", Slot.SWITCH),
        (advantage_slot, "gamma", None),
        (token_slot, "logits", Slot.LOGITS),
        (token_slot, "theta", Slot.THETA),
        (token_slot, "input_ids", Slot.TOKENS),
        (token_slot, "temperature", Slot.TEMPERATURE),
        (token_slot, "mask", Slot.MASK),
        (gradient_slot, "f", Slot.FUNCTION),
        (gradient_slot, "eps", Slot.STEP),
        (gradient_slot, "rewards", None),
        (bare_slot, "new", Slot.NEW),
        (bare_slot, "old", Slot.OLD),
        (bare_slot, "ref", Slot.REF),
        (bare_slot, "newer", None),
    ],
)
def test_other_readers(reader, name, slot):
    assert reader(name) is slot


@pytest.mark.parametrize("reader", READERS)
@given(name=IDENTIFIERS)
@example(name="_")
@example(name="__")
@settings(SAME)
def test_any_identifier_has_a_slot_or_none(reader, name):
    assert isinstance(reader(name), Slot | None)


@given(IDENTIFIERS)
@SAME
def test_words_are_lower_case_and_lose_no_letter(name):
    parts = words(name)
    assert "".join(parts) == name.replace("_", "").lower()
    assert all(parts)


@given(IDENTIFIERS.filter(lambda name: not keyword.iskeyword(name)))
@SAME
def test_only_log_probs_play_a_policy(name):
    if objective_slot(name) in (Slot.NEW, Slot.OLD, Slot.REF):
        assert is_logp(name)
    if is_negative_logp(name):
        assert is_logp(name)
