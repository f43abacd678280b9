"""The table of spellings is about published points, and its version ranges are ranges."""

from __future__ import annotations

import re

import pytest

from rlproof.space.published import OBJECTIVES
from rlproof.space.spellings import CHECKS, NEWEST_READ, NO_SPELLING, SPELLINGS, spellings_of

ROWS = [(name, row) for name, rows in SPELLINGS.items() for row in rows]
IDS = [f"{name}-{row.framework}-{row.since}" for name, row in ROWS]
VERSION = re.compile(r"(≤ )?(skyrl-train |skyrl )?v?(\d+(?:\.\d+)+)(?:\.?(dev|post|rc)(\d+))?")
_TAIL = {"dev": -2, "rc": -1, None: 0, "post": 1}  # the order of PEP 440


def parsed(version: str) -> tuple[bool, tuple[int, ...], int, int]:
    """A key that orders versions; skyrl follows skyrl-train."""
    match = VERSION.fullmatch(version)
    assert match, version
    _, series, numbers, tail, count = match.groups()
    release = tuple(int(part) for part in numbers.split("."))
    return series == "skyrl ", release, _TAIL[tail], int(count or 0)


def test_versions_are_ordered() -> None:
    ordered = [
        "skyrl-train 0.1.0",
        "skyrl-train 0.3.1",
        "skyrl 0.1.0",
        "skyrl 0.10.0",
    ]
    assert sorted(ordered, key=parsed) == ordered
    tails = ["v0.5.1.dev38", "v0.5.1.dev215", "1.0.0rc1", "1.0.0", "1.0.0.post1", "1.10.0"]
    assert sorted(tails, key=parsed) == tails


def test_keys_are_published_names() -> None:
    assert set(SPELLINGS) <= set(OBJECTIVES)
    assert set(NO_SPELLING) <= set(OBJECTIVES)


def test_every_published_point_has_a_spelling_or_a_reason_for_none() -> None:
    assert set(SPELLINGS) | set(NO_SPELLING) == set(OBJECTIVES)
    assert not set(SPELLINGS) & set(NO_SPELLING)
    assert all(SPELLINGS.values())
    assert all(NO_SPELLING.values())


def test_lookup() -> None:
    assert spellings_of("grpo") is SPELLINGS["grpo"]
    assert spellings_of("topr") == ()
    with pytest.raises(KeyError, match="grpoo"):
        spellings_of("grpoo")


@pytest.mark.parametrize(("name", "row"), ROWS, ids=IDS)
def test_ranges(name, row) -> None:
    first = parsed(row.since)
    last = parsed(row.until or NEWEST_READ[row.framework])
    assert first <= last
    assert last <= parsed(NEWEST_READ[row.framework])
    assert row.until is None or "≤" not in row.until


@pytest.mark.parametrize(("name", "row"), ROWS, ids=IDS)
def test_words(name, row) -> None:
    assert row.options
    assert row.checked in CHECKS
    assert not row.note or row.note.endswith(".")
    assert "`" not in row.options, "the page sets options in code marks"


@pytest.mark.parametrize("name", SPELLINGS)
def test_no_row_is_there_twice(name) -> None:
    """One set of options has ranges that do not meet."""
    for number, one in enumerate(SPELLINGS[name]):
        for other in SPELLINGS[name][number + 1 :]:
            if (one.framework, one.options) == (other.framework, other.options):
                assert one.until is not None, "the earlier range comes first"
                assert parsed(one.until) < parsed(other.since)


def test_the_scale_of_trl_is_the_other_way_round_in_two_releases() -> None:
    """TRL 0.22.0 and 0.22.1, run from their own source: 'none' divides by the group's std."""
    within = {
        name: [
            row.options
            for row in SPELLINGS[name]
            if row.framework == "TRL" and row.since == "0.22.0" and row.until == "0.22.1"
        ]
        for name in ("grpo", "bnpo", "dr_grpo")
    }
    assert all("scale_rewards='none'" in options for options in within["grpo"] + within["bnpo"])
    assert ["scale_rewards='group'" in options for options in within["dr_grpo"]] == [True]


@pytest.mark.parametrize(
    "name", [n for n, p in OBJECTIVES.items() if p.objective.advantage.scale == "sample-std"]
)
def test_no_trl_row_with_the_default_scale_covers_the_releases_without_a_std(name) -> None:
    for row in spellings_of(name):
        if row.framework == "TRL" and "scale_rewards" not in row.options:
            covers = parsed(row.since) <= parsed("0.22.1")
            assert not (covers and (row.until is None or parsed(row.until) >= parsed("0.22.0")))


@pytest.mark.parametrize(
    "name", [n for n, p in OBJECTIVES.items() if p.objective.surrogate == "min-clip"]
)
def test_verl_rows_of_a_min_clip_move_the_dual_clip_away(name) -> None:
    """verl's vanilla loss has the dual clip on by default; a gspo loss has none."""
    for row in spellings_of(name):
        if row.framework == "verl" and "loss_mode=" not in row.options:
            assert "clip_ratio_c=1e9" in row.options
