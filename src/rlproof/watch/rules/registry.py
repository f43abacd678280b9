"""All rules: every module of this package named like a code, in order."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from rlproof.faults.registry import coded
from rlproof.watch.rules.model import Rule
from rlproof.watch.rules.page import Page, parse


@cache
def rules() -> dict[str, Rule]:
    """All rules by code, sorted. Adding a file adds a rule; there is no list to keep."""
    return {rule.code: rule for rule in coded("rlproof.watch.rules", "RULE")}


@cache
def page(code: str) -> Page:
    """The page of the rule with this code."""
    file = files("rlproof.watch.rules").joinpath(f"{code.lower()}.md")
    return parse(file.read_text("utf-8"))


def find(code_or_name: str) -> Rule | None:
    """The rule with this code or name, in any case, or None."""
    wanted = code_or_name.strip().lower()
    known = rules().values()
    return next((rule for rule in known if wanted in (rule.code.lower(), rule.name)), None)
