"""Which of many alike cases the fast suite runs; the others are marked slow, and CI runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """The first case is fast, and every `number`-th after it."""
    return [case if place % number == 0 else _slow(case) for place, case in enumerate(cases)]


def rarely(number: int, cases: Iterable[Any]) -> list[Any]:
    """The first case is slow, and every `number`-th after it; the others are exhaustive."""
    return [
        _marked(case, pytest.mark.exhaustive if place % number else pytest.mark.slow)
        for place, case in enumerate(cases)
    ]


def only(few: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """These cases are fast."""
    chosen = list(few)
    return [case if case in chosen else _slow(case) for case in cases]


def _slow(case: Any) -> Any:
    return _marked(case, pytest.mark.slow)


def _marked(case: Any, mark: Any) -> Any:
    values = case if type(case) is tuple else (case,)
    return pytest.param(*values, marks=mark)
