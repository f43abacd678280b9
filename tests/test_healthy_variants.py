"""Published variants, however they are spelled: no error, no warning, and the right names.

A wrong alarm on a healthy script is the worst thing `check` can do, so the table is wide: every
coordinate of the space occurs, in plain lists, NumPy and torch.
"""

from __future__ import annotations

import ast
import json

import pytest

from rlproof.checks import Options, check_paths
from tests.support.sampling import one_in
from tests.support.variants import VARIANTS, Variant

_OPTIONS = Options.resolve((), (), None, True, None, None)


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.name)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    variant: Variant = request.param
    if "import torch" in variant.text:
        pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("variant") / "script.py"
    path.write_text(variant.text, encoding="utf-8")
    outcome = check_paths((str(path),), _OPTIONS)
    assert outcome.failures == []
    (report,) = json.loads(outcome.render("json", 100))["files"]
    return variant, report, outcome


def near(value):
    # 1 %: eps is read off to two digits; the other numbers are exact to six.
    return value if isinstance(value, str) else pytest.approx(value, rel=1e-2)


def test_healthy_variant(case):
    variant, report, outcome = case
    alarms = [(f["severity"], f["code"], f["line"]) for f in report["findings"]]
    assert [alarm for alarm in alarms if alarm[0] != "note"] == []
    assert {code for _, code, _ in alarms} <= {"KLD010", "LGP004", "LOP010", "MSK008"}
    assert outcome.exit_code == 0

    checks = {f"{verb} {name}" for verb in ("running", "identifying") for name in variant.functions}
    assert [s for s in report["skipped"] if s["check"] in checks] == []

    targets = {target["name"]: target for target in report["targets"]}
    for name, expected in variant.functions.items():
        found = targets[name]["objective"]
        assert {key: found.get(key) for key in expected} == {
            key: near(value) for key, value in expected.items()
        }
        assert not set(variant.absent) & set(found)
        if targets[name]["role"] == "loss":
            assert targets[name]["recipe"] == variant.recipe


@pytest.mark.parametrize("variant", one_in(4, VARIANTS), ids=lambda variant: variant.name)
def test_variant_is_a_script(variant):
    # What `check` never does: the script as a whole is valid and its top level runs.
    if "import torch" in variant.text:
        pytest.importorskip("torch")
    namespace: dict[str, object] = {}
    exec(compile(ast.parse(variant.text), variant.name, "exec"), namespace)
    assert set(variant.functions) <= set(namespace)


def test_names_are_unique():
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == len(names)
