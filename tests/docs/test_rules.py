"""Every rule of `inspect` has its place on the site, and its JSON its schema."""

import copy
import json
import re
from pathlib import Path

import jsonschema
import pytest
from rlproof_docs import rules as generated
from tests.watch.rules.test_pages import inspected

from rlproof.watch import report
from rlproof.watch.rules.page import HEADINGS
from rlproof.watch.rules.registry import page, rules

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/inspection-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_page_has_every_rule_once():
    text = generated.document()
    links = re.findall(r"^\| \[([A-Z]{3}\d{3})\]\(#rule-", text, re.MULTILINE)
    assert sorted(links) == list(rules())
    assert re.findall(r"^\(rule-(\w+)\)=$", text, re.M) == [code.lower() for code in links]
    assert text.count("\n#### ") == len(HEADINGS) * len(links)


def test_every_family_has_a_title():
    assert {code[:3] for code in rules()} == set(generated.FAMILIES)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("code", rules())
def test_reports_follow_the_schema(tmp_path, code):
    for example in (page(code).planted, page(code).healthy):
        document = json.loads(report.json(inspected(example, tmp_path)))
        VALIDATOR.validate(document)
        for path in tmp_path.iterdir():
            path.unlink()


def test_the_schema_refuses_what_is_not_a_report(tmp_path):
    document = json.loads(report.json(inspected(page("LOG009").planted, tmp_path)))
    wrong = copy.deepcopy(document)
    wrong["findings"][0]["severity"] = "fatal"
    assert not VALIDATOR.is_valid(wrong)
    wrong = copy.deepcopy(document)
    del wrong["seen"]
    assert not VALIDATOR.is_valid(wrong)
