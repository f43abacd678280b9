"""docs/schema describes what `check`, `identify` and `defend` really write."""

import copy
import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.faults.model import Severity
from rlproof.faults.page import page
from rlproof.read.targets import Role

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/report-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DEFENCE = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs/schema/defence-1.schema.json").read_text("utf-8"))
)


def report(*arguments):
    result = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert result.exit_code in (0, 1, 5), result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def broken():
    return report("check", str(ROOT / "examples/broken_trainer.py"))


@pytest.mark.parametrize("validator", [VALIDATOR, DEFENCE])
def test_the_schema_is_one(validator):
    jsonschema.Draft202012Validator.check_schema(validator.schema)


def test_a_report_with_findings(broken):
    VALIDATOR.validate(broken)
    assert broken["files"][0]["findings"]


def test_coordinates_of_the_broken_trainer_are_described(broken):
    described = set(SCHEMA["$defs"]["objective"]["properties"])
    for target in broken["files"][0]["targets"]:
        assert set(target["objective"]) <= described


@pytest.mark.parametrize("code", ["ADV009", "SUR009", "LGP002", "MSK003", "KLD005"])
def test_reports_on_pages_of_faults(code, tmp_path):
    """Among them evidence with NaN, which JSON has no number for."""
    script = tmp_path / "script.py"
    script.write_text(page(code).planted, "utf-8")
    VALIDATOR.validate(report("check", str(script)))
    VALIDATOR.validate(report("identify", str(script)))


def test_a_report_with_skipped_checks():
    found = report("check", str(ROOT / "docs/examples/opaque.py"))
    VALIDATOR.validate(found)
    assert found["files"][0]["skipped"]


def test_roles_and_severities_are_those_of_the_code():
    definitions = SCHEMA["$defs"]
    assert definitions["target"]["properties"]["role"]["enum"] == [str(role) for role in Role]
    severities = definitions["finding"]["properties"]["severity"]["enum"]
    assert severities == [str(severity) for severity in Severity]


def test_the_page_names_every_role():
    listed = re.search(r"- `role`: (.*?)\.\n", (ROOT / "docs/json.md").read_text("utf-8"), re.S)[1]
    assert set(re.findall(r"`([\w-]+)`", listed)) == {str(role) for role in Role}


def test_the_page_and_the_schema_name_the_same_coordinates():
    page = (ROOT / "docs/json.md").read_text("utf-8")
    listed = re.search(r"- `objective`: (.*?)\n- ", page, re.S)[1]
    words = set(re.findall(r"`(\w+)`", listed)) - {"reference", "log"}  # values, not axes
    assert words == set(SCHEMA["$defs"]["objective"]["properties"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.pop("version"),
        lambda r: r.update(schema=2),
        lambda r: r["files"][0].update(extra=1),
        lambda r: r["files"][0]["findings"][0].update(severity="fatal"),
        lambda r: r["files"][0]["findings"][0]["fix"].pop("diff"),
        lambda r: r["files"][0]["targets"][0].update(line=0),
    ],
)
def test_the_schema_refuses_what_is_no_report(broken, spoil):
    spoilt = copy.deepcopy(broken)
    spoil(spoilt)
    assert not VALIDATOR.is_valid(spoilt)


def test_the_defence_of_a_script():
    found = report("defend", str(ROOT / "examples/broken_trainer.py"))
    DEFENCE.validate(found)
    for part in ("optimises", "measurements", "objections", "claims"):
        assert found[part], part
    found["objections"][0]["severity"] = "fatal"
    assert not DEFENCE.is_valid(found)


def test_the_defence_of_the_tiny_trainer():
    found = report("defend", "--only", "A1,B1")
    DEFENCE.validate(found)
    assert [claim["id"] for claim in found["claims"]] == ["A1", "B1"]
    del found["claims"][0]["numbers"][0]["origin"]
    assert not DEFENCE.is_valid(found)
