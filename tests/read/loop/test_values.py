import ast
from textwrap import dedent

import pytest

from rlproof.read.loop.values import Values

TEXT = dedent("""
    from dataclasses import dataclass, field

    TOP = 0.9
    LOW = -1
    TWICE = 1
    TWICE = 2

    @dataclass
    class Config:
        temperature: float = 0.7
        group: int = field(default=8)
        mixed: int = 1
        needed: int

    parser.add_argument("--num-epochs", type=int, default=4)
    settings = {"top_k": 50}
    other = Config(mixed=2)

    class Trainer:
        def __init__(self, speed=3):
            self.speed = speed

    def f(rate=0.5, size=TOP, unknown=None, given): ...
""").replace("unknown=None, given", "given=None")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("TOP", 0.9),
        ("LOW", -1),
        ("TWICE", "?"),
        ("cfg.temperature", 0.7),
        ("self.config.group", 8),
        ("cfg.mixed", "?"),
        ("cfg.needed", "?"),
        ("args.num_epochs", 4),
        ('settings["top_k"]', 50),
        ("rate", 0.5),
        ("size", 0.9),
        ("given", None),
        ("nobody", "?"),
        ("cfg.rate", "?"),
        ("self.speed", 3),
        ("a + b", "?"),
    ],
)
def test_numbers(expression, value):
    found = Values(ast.parse(TEXT)).number(ast.parse(expression, mode="eval").body)
    assert (found.value if found else "?") == value
