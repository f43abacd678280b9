"""How an update is cut where the run doesn't say."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.train.test_step import GROUP, ROWS, WIDTH, config, difference, gradients, step, updater  # noqa: E402

from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train import pieces  # noqa: E402
from rlproof.train.pieces import KEPT, rows_at_once  # noqa: E402

DAPO = OBJECTIVES["dapo"].objective


def like(per_slot: int):
    """A model of one layer that keeps so many numbers a token: 15·H + 4·I with H = I."""
    return SimpleNamespace(
        hidden_size=per_slot // 19, intermediate_size=per_slot // 19, num_hidden_layers=1
    )


@pytest.mark.parametrize(
    ("times", "rows"),
    [
        (1.9, None),  # one piece of less than twice the aim
        (2.1, 2 * GROUP),  # two of two groups each
        (3.1, 2 * GROUP),  # three: of four groups, whole ones, two at a time
        (4.1, GROUP),
        (400.0, GROUP),  # never less than a group
    ],
)
def test_whole_groups_of_about_the_same_size(times, rows):
    each = int(KEPT * times / (ROWS * WIDTH) / 19 + 1) * 19
    assert rows_at_once(step(DAPO), like(each)) == rows


@pytest.mark.parametrize("gone", ["hidden_size", "num_hidden_layers", "intermediate_size"])
def test_a_model_that_does_not_say_its_widths_is_not_cut(gone):
    config = like(19 * 10**7)
    delattr(config, gone)
    assert rows_at_once(step(DAPO), config) is None


def test_the_gradient_is_that_of_all_rows_at_once(monkeypatch):
    data, found, sizes = step(DAPO), [], []
    cut = type(data).pieces
    monkeypatch.setattr(type(data), "pieces", lambda s, n: sizes.append(n) or cut(s, n))
    for kept in (KEPT, 100):
        monkeypatch.setattr(pieces, "KEPT", kept)
        one = updater(config(), DAPO)
        one.gradient(data)
        found.append(gradients(one))
    assert sizes == [None, GROUP]
    assert difference(found[1], found[0]) < 1e-9


@pytest.mark.parametrize("why", ["set", "processes", "recomputed"])
def test_it_is_not_cut_where_that_would_not_do(why, monkeypatch):
    monkeypatch.setattr(pieces, "KEPT", 100)
    one = updater(config(8 if why == "set" else None), DAPO)
    if why == "processes":
        one.ranks.world = 2
    if why == "recomputed":
        one.policy.scorer.causal.train()
    assert one._rows_at_once(step(DAPO)) == (8 if why == "set" else None)
