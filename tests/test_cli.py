"""The command line's contract: exit codes, formats, filters, configuration."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import rlproof
from rlproof.cli import main
from rlproof.faults.registry import catalogue

EXAMPLES = Path(__file__).parents[1] / "examples"
BROKEN, REPAIRED = str(EXAMPLES / "broken_trainer.py"), str(EXAMPLES / "repaired_trainer.py")


def run(*arguments: str, **options: object):
    return CliRunner().invoke(main, list(arguments), **options)  # type: ignore[arg-type]


def codes(result) -> set[str]:
    [file] = json.loads(result.stdout)["files"]
    return {finding["code"] for finding in file["findings"]}


def test_exit_codes():
    assert run("check", BROKEN).exit_code == 1
    assert run("check", REPAIRED).exit_code == 0
    assert run("check", "no-such-file.py").exit_code == 2
    assert run("check", BROKEN, "--select", "KLD010").exit_code == 0, "notes alone are clean"


def test_json_has_the_documented_shape():
    result = run("check", "--format", "json", BROKEN)
    document = json.loads(result.stdout)
    assert set(document) == {"schema", "version", "files"}
    assert (document["schema"], document["version"]) == (1, rlproof.__version__)
    [file] = document["files"]
    assert set(file) == {"path", "targets", "findings", "skipped"}
    assert file["path"] == BROKEN
    for target in file["targets"]:
        assert set(target) == {"role", "name", "line", "objective", "recipe"}
    for finding in file["findings"]:
        assert set(finding) == {
            *("code", "name", "severity", "line", "end_line"),
            *("function", "message", "evidence", "fix"),
        }
        assert set(finding["evidence"]) == {"input", "got", "expected"}
        assert set(finding["fix"]) == {"status", "diff"}
        assert finding["fix"]["status"] in {"verified", "suggested", "none"}
        assert (finding["fix"]["diff"] is None) == (finding["fix"]["status"] == "none")


def test_same_input_same_bytes():
    first, second = (run("check", "--format", "json", BROKEN).stdout for _ in range(2))
    assert first == second


def test_full_report_has_its_five_rows_and_a_caret():
    text = run("check", BROKEN).stdout
    block = text[text.index("SUR001") : text.index("rlproof explain SUR001")]
    for label in ("evidence", "why", "fix", "more"):
        assert f"  {label:<10}" in block
    assert "ratio = new_logps[i][t] / old_logps[i][t]" in block
    assert "^^^^" in block
    assert "got 0.8   expected 2" in block, "ln .5/ln .25 = .5, raised to 1 − ε by the max"
    assert "+ ratio = math.exp(new_logps[i][t] - old_logps[i][t])" in block


def test_concise_is_one_line_a_finding():
    lines = run("check", "--format", "concise", BROKEN).stdout.splitlines()
    findings = [line for line in lines if line.startswith(BROKEN)]
    assert len(findings) == 12
    assert findings[0].startswith(f"{BROKEN}:")
    assert lines[-1].startswith("Found 8 errors, 1 warning, 3 notes")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--select", "SUR"], {"SUR001", "SUR004", "SUR005"}),
        (["--select", "SUR", "--ignore", "optimistic-clip"], {"SUR001", "SUR005"}),
        (["--select", "kl-rewarded"], set()),
        (["--select", "MSK001,MSK002"], {"MSK001", "MSK002"}),
    ],
)
def test_select_and_ignore(options, expected):
    assert codes(run("check", "--format", "json", BROKEN, *options)) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", BROKEN, "--select", "SUR999"], "no fault is called 'SUR999'"),
        (["check", BROKEN, "--objective", "grpoo"], "did you mean grpo?"),
        (["explain", "no-such-fault"], "no fault is called"),
        (["check", BROKEN, "-o", "/nonexistent/report.txt"], "can't be written"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().split("\n")) == 1
    assert result.stdout == ""


def test_no_run_reports_what_the_source_proves_and_lists_the_rest():
    result = run("check", "--no-run", "--format", "json", BROKEN)
    assert codes(result) == {"ADV001", "ADV004", "MSK001", "MET001", "SUR001"}
    [file] = json.loads(result.stdout)["files"]
    assert {s["reason"] for s in file["skipped"]} == {"--no-run was given"}
    assert run("check", "--no-run", REPAIRED).exit_code == 5, "nothing was judged"


def test_output_file_is_written_whole(tmp_path):
    report = tmp_path / "report.json"
    result = run("check", "--format", "json", "-o", str(report), BROKEN)
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads(report.read_text())["schema"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_declared_objective_is_compared(tmp_path):
    script = tmp_path / "sequence_mean.py"
    script.write_text(
        "import numpy as np\n\n\n"
        "def policy_loss(logp, old_logp, adv, mask, eps_low=0.2, eps_high=0.28):\n"
        '    """Clipped policy loss."""\n'
        "    ratio = np.exp(logp - old_logp)\n"
        "    clipped = np.clip(ratio, 1 - eps_low, 1 + eps_high)\n"
        "    terms = -np.minimum(ratio * adv[:, None], clipped * adv[:, None]) * mask\n"
        "    return (terms.sum(1) / mask.sum(1)).mean()\n"
    )
    notes = {"LOP010", "MSK008"}
    assert codes(run("check", "--format", "json", str(script))) - notes == set()
    declared = run("check", "--format", "json", "--objective", "dapo", str(script))
    assert codes(declared) - notes == {"AGG006"}
    assert declared.exit_code == 1


def test_settings_come_from_pyproject(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rlproof]\nselect = ["SUR"]\nformat = "concise"\n'
    )
    monkeypatch.chdir(tmp_path)
    lines = run("check", BROKEN).stdout.splitlines()
    assert len([line for line in lines if "SUR" in line]) == 3
    assert len([line for line in lines if line.startswith(BROKEN)]) == 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("selekt = []", "did you mean select?"),
        ("timeout = 'soon'", "expected a number"),
        ("select = [1]", "expected a list of strings"),
        ("= broken", "can't be read as TOML"),
        ('format = "fancy"', "expected one of"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, monkeypatch, table, message):
    (tmp_path / "pyproject.toml").write_text(f"[tool.rlproof]\n{table}\n")
    monkeypatch.chdir(tmp_path)
    result = run("check", BROKEN)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("code", list(catalogue()))
def test_explain_takes_code_and_name(code):
    by_code, by_name = run("explain", code), run("explain", catalogue()[code].name)
    assert by_code.exit_code == by_name.exit_code == 0
    assert by_code.stdout == by_name.stdout
    assert by_code.stdout.startswith(f"# {code} ")


def test_faults_lists_all_of_them():
    text = run("faults").stdout
    assert all(f"{code}  " in text for code in catalogue())
    rows = json.loads(run("faults", "--format", "json").stdout)
    assert [row["code"] for row in rows] == list(catalogue())


def test_identify_names_the_coordinates():
    text = run("identify", REPAIRED).stdout
    assert "min-clip" in text
    assert "recipe             grpo" in text
    [file] = json.loads(run("identify", "--format", "json", REPAIRED).stdout)["files"]
    assert file["findings"] == []


def test_demo_keeps_its_promise():
    result = run("demo")
    assert result.exit_code == 0
    assert "its reward rises from 0.12 to 0.90" in result.stdout
    assert "LOP001" in result.stdout


def test_an_encoding_without_greek_gets_ascii():
    result = CliRunner(charset="ascii").invoke(main, ["check", BROKEN])
    assert result.exit_code == 1
    assert "pi_new = 0.5" in result.stdout


def test_examples_are_what_the_template_builds():
    from tests.support.trainers import trainer

    assert Path(BROKEN).read_text() == trainer("")
    assert Path(REPAIRED).read_text() == trainer("GERMSKOC")
