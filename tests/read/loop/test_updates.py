import ast

import pytest
from tests.support.reading_loops import loop_of

from rlproof.read.loop.events import Kind
from rlproof.read.loop.updates import Loss, accumulates, token_mean


def loss(body: str) -> Loss:
    lines = "\n            ".join(body.split("\n"))
    loop = loop_of(f"""
        def helper(x, n):
            y = x.mean() / n
            return y, {{}}

        def train(x, accum_steps):
            {lines}
    """)
    [event] = [e for e in loop.events if e.kind is Kind.BACKWARD]
    return Loss(loop.passes, event)


@pytest.mark.parametrize(
    ("body", "divisors", "core"),
    [
        ("(x.mean() / 4).backward()", ["4"], "x.mean()"),
        ("l = x.mean()\nl = l / accum_steps\nl.backward()", ["accum_steps"], "x.mean()"),
        ("l = x.mean()\nl /= accum_steps\nl.backward()", ["accum_steps"], "x.mean()"),
        ("l, _ = helper(x, accum_steps)\n(-l / 2).backward()", ["2", "n"], "x.mean()"),
        ("l = (x * m).sum() / m.sum()\nl.backward()", [], "(x * m).sum() / m.sum()"),
    ],
)
def test_what_a_loss_is_divided_by(body, divisors, core):
    seen = loss(body)
    assert seen.certain
    assert [ast.unparse(d.divisor) for d in seen.divisions] == divisors
    assert ast.unparse(seen.core[0]) == core


def test_a_condition_leaves_it_open():
    assert not loss("l = x.mean()\nif scaled:\n    l = l / 2\nl.backward()").certain


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("(x * mask).sum() / mask.sum()", "mask"),
        ("(x * mask).sum() / mask.sum().clamp(min=1)", "mask"),
        ("(x * mask).sum() / (mask.sum() + 1e-8)", "mask"),
        ("torch.sum(x * mask) / max(mask.sum(), 1)", "mask"),
        ("(x * mask).sum(1) / mask.sum(1)", None),
        ("(x * mask).sum() / total", None),
        ("(x * mask).sum() / x.sum()", None),
        ("x.mean()", None),
    ],
)
def test_token_means(text, mask):
    found = token_mean(ast.parse(text, mode="eval").body)
    assert (ast.unparse(found) if found is not None else None) == mask


@pytest.mark.parametrize(
    ("tail", "accumulated"),
    [
        ("        if i % 4 == 0:\n            optimizer.step()", True),
        ("    optimizer.step()", True),
        ("        optimizer.step()", False),
        ("        if ready:\n            optimizer.step()", False),
    ],
)
def test_accumulation(tail, accumulated):
    text = f"def train(x):\n    for i in data:\n        x.backward()\n{tail}\n"
    loop = loop_of(text)
    [event] = [e for e in loop.events if e.kind is Kind.BACKWARD]
    assert (accumulates(event, loop.events) is not None) == accumulated
