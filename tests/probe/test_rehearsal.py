"""How a rehearsal is set up from what a script says."""

import ast

import pytest

from rlproof.probe.rehearsal import group_size, interleavings
from rlproof.read.driver import driver, sampler_beside
from rlproof.read.uses import uses


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("GROUP_SIZE = 8", 8),
        ("def f(x, num_generations=4): pass", 4),
        ("f(group_size=6)", 6),
        ("def f(x, group_size): pass", 3),  # spoken of, without a number
        ("group_size = 7", 3),  # 24 rows can't be cut so
        ("def f(x): return x", None),
    ],
)
def test_the_size_of_groups(text, size):
    assert group_size(ast.parse(text)) == size


def test_interleavings_deal_the_same_things_out():
    orders = interleavings({"rows": 6, "group": 3, "grouped": False}, [0, 1, 2, 3])
    assert orders[0] == [0, 2, 1, 3, 4, 5]  # by place modulo 2; 4 and 5 stay
    assert all(sorted(order) == list(range(6)) for order in orders)


SCRIPT = """
def loss(x): return x
def update(x):
    loss(x).backward()
def main():
    update(1)
class Trainer:
    def sample(self): return self.model.generate(1)
    def score(self): return 1
    def fit(self):
        def inner(): pass
        self.score()
"""


def test_what_is_called_is_what_makes_the_step():
    tree = ast.parse(SCRIPT)
    assert driver(tree, "loss") == "update"
    assert driver(tree, "update") == "update"
    assert driver(tree, "Trainer.score") == "Trainer.fit"
    assert driver(tree, "inner") is None
    assert sampler_beside(tree, "Trainer.score") == "Trainer.sample"


def test_what_names_are_used_for():
    found = uses(ast.parse('for a, b in loader:\n    r = reward(a["ids"])\n    a.get("mask")'))
    assert found["loader"]["items"] == ["a", "b"]
    assert found["reward"]["called"]
    assert "ids" in found["a"]["keys"]
