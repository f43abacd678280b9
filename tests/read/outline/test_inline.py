"""Losses and advantages written inside loops: what is followed back, what becomes a parameter."""

import ast

import pytest
from tests.read.outline.test_methods import only, outlined, slots

from rlproof.read.names import Slot
from rlproof.read.outline import outline
from rlproof.read.roles import recognise
from rlproof.read.targets import Role

LOOP = """
def train(model, ref, loader, optimizer, clip_eps=0.2, beta=0.04, grad_accum_steps=8):
    for batch in loader:
        with torch.no_grad():
            old_logps = token_logps(model, batch["ids"])
        for epoch in range(4):
            logits = model(batch["ids"]).logits[:, :-1]
            logps = logits.log_softmax(-1).gather(2, batch["ids"][:, 1:, None]).squeeze(-1)
            ref_logps = token_logps(ref, batch["ids"])
            mask, adv = batch["mask"], batch["advantages"][:, None]
            ratio = torch.exp(logps - old_logps)
            surr = torch.min(ratio * adv, ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv)
            delta = ref_logps - logps
            kl = torch.exp(delta) - delta - 1
            per_token = -(surr - beta * kl)
            with torch.autocast("cuda"):
                loss = (per_token * mask).sum() / mask.sum()
            print(loss.item())
            loss = loss / grad_accum_steps
            {backward}
            optimizer.step()
"""


@pytest.mark.parametrize(
    "backward",
    [
        "loss.backward()",
        "accelerator.backward(loss)",
        "engine.backward(loss)",
        "scaler.scale(loss).backward()",
        "self.strategy.backward(loss, model, optimizer)",
        "optimizer.minimize(loss)",
    ],
)
def test_the_loss_is_what_is_differentiated(backward):
    target = only(LOOP.format(backward=backward))
    assert target.name == "train (inline loss, line 20)"
    assert slots(target) == {
        "clip_eps": Slot.CLIP,
        "beta": Slot.BETA,
        "old_logps": Slot.OLD,
        "logps": Slot.NEW,
        "ref_logps": Slot.REF,
        "mask": Slot.MASK,
        "advantages": Slot.ADVANTAGES,
    }
    assert target.origin.reason == ""


def test_only_what_the_loss_needs_is_kept_and_the_lines_stay():
    target = only(LOOP.format(backward="loss.backward()"))
    kept = [(n.lineno, type(n).__name__) for n in target.node.body]
    assert kept == [
        (10, "Assign"), (11, "Assign"), (12, "Assign"), (13, "Assign"), (14, "Assign"),
        (15, "Assign"), (17, "Assign"), (19, "Assign"), (20, "Return"),
    ]  # fmt: skip
    assert ast.unparse(target.node.body[-2]) == "loss = loss / 1"


def test_a_closure_given_to_a_gradient_is_outlined_with_what_is_around_it():
    target = only("""
    def train_step(state, batch, eps=0.2):
        old = batch["old_logprobs"]
        adv = batch["advantages"]

        def loss_fn(params):
            logprobs = state.apply_fn(params, batch["tokens"])
            ratio = jnp.exp(logprobs - old)
            return -jnp.minimum(ratio * adv, jnp.clip(ratio, 1 - eps, 1 + eps) * adv).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return loss
    """)
    assert target.name == "train_step.loss_fn"
    found = set(slots(target).values())
    assert {Slot.NEW, Slot.OLD, Slot.ADVANTAGES} <= found


def test_two_values_of_one_name_are_not_mixed_up():
    """`logp` of two models: the old ones are made from the first, the loss from the second."""
    target = only("""
    def step(model, old_model, batch):
        logp = score(old_model, batch)
        behaviour = logp.detach()
        logp = score(model, batch)
        adv = batch["adv"]
        loss = -(torch.exp(logp - behaviour) * adv).mean()
        loss.backward()
    """)
    assert "two values" in target.origin.reason


def test_a_call_of_a_loss_of_the_file_is_not_outlined_again():
    text = """
    def grpo_loss(logp, old_logp, adv):
        return -(torch.exp(logp - old_logp) * adv).mean()

    def train(model, batch):
        logp, old_logp, adv = score(model), batch["old_logp"], batch["adv"]
        loss = grpo_loss(logp, old_logp, adv)
        loss.backward()
    """
    assert outlined(text) == []


def test_a_loss_at_the_top_level():
    target = only("""
    eps = 0.2
    for batch in loader:
        logp = model(batch)
        ratio = torch.exp(logp - batch["old_logp"])
        loss = -torch.min(ratio * batch["adv"], ratio.clamp(1 - eps, 1 + eps) * batch["adv"]).mean()
        loss.backward()
    """)
    assert target.name == "module (inline loss, line 7)"
    assert set(slots(target).values()) == {Slot.NEW, Slot.OLD, Slot.ADVANTAGES}


def test_a_term_without_weight_takes_nothing_with_it():
    target = only("""
    def step(model, batch, args):
        logp, entropy, value = model(batch)
        adv = batch["adv"]
        loss = -(torch.exp(logp - batch["old_logp"]) * adv).mean()
        loss = loss - args.ent_coef * entropy.mean() + args.vf_coef * (value ** 2).mean()
        loss.backward()
    """)
    assert target.origin.reason == ""
    assert "0.0" in ast.unparse(target.node)


def test_an_array_of_which_only_a_part_is_used_is_that_part():
    target = only("""
    def step(model, batch):
        logp = score(model, batch)
        loss = -(torch.exp(logp - batch["old_logp"]) * batch["adv"][:, 1:]).mean()
        loss.backward()
    """)
    assert "1:" not in ast.unparse(target.node)


def test_arrays_that_are_all_cut_alike_stay_as_they_are():
    target = only("""
    def step(model, batch):
        logp = score(model, batch)
        loss = -(logp[:, 1:] * batch["adv"][:, 1:]).mean()
        loss.backward()
    """)
    assert ast.unparse(target.node).count("1:") == 2


def test_half_a_loss_is_a_doubt_that_says_what_to_write():
    tree = ast.parse(
        "import torch\ndef step(model, batch):\n    u = model(batch)\n"
        "    loss = -(torch.exp(u - batch['old_logp']) * batch['advantages']).mean()\n"
        "    loss.backward()\n"
    )
    targets, (doubt,) = outline(tree, recognise(tree))
    assert targets == []
    assert doubt.line == 5
    assert doubt.reason.endswith("write `# rlproof: loss new=NAME` above its `def`")


def test_a_number_of_tokens_comes_from_the_mask():
    target = only("""
    def step(model, batch, num_items_in_batch):
        logp = score(model, batch)
        loss = -(logp * batch["adv"] * batch["mask"]).sum() / num_items_in_batch
        loss.backward()
    """)
    assert ast.unparse(target.node.body[0]) == "num_items_in_batch = mask.sum()"


@pytest.mark.parametrize("rewards", ["rewards", "batch_rewards"])
def test_inline_advantages(rewards):
    target = only(
        f"""
    def rollout(prompts, model, group_size):
        for prompt in prompts:
            answers = generate(model, prompt)
            {rewards} = torch.tensor([score(a) for a in answers])
            grouped = {rewards}.view(-1, group_size)
            mean, std = grouped.mean(1, keepdim=True), grouped.std(1, keepdim=True)
            advantages = ((grouped - mean) / (std + 1e-4)).view(-1)
            yield advantages
    """,
        Role.ADVANTAGES,
    )
    assert slots(target) == {rewards: Slot.REWARDS, "group_size": Slot.GROUP_SIZE}
    assert target.origin.reason == ""


def test_rewards_centred_under_their_own_name():
    target = only(
        """
    def collect(model):
        rewards = torch.tensor(model.play())
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        return rewards
    """,
        Role.ADVANTAGES,
    )
    assert slots(target) == {"rewards": Slot.REWARDS}
