"""Every rule has a page, whose example raises it and whose healthy twin raises nothing."""

import pytest

from rlproof.faults.model import Severity
from rlproof.faults.registry import catalogue
from rlproof.watch.command import inspect_path
from rlproof.watch.rules.page import parse
from rlproof.watch.rules.registry import find, page, rules
from rlproof.watch.vocabulary import load

RULES = rules()


def inspected(example, folder):
    """The inspection of one block of a page."""
    path, facts = folder / "run.jsonl", ""
    if example.language == "python":
        space = {"PATH": str(path)}
        exec(compile(example.text, "page.py", "exec"), space)
        facts = space.get("FACTS", "")
    else:
        lines = example.text.splitlines()
        if lines[0].startswith("# facts:"):
            facts = lines.pop(0).removeprefix("# facts:")
        path.write_text("\n".join(lines) + "\n")
    return inspect_path(str(path), tuple(f.strip() for f in facts.split(",") if f.strip()))


@pytest.mark.parametrize("code", RULES)
def test_the_example_raises_the_rule(code, tmp_path):
    shown = inspected(page(code).planted, tmp_path)
    found = shown.normal if RULES[code].normal else shown.findings
    assert code in {f.rule.code for f in found}


@pytest.mark.parametrize("code", RULES)
def test_the_healthy_twin_raises_nothing(code, tmp_path):
    shown = inspected(page(code).healthy, tmp_path)
    assert [f.rule.code for f in shown.findings if f.severity is not Severity.NOTE] == []
    assert code not in {f.rule.code for f in (*shown.findings, *shown.normal)}
    assert shown.exit_code == 0


@pytest.mark.parametrize("code", RULES)
def test_a_rule_says_what_it_is(code):
    rule = RULES[code]
    assert page(code).title == f"{code} {rule.name}"
    assert rule.summary
    assert rule.remedy
    assert set(rule.faults) <= set(catalogue())
    assert rule.normal == code.startswith("QST")
    if rule.about == "log":
        assert set(rule.needs) <= {metric.name for metric in load().metrics}


def test_names_are_apart_from_each_other_and_from_the_faults():
    names = [rule.name for rule in RULES.values()] + [f.name for f in catalogue().values()]
    twice = {name for name in names if names.count(name) > 1}
    assert twice == set()


def test_a_rule_is_found_by_code_and_name():
    assert find("log001") is RULES["LOG001"]
    assert find("Old-Log-Probs-Follow") is RULES["STP006"]
    assert find("SUR004") is None


def test_a_page_without_a_heading_is_refused():
    with pytest.raises(ValueError, match="has headings"):
        parse("# LOG999 nothing\n\n## Why\nbecause\n")
