"""JSON, ASCII, the sentence on an objective, the table of coordinates, and writing to a file."""

import json as plain_json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.errors import ConfigError
from rlproof.faults.model import Evidence, Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus, Skipped, TargetReport
from rlproof.report import json
from rlproof.report.ascii import _WORDS, to_ascii
from rlproof.report.coordinates import table
from rlproof.report.describe import sentence
from rlproof.report.write import write_atomically

FAULT = catalogue()["SUR004"]
POINT = {
    "ratio": "token",
    "surrogate": "min-clip",
    "clip_low": 0.2,
    "clip_high": 0.28,
    "clip_from": "constant",
    "divergence": "k3",
    "divergence_weight": 0.04,
    "beta_from": "constant",
    "aggregation": "token-mean",
    "level": "token",
}
EDIT = Fix(FixStatus.SUGGESTED, "take the smaller", "--- a\n")
NAN, INF = float("nan"), float("inf")


def loss(recipe=None, **changes):
    point = {k: v for k, v in {**POINT, **changes}.items() if v is not None}
    return TargetReport("loss", "f", 1, point, recipe)


def document(*findings, targets=(), skipped=()):
    return plain_json.loads(json.render([FileReport("a.py", targets, findings, skipped)]))


def test_json_document():
    """The keys are those of docs/json.md."""
    evidence = Evidence("input", 0.8, 0.5)
    found = Finding(FAULT, Severity.ERROR, Place("f", 2, 3, 4, 5), "wrong", evidence, EDIT)
    got = document(found, targets=(loss("dapo"),), skipped=(Skipped("running g", "why"),))
    assert list(got) == ["schema", "version", "files"]
    assert got["schema"] == 1
    (file,) = got["files"]
    assert file["targets"] == [
        {"role": "loss", "name": "f", "line": 1, "objective": POINT, "recipe": "dapo"}
    ]
    assert file["findings"] == [
        {
            "code": "SUR004",
            "name": "optimistic-clip",
            "severity": "error",
            "line": 2,
            "end_line": 3,
            "function": "f",
            "message": "wrong",
            "evidence": {"input": "input", "got": 0.8, "expected": 0.5},
            "fix": {"status": "suggested", "diff": "--- a\n"},
        }
    ]
    assert file["skipped"] == [{"check": "running g", "reason": "why"}]


def test_json_without_evidence_or_edit():
    got = document(Finding(FAULT, Severity.NOTE, Place("f", 1, 1), "m"))["files"][0]["findings"][0]
    assert got["evidence"] is None
    assert got["fix"] == {"status": "none", "diff": None}


@pytest.mark.parametrize(
    ("value", "shown"),
    [(NAN, "nan"), (INF, "inf"), (-INF, "-inf"), ([1.0, NAN], [1.0, "nan"]), ("word", "word")],
)
def test_json_has_words_for_what_it_has_no_numbers_for(value, shown):
    found = Finding(FAULT, Severity.ERROR, Place("f", 1, 1), "m", Evidence("i", value, value))
    evidence = document(found)["files"][0]["findings"][0]["evidence"]
    assert evidence["got"] == evidence["expected"] == shown
    target = TargetReport("loss", "f", 1, {"eps": value})
    assert document(targets=(target,))["files"][0]["targets"][0]["objective"]["eps"] == shown


def test_json_is_the_same_bytes_again_and_strict():
    text = json.render([FileReport("ä.py", (loss(),))])
    assert text == json.render([FileReport("ä.py", (loss(),))])
    assert text.endswith("}\n")
    assert "ä.py" in text
    plain_json.loads(json.render([]), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("ρ·A ≤ 1−ε", "rho*A <= 1-eps"),
        ("√(Σ(r − r̄)²/G)", "sqrt (sum (r - r?)^2/G)"),  # the bar over r is a character of its own
        ("π_new ‖ π_ref", "pi_new || pi_ref"),
        ("plain", "plain"),
        ("漢", "?"),
    ],
)
def test_ascii(text, spelt):
    assert to_ascii(text) == spelt


@given(st.text())
@settings(derandomize=True, deadline=None)
def test_ascii_is_ascii_and_keeps_ascii(text):
    assert to_ascii(text).isascii()
    if text.isascii():
        assert to_ascii(text) == text


def test_words_for_symbols_are_ascii():
    assert all(word.isascii() and not symbol.isascii() for symbol, word in _WORDS.items())


@pytest.mark.parametrize("page", sorted(catalogue()))
def test_what_a_fault_says_can_be_spelt_in_ascii(page):
    fault = catalogue()[page]
    spoken = [fault.summary, fault.remedy, fault.plant.blame if fault.plant else ""]
    assert "?" not in to_ascii(" ".join(spoken).replace("?", ""))


SENTENCES = [
    (loss(), "ratio exp(new − old), min-clip 0.2/0.28, 0.04·k3, token-mean"),
    (loss("dapo"), "ratio exp(new − old), min-clip 0.2/0.28, 0.04·k3, token-mean = dapo"),
    (
        loss(clip_from="arguments", beta_from="arguments", divergence_weight=1.0),
        "ratio exp(new − old), min-clip at the range given, β·k3, token-mean",
    ),
    (
        loss(beta_from="arguments", divergence_weight=-0.5),
        "ratio exp(new − old), min-clip 0.2/0.28, −0.5·β·k3, token-mean",
    ),
    (
        loss(level="sequence-mean", cap=3.0, divergence="none"),
        "ratio exp(new − old) per sequence (geometric mean), min-clip 0.2/0.28, cap 3, "
        "no divergence, token-mean",
    ),
    (
        TargetReport("loss", "f", 1, {"ratio": "detached", "surrogate": "unclipped"}),
        "ratio exp(new − stop(new)) = 1, unclipped, unknown divergence, unknown aggregation",
    ),
    (loss(ratio="novel"), "novel, min-clip 0.2/0.28, 0.04·k3, token-mean"),
    (loss(surrogate=None), ""),
    (TargetReport("train", "t", 1), ""),
    (
        TargetReport("advantages", "a", 1, {"baseline": "group-mean", "scale": "none"}),
        "reward minus group-mean",
    ),
    (
        TargetReport("advantages", "a", 1, {
            "baseline": "group-mean", "scale": "sample-std", "sign": "inverted", "factor": 2.0,
            "eps": 1e-6, "eps_place": "added"}),
        "inverted: 2 × reward minus group-mean, divided by sample-std (eps 1e-06, added)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("target", "words"), SENTENCES)
def test_sentence(target, words):
    assert sentence(target) == words


def test_table_of_coordinates():
    report = FileReport(
        "a.py",
        (loss(level=None, ratio="novel"), TargetReport("train", "t", 5)),
        skipped=(Skipped("running t", "why"),),
    )
    rows = table([report]).splitlines()
    assert rows[0] == "a.py:1: f (loss)"
    assert f"    {'clip_low':<17}  0.2" in rows  # the longest axis, divergence_weight, has 17
    assert rows[-2] == f"    {'recipe':<17}  none of the named ones"
    assert rows[-1] == "skipped a.py: running t: why"
    assert not any("(train)" in row for row in rows)


def test_file_is_written_whole(tmp_path):
    path = tmp_path / "report.txt"
    path.write_text("before")
    write_atomically(str(path), "π \udcff\n")
    assert path.read_bytes() == "π \\udcff\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["report.txt"]  # no temporary file is left


@pytest.mark.parametrize("place", ["absent/report.txt", ".", "report.txt/inside"])
def test_failed_write_is_one_line_and_leaves_all_as_it_was(tmp_path, place):
    (tmp_path / "report.txt").write_text("before")
    with pytest.raises(ConfigError, match=r"can't be written \(.+\)$"):
        write_atomically(str(tmp_path / place), "after")
    assert (tmp_path / "report.txt").read_text() == "before"
    assert os.listdir(tmp_path) == ["report.txt"]


def test_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("before")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_atomically(str(tmp_path / "link.txt"), "after")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "after"


def test_pipe_stays_a_pipe(tmp_path):
    """As `/dev/stdout` and `/dev/null` must: written to, never replaced."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(str(tmp_path / "pipe"), "after")
        assert os.read(reader, 100) == b"after"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
