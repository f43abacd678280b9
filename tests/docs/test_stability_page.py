"""The page of what is stable names what is there: modules, numbers of documents, exit codes."""

import importlib
import json
import re
from pathlib import Path

import pytest

import rlproof
from rlproof.errors import ConfigError, NothingToCheckError, RlproofError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "stability.md").read_text("utf-8")
NEEDS = {"rlproof.train": "transformers", "rlproof.integrations.trl": "trl"}


def rows(heading):
    """The cells of the table under a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


MODULES = {re.findall(r"`(.+?)`", module)[0]: re.findall(r"`(.+?)`", names)
           for module, names in rows("Public names")}  # fmt: skip


def test_the_package_exports_what_the_page_says():
    assert sorted(rlproof.__all__) == sorted(MODULES["rlproof"])


@pytest.mark.parametrize("module", MODULES)
def test_public_names_exist(module):
    if module in NEEDS:
        pytest.importorskip(NEEDS[module], reason=f"{NEEDS[module]} is not installed")
    imported = importlib.import_module(module)
    for name in MODULES[module]:
        assert getattr(imported, name) is not None
    if hasattr(imported, "__all__"):
        assert set(MODULES[module]) <= set(imported.__all__)


def test_public_errors_are_one_family():
    imported = importlib.import_module("rlproof.errors")
    assert all(issubclass(getattr(imported, n), RlproofError) for n in MODULES["rlproof.errors"])


def test_exit_codes_of_errors_are_those_of_the_page():
    assert (ConfigError.exit_code, NothingToCheckError.exit_code) == (2, 5)
    assert "2 usage or internal error, 5 nothing" in " ".join(PAGE.split())


@pytest.mark.parametrize("row", rows("Documents"), ids=lambda row: row[0])
def test_documents_have_the_number_of_the_page(row):
    number = int(re.search(r"\"schema\": (\d+)", row[1])[1])
    path = ROOT / "docs" / "schema" / Path(re.search(r"\((.+)\)", row[2])[1]).name
    schema = json.loads(path.read_text("utf-8"))
    forms = [schema, *schema.get("$defs", {}).values()]
    numbers = [form["properties"]["schema"]["const"] for form in forms
               if "schema" in form.get("properties", {})]  # fmt: skip
    assert numbers
    assert set(numbers) == {number}
