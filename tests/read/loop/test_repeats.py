import ast

import pytest
from tests.support.reading_loops import loop_of

from rlproof.read.loop.repeats import epoch_loop, rounds
from rlproof.read.loop.values import Values


def epochs_around(body: str, before: str = "") -> int | None:
    loop = loop_of(f"""
        def train(model, ids, buffer, runner, optimizer):
            {before or "pass"}
            for step in range(9):
                {body}
                x.backward()
                optimizer.step()
    """)
    [forward] = loop.passes.forwards
    found = epoch_loop(loop.passes, loop.events, forward)
    return found.lineno if found else None


@pytest.mark.parametrize(
    "body",
    [
        "x = model(ids)",
        "x = model(ids[:, 1:].to('cuda'))",
        "x = model(ids[torch.randperm(len(ids))])",
        "x = model(buffer.ids)",
        "x = [model(rows) for rows in ids.split(4)][0]",
    ],
)
def test_the_same_data_in_every_round(body):
    assert epochs_around(body) == 4


@pytest.mark.parametrize(
    "body",
    [
        "x = model(make())",
        "x = model(buffer.sample())",
        "x = model(step)",
        "ids = collect(); x = model(ids)",
        "x = model(model.generate(ids))",
        "runner.run(); x = model(runner.ids)",
        "fill(buffer); x = model(buffer.ids)",
        "buffer.append(1); x = model(buffer)",
        "ids += 1; x = model(ids)",
    ],
)
def test_data_that_may_be_others_in_each_round(body):
    assert epochs_around(body) is None


@pytest.mark.parametrize(
    ("head", "times"),
    [
        ("for _ in range(4)", 4),
        ("for _ in range(1, E)", 2),
        ("for _ in tqdm(range(E))", 3),
        ("for _ in range(unknown)", None),
        ("for x in data", None),
        ("while True", None),
    ],
)
def test_rounds(head, times):
    tree = ast.parse(f"E = 3\n{head}:\n    pass")
    assert rounds(Values(tree), tree.body[1]) == times
