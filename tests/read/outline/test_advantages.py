"""Inline advantages: sizes from the layout, rewards from where they can be given, statistics."""

import ast

import pytest
from tests.read.outline.test_methods import outlined, slots

from rlproof.read.names import Slot
from rlproof.read.outline.layouts import is_crossed, laid_out, tiles
from rlproof.read.targets import Role


def advantages(text):
    [target] = outlined(text, Role.ADVANTAGES)
    return target


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rewards.view(-1, args.chains)", {"chains": Slot.GROUP_SIZE}),
        ("rewards.reshape((prompts_seen, k))", {"prompts_seen": Slot.GROUPS, "k": Slot.GROUP_SIZE}),
        ("np.reshape(scores, (-1, self.tries))", {"tries": Slot.GROUP_SIZE}),
        ("rewards.view(batch_size, -1)", {"batch_size": Slot.GROUPS}),
        ("rewards.view(group_size, -1)", {"group_size": Slot.GROUP_SIZE}),
        ("rewards.float().view(-1, chains).mean(1)", {"chains": Slot.GROUP_SIZE}),
        ("rewards.view(-1, 8)", {}),
        ("rewards.view(rows, -1)", {}),
        ("hidden.view(-1, width)", {}),
        ("rewards_per_func.view(-1, columns)", {}),
    ],
)
def test_the_layout_tells_the_size_of_a_group(code, expected):
    assert laid_out([ast.parse(code)]) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rewards.view(group_size, -1).mean(0)", True),
        ("rewards.view(-1, group_size).mean(1)", False),
        ("rewards.mean()", False),
    ],
)
def test_groups_laid_out_across(code, expected):
    assert is_crossed(ast.parse(code)) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ids.repeat(num_generations, 1)", True),
        ("ids.repeat(width, 1)", False),
        ("ids.repeat_interleave(num_generations, 0)", False),
        ("ids.repeat(num_generations, 1); mean.repeat_interleave(num_generations)", False),
    ],
)
def test_prompts_repeated_as_a_whole(code, expected):
    assert tiles(ast.parse(code)) is expected


def test_a_size_that_only_the_layout_tells_is_a_parameter_with_its_setting():
    target = advantages("""
    def main():
        parser.add_argument("--chains", default=16)

    def score(texts, args):
        rewards = judge(texts)
        mean = rewards.view(-1, args.chains).mean(1).repeat_interleave(args.chains)
        advantages = rewards - mean
        log(advantages)
    """)
    assert slots(target) == {"rewards": Slot.REWARDS, "chains": Slot.GROUP_SIZE}
    assert ast.unparse(target.node.args.kw_defaults[1]) == "16"
    assert target.origin.reason == ""


def test_rewards_that_a_loop_adds_up_are_given():
    target = advantages("""
    def score(self, texts):
        total_rewards = mx.zeros(len(texts))
        for judge in self.judges:
            total_rewards = total_rewards + judge(texts)
        mean = total_rewards.mean()
        advantages = total_rewards - mean
        return advantages, total_rewards
    """)
    assert slots(target) == {"total_rewards": Slot.REWARDS}
    assert target.origin.reason == ""
    assert [ast.unparse(node) for node in target.node.body] == [
        "mean = total_rewards.mean()",
        "advantages = total_rewards - mean",
        "return advantages",
    ]


def test_what_is_asked_for_is_never_given():
    target = advantages("""
    def train(model, batch):
        rewards = model.score(batch)
        normalized_rewards = safe(rewards - rewards.mean(), rewards.std())
        store(normalized_rewards)

    def safe(a, b):
        return a / (b + 1e-4)
    """)
    assert slots(target) == {"rewards": Slot.REWARDS}


def test_a_product_with_log_probs_is_no_advantage():
    target = advantages("""
    def compute(self, logps, texts):
        rewards = self.score(texts)
        advantages = rewards - rewards.mean()
        advantages = torch.exp(logps - logps.detach()) * advantages[:, None]
        return -(advantages - kl).mean()
    """)
    assert [ast.unparse(node) for node in target.node.body[:-1]] == [
        "advantages = rewards - rewards.mean()"
    ]


def test_advantages_that_a_loop_fills_in():
    target = advantages("""
    def fill(texts, group_size):
        rewards = judge(texts)
        advantages = torch.zeros(len(rewards))
        for first in range(0, len(rewards), group_size):
            one = rewards[first : first + group_size]
            advantages[first : first + group_size] = one - one.mean()
        train(advantages)
    """)
    assert slots(target) == {"rewards": Slot.REWARDS, "group_size": Slot.GROUP_SIZE}
    assert target.origin.reason == ""


def test_a_setting_may_leave_out_the_last_step():
    plain, scaled = outlined(
        """
    class Trainer:
        def score(self, rewards):
            advantages = rewards - rewards.mean()
            if self.normalize_advantages:
                advantages = advantages / (advantages.std() - 1)
            use(advantages)
    """,
        Role.ADVANTAGES,
    )
    assert len(plain.node.body) == 2
    assert len(scaled.node.body) == 3
    assert "normalize_advantages=True" in scaled.name


STATISTICS = """
class Learner:
    def loss(self, logps, rewards, mean_rewards, std_rewards):
        advantages = (rewards - mean_rewards) / (std_rewards + 1e-4)
        return -(advantages[:, None] * logps).mean()

    def learn(self, batch):
        score = batch.rewards
        {lines}
        self.loss(self.logps(batch), score, middle, {std}).backward()
"""


def test_statistics_are_those_that_the_caller_computes():
    text = STATISTICS.format(lines="middle = score.mean()", std="score.std()")
    target = advantages(text)
    assert slots(target) == {"rewards": Slot.REWARDS}
    assert [ast.unparse(node) for node in target.node.body[:2]] == [
        "mean_rewards = rewards.mean()",
        "std_rewards = rewards.std()",
    ]


@pytest.mark.parametrize(
    "lines", ["middle = self.running", "middle = score.mean() + offset", "middle = 1; middle = 2"]
)
def test_statistics_of_anything_else_stay_unknown(lines):
    target = advantages(STATISTICS.format(lines=lines, std="score.std()"))
    assert "needs `mean_rewards`" in target.origin.reason


def test_rewards_that_a_loop_collects_are_given():
    target = advantages("""
    def step(model, k):
        rewards: list[float] = []
        for _ in range(k):
            rewards.append(score(model.sample()))
        middle = sum(rewards) / len(rewards)
        advantages = [r - middle for r in rewards]
        learn(model, advantages)
    """)
    assert slots(target) == {"rewards": Slot.REWARDS}
    assert len(target.node.body) == 3
    assert target.origin.reason == ""
