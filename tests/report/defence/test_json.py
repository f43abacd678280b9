"""The defence as JSON: schema 1."""

import json

import pytest
from tests.defence import scripts

import rlproof
from rlproof.defence.claims import Computed
from rlproof.defence.script import defend_script
from rlproof.defence.trainer import TrainerDefence, defend_trainer
from rlproof.lab.claims.model import number
from rlproof.lab.claims.registry import find
from rlproof.read.script import read
from rlproof.report.defence import json as report


def test_the_tiny_trainer_has_the_documented_shape():
    defence = defend_trainer(["A3"])
    document = json.loads(report.trainer(defence))
    assert set(document) == {"schema", "version", "target", "holds", "lines", "claims"}
    assert (document["schema"], document["version"]) == (1, rlproof.__version__)
    for line in document["lines"]:
        assert set(line) == {"function", "line", "end_line", "code", "claims", "why"}
    (claim,) = document["claims"]
    assert set(claim) == {
        *("id", "name", "title", "holds", "error", "statement", "conditions", "proof"),
        *("refutes", "sources", "numbers"),
    }
    for one, meant in zip(claim["numbers"], defence.computed[0].numbers, strict=True):
        assert set(one) == {"name", "value", "expected", "tolerance", "origin", "ok"}
        assert one["ok"] is True
        got = tuple(one["value"]) if isinstance(one["value"], list) else one["value"]
        assert got == meant.value, "numbers of claims are exact"


def test_what_is_not_finite_is_a_word():
    odd = number("a", float("inf"), 1.0, 1e-9, "proof")
    document = json.loads(report.trainer(TrainerDefence((), (Computed(find("A3"), (odd,)),))))
    assert document["claims"][0]["numbers"][0]["value"] == "inf"
    assert document["holds"] is False


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "script.py"
    path.write_text(scripts.LOG_RATIO, encoding="utf-8")
    defence = defend_script(read(str(path)), seconds=60)
    return defence, json.loads(report.script(defence, [Computed(find("A3"))]))


def test_a_script_has_the_documented_shape(script):
    defence, document = script
    assert set(document) == {
        *("schema", "version", "target", "optimises", "measurements", "recipes"),
        *("objections", "claims", "skipped"),
    }
    for one in document["optimises"]:
        assert set(one) == {"loss", "line", "advantages", "says", "formulas", "facts"}
    for part in document["measurements"]:
        assert set(part) == {
            *("key", "title", "function", "line", "claims", "says", "facts", "tables"),
        }
        for table in part["tables"]:
            assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for one in document["objections"]:
        assert set(one) == {
            *("code", "name", "severity", "line", "function", "message", "claims"),
        }
    (facts,) = (one["facts"] for one in document["optimises"])
    assert facts["direction"] == "down"
    assert facts["objective"] is None
    assert len(defence.parts) == len(document["measurements"])


def test_noise_of_differences_is_not_printed(script):
    _, document = script
    (clip,) = (p for p in document["measurements"] if p["key"] == "clip")
    slopes = [v for k, v in clip["facts"].items() if k.startswith("slope")]
    assert all(v == 0 or abs(v) > 1e-9 for v in slopes)
    assert any(v == 0 for v in slopes)
