"""Which function of a script plays which part."""

import ast

import pytest

from rlproof.read.names import Slot
from rlproof.read.roles import recognise
from rlproof.read.targets import Role

LOSS = "def grpo_loss(logp, old_logp, advantages, mask):\n    return 0\n"


def roles(text):
    return {target.name: target.role for target in recognise(ast.parse(text))}


def slots(text, name):
    target = next(t for t in recognise(ast.parse(text)) if t.name == name)
    return {p.name: p.slot for p in target.parameters}


def define(signature):
    return f"def {signature}:\n    return 0\n"


@pytest.mark.parametrize(
    ("signature", "role"),
    [
        ("grpo_loss(logp, old_logp, ref_logp, advantages, mask, clip_eps=0.2)", Role.LOSS),
        ("compute_policy_loss(old_log_prob, log_prob, advantages, response_mask)", Role.LOSS),
        ("clip_loss(logp, old_logp, advantages, mask)", Role.LOSS),
        ("f(*, logp, old_logp, advantages)", Role.LOSS),
        ("f(logp, old_logp, /, advantages)", Role.LOSS),
        ("reinforce(logp, advantages)", Role.LOSS),
        ("loss(new, old, ref, A, m)", Role.LOSS),
        ("clip_fraction(logp, old_logp, mask, eps=0.2)", Role.CLIP_FRACTION),
        ("clipfrac(new_logp, old_logp)", Role.CLIP_FRACTION),
        ("clip_ratio(new_logp, old_logp, eps)", Role.CLIP_FRACTION),
        ("group_advantages(rewards, group_size)", Role.ADVANTAGES),
        ("compute_advantage(token_level_rewards, response_mask, index)", Role.ADVANTAGES),
        ("normalize_rewards(rewards)", Role.ADVANTAGES),
        ("whiten(rewards)", Role.ADVANTAGES),
        ("token_logps(theta, rows, tokens)", Role.LOG_PROBS),
        ("get_per_token_logps(model, input_ids)", Role.LOG_PROBS),
        ("shape(rewards, logp, ref_logp, beta)", Role.SHAPING),
        ("entropy(logits, mask)", Role.ENTROPY),
        ("mean_entropy(logps)", Role.ENTROPY),
        ("approx_kl(logp, ref_logp, mask)", Role.DIVERGENCE),
        ("completion_mask(completion_ids, eos_token_id)", Role.COMPLETION_MASK),
        ("numeric_grad(f, theta, h=1e-4)", Role.NUMERIC_GRADIENT),
        ("rollout(theta, prompts)", Role.ROLLOUT),
        ("sample_completions(theta)", Role.ROLLOUT),
        ("accuracy_reward(completions, solution)", Role.REWARD),
        ("compute_score(solution_str, ground_truth)", Role.REWARD),
        ("format_reward(completions)", Role.REWARD),
    ],
)
def test_role_of_a_signature(signature, role):
    name = signature.split("(")[0]
    assert roles(define(signature)) == {name: role}


@pytest.mark.parametrize(
    "signature",
    [
        "sft_loss(logits, labels, mask)",
        "sft_loss(logps, mask)",
        "dpo_loss(policy_chosen_logps, policy_rejected_logps, reference_chosen_logps, beta=0.1)",
        "value_loss(values, old_values, returns, mask, clip_range=0.2)",
        "critic_loss(values, returns, advantages)",
        "entropy_bonus(logits, mask)",
        "cross_entropy(logits, labels)",
        "kl_loss(logp, ref_logp, mask)",
        "adaptive_kl(kl, target)",
        "apply_mask(tokens, mask)",
        "mean_ratio(new_logp, old_logp)",
        "reward(completion, tokenizer)",
        "normalize_advantages(advantages)",
        "test_loss(logp, old_logp, advantages)",
        "policy_gradient(logp, old_logp, advantages)",
        "masked_mean(values, mask)",
        "nothing()",
    ],
)
def test_unrelated_function_has_no_role(signature):
    assert roles(define(signature)) == {}


@pytest.mark.parametrize(
    "signature",
    [
        "policy_stats(logp, old_logp, advantages, mask)",
        "log_metrics(logp, advantages, rewards)",
        "write_log(logps, advantages)",
    ],
)
def test_metric_is_no_loss(signature):
    assert roles(define(signature)) == {}


@pytest.mark.parametrize(
    "signature",
    [
        "reward_stats(rewards, group_size)",
        "mean_reward_per_group(rewards, group_size)",
        "pass_at_k(rewards, k)",
        "best_of_n(scores, n)",
        "accuracy(scores, n)",
        "plot_advantages(rewards, path)",
    ],
)
def test_statistic_of_rewards_is_no_advantage_function(signature):
    assert roles(define(signature)) == {}


@pytest.mark.parametrize(
    "name", ["policy_gradient_loss", "adv_weighted_loss", "gradient_policy_loss"]
)
def test_loss_named_after_the_policy_gradient(name):
    assert roles(define(f"{name}(logp, old_logp, advantages, mask)")) == {name: Role.LOSS}


@pytest.mark.parametrize("old", ["b_logprobs", "mb_logprobs", "logprobs"])
def test_plain_log_probs_beside_new_ones_are_old(old):
    text = define(f"pg_loss(newlogprob, {old}, mb_advantages, clip_coef=0.2)")
    assert slots(text, "pg_loss")[old] is Slot.OLD


@pytest.mark.parametrize("old", ["proximal_logprobs", "prox_logp", "behave_logprobs"])
def test_log_probs_of_the_proximal_or_the_behaviour_policy_are_old(old):
    found = slots(define(f"actor_loss(logprobs, {old}, old_logprobs, advantages)"), "actor_loss")
    assert (found["logprobs"], found[old]) == (Slot.NEW, Slot.OLD)


def test_of_two_log_probs_that_nothing_tells_apart_the_second_is_unknown():
    found = slots(define("loss(logprobs, teacher_logprobs, old_logprobs, advantages)"), "loss")
    assert (found["logprobs"], found["teacher_logprobs"]) == (Slot.NEW, None)


def test_eps_beside_a_clip_range_is_a_stabiliser():
    text = define("loss(logp, old_logp, advantages, mask, clip_eps=0.2, eps=1e-8)")
    assert slots(text, "loss")["eps"] is not Slot.CLIP


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("vf_clip_param", "10.0"),  # RLlib: the range of the value function's clip
        ("clip_value_loss", "True"),  # rsl_rl: a switch
        ("grad_clip", "1.0"),
        ("adam_eps", "1e-8"),
        ("cliprange_value", "0.5"),  # verl: the value function's
        ("value_clip", "0.2"),  # OpenRLHF: the same
    ],
)
def test_other_clips_and_stabilisers_are_not_the_clip_range(name, default):
    text = define(f"loss(logp, old_logp, advantages, clip_eps=0.2, {name}={default})")
    assert slots(text, "loss")["clip_eps"] is Slot.CLIP
    assert slots(text, "loss")[name] not in (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH)


def test_bare_names_fill_the_slots_that_no_name_claims():
    text = define("loss(new, old, ref, adv, mask, eps, beta)")
    assert slots(text, "loss") == {
        "new": Slot.NEW,
        "old": Slot.OLD,
        "ref": Slot.REF,
        "adv": Slot.ADVANTAGES,
        "mask": Slot.MASK,
        "eps": Slot.CLIP,
        "beta": Slot.BETA,
    }


def test_bare_name_does_not_take_a_slot_twice():
    assert slots(define("loss(logp, current, advantages)"), "loss")["current"] is None


@pytest.mark.parametrize(
    "call",
    [
        "loss(logp, old_logp, advantages)",
        "loss(batch.logp, batch.old_logp, batch.advantages)",
        "loss(get_logps(theta), old_logps(ref), compute_advantages(r))",
    ],
)
def test_call_sites_name_the_parameters(call):
    found = slots(define("loss(x, y, z)") + call + "\n", "loss")
    assert found == {"x": Slot.NEW, "y": Slot.OLD, "z": Slot.ADVANTAGES}


def test_own_name_beats_the_call_site():
    text = define("loss(logp, old_logp, adv)") + "loss(old_logp, logp, adv)\n"
    assert slots(text, "loss")["logp"] is Slot.NEW


def test_keyword_call_sites_name_the_parameters():
    text = define("loss(x, y, z)") + "loss(x=logp, y=old_logp, z=advantages)\n"
    assert slots(text, "loss")["x"] is Slot.NEW


def test_required_default_and_sign_of_parameters():
    target = recognise(ast.parse(define("f(nll, old_logp, advantages, *, mask, beta=0.5)")))[0]
    required = {p.name: p.required for p in target.parameters}
    assert [name for name, needed in required.items() if not needed] == ["beta"]
    assert list(required) == ["nll", "old_logp", "advantages", "mask", "beta"]
    assert [p.name for p in target.parameters if p.negative] == ["nll"]
    assert ast.literal_eval(target.parameters[-1].default) == 0.5  # as written above


PART = "def part(logp, old_logp, adv):\n    return 0\n"


def test_loss_that_only_a_loss_calls_is_a_helper():
    whole = LOSS.replace("return 0", "return part(logp[0], old_logp[0], advantages[0])")
    assert roles(PART + whole) == {"grpo_loss": Role.LOSS}


def test_loss_that_others_call_too_is_a_target():
    whole = LOSS.replace("return 0", "return part(logp, old_logp, advantages)")
    outside = "print(part(1, 2, 3))\n"
    assert roles(PART + whole + outside) == {"part": Role.LOSS, "grpo_loss": Role.LOSS}


def test_recursive_loss_is_a_target():
    again = LOSS.replace("return 0", "return grpo_loss(logp, old_logp, advantages, mask)")
    assert roles(again) == {"grpo_loss": Role.LOSS}


def test_last_definition_of_a_name_counts():
    unrelated = define("grpo_loss(x, y)")
    assert roles(LOSS + unrelated) == {}
    assert roles(unrelated + LOSS) == {"grpo_loss": Role.LOSS}


def test_only_module_level_functions_count():
    indented = "".join(f"    {line}\n" for line in LOSS.splitlines())
    assert roles("class Trainer:\n" + indented) == {}
    assert roles("def outer():\n" + indented) == {}
    assert roles("loss = lambda logp, old_logp, advantages: 0\n") == {}


@pytest.mark.parametrize("loop", ["for _ in range(9)", "while True"])
def test_function_that_loops_over_a_loss_trains(loop):
    text = LOSS + f"def go(n=3):\n    {loop}:\n        grpo_loss(1, 2, 3, 4)\n"
    assert roles(text) == {"grpo_loss": Role.LOSS, "go": Role.TRAIN}


def test_function_without_loop_or_loss_does_not_train():
    assert "once" not in roles(LOSS + "def once():\n    grpo_loss(1, 2, 3, 4)\n")
    assert "other" not in roles(LOSS + "def other(n):\n    for _ in range(n):\n        print(n)\n")


def test_targets_are_in_source_order():
    train = "def train(steps=3):\n    for _ in range(steps):\n        grpo_loss(1, 2, 3, 4)\n"
    assert list(roles(train + LOSS)) == ["train", "grpo_loss"]


def test_losses_that_call_each_other_are_both_judged():
    body = "(logp, old_logp, advantages):\n    return "
    text = f"def a_loss{body}b_loss(1)\n\n\ndef b_loss{body}a_loss(1)\n"
    assert set(roles(text)) == {"a_loss", "b_loss"}


def test_a_loss_that_another_gives_whole_arrays_is_judged_too():
    inner = "def clip_loss(adv, logp, old_logp, cliprange):\n    return logp\n\n\n"
    outer = (
        "def train_step(logp, mask, adv, old_logp, cliprange):\n"
        "    return clip_loss({arguments}, cliprange)\n"
    )
    whole = inner + outer.format(arguments="adv, logp, old_logp")
    single = inner + outer.format(arguments="adv[0], logp[0], old_logp[0]")
    assert set(roles(whole)) == {"clip_loss", "train_step"}
    assert set(roles(single)) == {"train_step"}


def test_call_sites_name_the_parameters_of_an_opaque_loss():
    text = "def f(a, b, c, m, e=0.2):\n    return 0\n\n\n"
    text += "def train(new_logps, old_logps, advantages, mask):\n"
    text += "    for _ in range(2):\n        f(new_logps, old_logps, advantages, mask)\n"
    assert slots(text, "f") == {"a": Slot.NEW, "b": Slot.OLD, "c": Slot.ADVANTAGES,
                                "m": Slot.MASK, "e": None}  # fmt: skip
    assert roles(text)["f"] is Role.LOSS
