"""ADV002, ADV003: a reward that depends on the prompt alone teaches nothing."""

import pytest
from tests.support.rehearsing import rehearse
from tests.support.sampling import one_in

LOOP = """
import torch

def group_advantages(rewards, group_size):
    groups = rewards.view(-1, group_size)
    return (SCALED).reshape(-1)

def train(policy, loader, reward, optimizer, group_size=4):
    for prompts in loader:
        asked = ASKED
        ids = policy.generate(asked, do_sample=True)
        adv = group_advantages(reward(ids), group_size)
        lines = policy(ids).logits[:, :-1].log_softmax(-1)
        logps = lines.gather(-1, ids[:, 1:, None])[..., 0]
        loss = -(logps * adv[:, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CENTRED = "groups - groups.mean(1, keepdim=True)"
IN_A_ROW = "[p for p in prompts for _ in range(group_size)]"


def loop(asked, scaled=CENTRED):
    return LOOP.replace("ASKED", asked).replace("SCALED", scaled)


@pytest.mark.parametrize(
    "asked", one_in(99, ["prompts * group_size", "list(prompts) * group_size"])
)
def test_groups_that_mix_prompts_learn_from_them(tmp_path, asked):
    pytest.importorskip("torch")
    found = rehearse(tmp_path, loop(asked), "ADV002", "train")
    assert found.holds is False
    assert found.evidence.got != 0 == found.evidence.expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "scaled",
    [
        CENTRED,
        f"({CENTRED}) / (groups.std(1, keepdim=True) + 1e-4)",
        f"({CENTRED}) / (rewards.std() + 1e-4)",  # the batch's spread
        f"({CENTRED}) * group_size / (group_size - 1)",  # leave one out
    ],
)
def test_published_baselines_of_groups_keep_it(tmp_path, scaled):
    pytest.importorskip("torch")
    assert rehearse(tmp_path, loop(IN_A_ROW, scaled), "ADV002", "train").holds is True


@pytest.mark.slow
def test_what_is_handed_back_is_judged_too(tmp_path):
    """A key of its own for each row: groups of one, without a baseline."""
    pytest.importorskip("torch")
    text = """
import torch

def grpo_advantages(rewards, index):
    kept = {}
    for k, key in enumerate(index):
        kept.setdefault(key, []).append(rewards[k])
    means = [torch.stack(kept[k]).mean() if len(kept[k]) > 1 else torch.tensor(0.0) for k in index]
    return rewards - torch.stack(means)

def prepare(trajectories):
    rewards = torch.tensor([t["reward"] for t in trajectories])
    return grpo_advantages(rewards, KEYS)
"""
    bad = text.replace("KEYS", "list(range(len(rewards)))")
    found = rehearse(tmp_path, bad, "ADV003", "prepare")
    assert (found.holds, found.evidence.expected) == (False, [0.0] * 4)
    good = text.replace("KEYS", '[t["task_id"] for t in trajectories]')
    assert rehearse(tmp_path, good, "ADV003", "prepare").holds is True


@pytest.mark.slow
def test_given_advantages_and_scripts_without_groups_say_nothing(tmp_path):
    pytest.importorskip("torch")
    given = """
def update(policy, batch, group_size):
    logps = policy.log_probs(batch["ids"])
    return -(logps * batch["advantages"].view(-1, 1)).mean()
"""
    found = rehearse(tmp_path, given, "ADV002", "update")
    assert (found.holds, found.reason) == (
        None, "advantages are given to it, and are not made from rewards there",
    )  # fmt: skip
    alone = loop("prompts", "groups").replace("group_size", "width").replace("groups", "rows")
    found = rehearse(tmp_path, alone, "ADV002", "train")
    assert (found.holds, found.reason) == (
        None, "no name there speaks of several completions of a prompt",
    )  # fmt: skip
