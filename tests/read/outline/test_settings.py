"""Settings that are no arrays, enumerations, functions in attributes, numbers that are neutral."""

import ast

import pytest
from tests.read.outline.test_methods import only, outlined, slots

from rlproof.read.names import Slot, objective_slot

METHOD = """
class Kind(enum.StrEnum):
    ROWS = "rows"
    TOKENS = enum.auto()


class Trainer:
    def _setup(self, args):
        self.reduce = functools.partial(total, size=args.max_tokens) if args.fixed else average

    def loss(self, inputs, logps):
        mask, adv = inputs["mask"], inputs["advantages"][:, None]
        ratio = torch.exp(logps - inputs["old_logps"])
        per_token = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
        {body}
"""
DEFINED = """
def total(x, mask, size):
    return (x * mask).sum() / size


def average(x, mask):
    return (x * mask).sum() / mask.sum()
"""


def body(text):
    return outlined(METHOD.format(body=text) + DEFINED + "\nimport enum\nimport functools\n")


def lines(target):
    return ast.unparse(target.node)


def test_an_attribute_that_holds_a_function_is_that_function():
    plain, fixed = body("return self.reduce(per_token, mask)")
    assert "return average(per_token, mask)" in lines(plain)
    assert "return total(per_token, mask, size=max_tokens)" in lines(fixed)
    assert slots(fixed)["max_tokens"] is Slot.WIDTH


def test_members_of_an_enumeration_are_its_strings():
    text = """if self.args.kind == Kind.ROWS:
            return (per_token * mask).sum(1).mean()
        if self.args.kind == Kind.TOKENS:
            return (per_token * mask).sum() / mask.sum()"""
    names = [t.name for t in body(text)]
    assert names == ["Trainer.loss [kind='rows']", "Trainer.loss [kind='tokens']"]


def test_members_of_an_imported_enumeration_are_told_apart():
    text = """if self.args.kind == Reduction.ROWS:
            return (per_token * mask).sum(1).mean()
        return (per_token * mask).sum() / mask.sum()"""
    found = outlined("from other import Reduction\n" + METHOD.format(body=text))
    assert len(found) == 2
    assert all("kind" not in lines(t).partition("return")[2] for t in found)


@pytest.mark.parametrize("test", ["> 0", "!= 0", "> 0.0"])
def test_an_optional_term_whose_weight_is_unknown_is_off(test):
    (target,) = body(f"""loss = (per_token * mask).sum() / mask.sum()
        if self.args.aux_coef {test}:
            loss = loss + self.args.aux_coef * helper(inputs)
        return loss""")
    assert target.origin.reason == ""
    assert "aux" not in lines(target)


def test_a_default_that_is_a_number_or_a_switch_makes_no_array():
    target, _ = outlined("""
    def loss(cfg, logps, old_logps, advantages, mask, skip_zero_adv=False, mask_above=0.5):
        ratio = torch.exp(logps - old_logps)
        if skip_zero_adv:
            advantages = advantages * 2
        surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        return -(surrogate * mask).sum() / mask.sum() + mask_above * cfg.entropy_coef
    """)
    assert {"skip_zero_adv", "mask_above"} & slots(target).keys() == set()


def test_a_getter_whose_default_is_the_same_quantity_gives_the_default():
    target = only("""
    class Loss:
        def __call__(self, logprobs, batch):
            unfiltered = batch.get("curr_logprobs_unfiltered", logprobs)
            ratio = torch.exp(logprobs - batch["prev_logprobs"])
            surrogate = ratio * batch["advantages"]
            kl = unfiltered - batch["reference_logprobs"]
            return ((kl * self.kl_coef - surrogate) * batch["mask"]).sum() / batch["mask"].sum()
    """)
    assert target.name == "Loss.__call__"
    assert [p.name for p in target.parameters if p.slot is Slot.NEW] == ["logprobs"]


def test_a_number_of_turns_computed_from_things_that_are_not_there_is_1():
    target = only("""
    def train(model, loader, optimizer, ranks):
        examples_per_rank = 64 // ranks
        for ids, targets, advantages in loader:
            logps = model(ids, targets)
            num_valid = (targets >= 0).sum()
            loss = -(logps * advantages).sum() / (num_valid * examples_per_rank)
            loss.backward()
    """)
    assert target.origin.reason == ""
    assert "examples_per_rank = 1" in lines(target)
    assert "num_valid = (0 * logps + 1).sum()" in lines(target)  # there is no mask


def test_log_probs_of_the_engine_that_sampled_are_left_out_where_they_are_optional():
    target = only("""
    def loss(cfg, logps, old_logps, advantages, mask, rollout_logprobs=None):
        ratio = torch.exp(logps - old_logps)
        weights = correction(old_logps, rollout_logprobs, cfg.off_policy_correction)
        surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        return -(surrogate * weights * mask).sum() / mask.sum()


    def correction(old, rollout, config):
        return 1.0 if rollout is None else (old - rollout).exp().clamp(max=config.cap)
    """)
    assert "correction(old_logps, None, None)" in lines(target)


def test_of_three_log_probs_the_one_taken_from_the_new_ones_is_old_and_so_is_a_third():
    target = only("""
    def step(self, batch):
        new_logps = self.model(batch["ids"])
        mb_logps, mb_actor_logps = batch["logps"], batch["actor_logps"]
        ratio = torch.exp(new_logps - mb_logps)
        correction = torch.exp(mb_logps - mb_actor_logps)
        return -(ratio * correction * batch["advantages"]).mean()
    """)
    found = slots(target)
    assert found["new_logps"] is Slot.NEW
    assert [s for s in found.values() if s is Slot.OLD] == [Slot.OLD, Slot.OLD]


def test_a_loss_in_a_dictionary_is_the_one_with_a_gradient():
    target = only("""
    def loss(logps, old_logps, advantages, cfg):
        loss = -(torch.exp(logps - old_logps) * advantages).mean() / cfg.accum_steps
        return {"loss": loss.item(), "loss_tensor": loss}
    """)
    assert ast.unparse(target.node.body[-1]) == "return loss"


def test_a_sign_of_the_advantages_is_computed_and_not_given():
    target = only("""
    def loss(cfg, logps, old_logps, mb_advantage, mask):
        sgn_advantage = -1 if mb_advantage >= 0 else 1
        ratio = torch.exp(sgn_advantage * (logps - old_logps))
        return -(ratio * mb_advantage * mask).mean() / cfg.accum_steps
    """)
    assert "sgn_advantage" not in slots(target)


def test_a_guard_against_having_no_data_is_left_out():
    target = only("""
    class Trainer:
        def loss(self, model, answers, advantages, old_logps):
            if len(answers) == 0:
                nothing = torch.zeros(())
                return nothing, nothing
            logps = []
            for answer in answers:
                logps.append(score(model, answer))
            logps = torch.stack(logps)
            ratio = torch.exp(logps - old_logps)
            loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
            return loss, ratio.mean()
    """)
    assert target.origin.reason == ""
    assert slots(target) == {
        "advantages": Slot.ADVANTAGES,
        "logps": Slot.NEW,
        "old_logps": Slot.OLD,
    }


def test_advantages_that_a_step_makes_of_rewards_are_given_as_they_are_at_last():
    target = only("""
    def step(self, eps=1e-8):
        rewards = self.score(self.sample())
        spread = rewards.std(dim=1, keepdim=True)
        advantages = (rewards - rewards.mean(dim=1, keepdim=True)) / (spread + eps)
        advantages = torch.where(spread < eps, torch.zeros_like(advantages), advantages)
        logp_actions = self.log_probs()
        loss = -(advantages * logp_actions).mean()
        loss.backward()
    """)
    assert set(slots(target).values()) == {Slot.ADVANTAGES, Slot.NEW}


def test_an_entropy_that_cannot_be_had_is_a_bonus_that_is_off():
    target = only("""
    class Trainer:
        def step(self, batch, optimizer):
            for ids, old_log_probs, advantages in batch:
                logits = self.actor(ids)
                log_probs = pick(logits, ids)
                entropies = entropy_of(logits)
                ratio = (log_probs - old_log_probs).exp()
                loss = -(ratio * advantages).mean() - self.beta_s * entropies.mean()
                loss = loss - self.gamma_s * entropies
                loss.backward()
    """)
    assert target.origin.reason == ""
    assert "loss = loss - 0.0" in lines(target)


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("adv_tau", Slot.ONE),
        ("advantage_clip", None),
        ("kl_tau", Slot.BETA),
        ("dppo_mask_high", Slot.CLIP_HIGH),
        ("off_policy_sequence_mask_delta", None),
        ("delta_low", Slot.CLIP_LOW),
        ("rho_weights", Slot.WEIGHTS),
        ("valid_samples", Slot.WEIGHTS),
        ("num_valid_samples", None),
        ("rollout_lens", Slot.LENGTHS),
        ("kl_in_reward", None),
        ("nll_loss", None),
        ("loss_mask", Slot.MASK),
        ("rewards", Slot.REWARDS),
    ],
)
def test_names_of_settings_and_weights(name, slot):
    assert objective_slot(name) is slot
