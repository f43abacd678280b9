"""The search: cheapest first, verified as a set, honest about where it stopped."""

import pytest
from tests.support.checking import strong
from tests.support.repairing import EVERY, repair_file, repair_text
from tests.support.trainers import trainer

from rlproof.faults.model import Severity
from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.check import check
from rlproof.judge.findings import Finding, FixStatus
from rlproof.read.script import read
from rlproof.repair.candidates import candidates
from rlproof.repair.covers import covers, rivals
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.fix import repair
from rlproof.repair.verify import SearchStopped, Verifier


def findings_of(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    script = read(str(path))
    report = check(script)
    return script, report, [f for f in report.findings if f.severity != "note"]


def covers_of(script, found, function):
    own = [f for f in found if f.place.function == function]
    codes = frozenset(f.code for f in own)
    return covers(script.source.text, own, [candidates(script, f, codes) for f in own])


def test_a_cover_removes_every_finding_and_the_first_is_the_least(tmp_path):
    script, _, found = findings_of(tmp_path, trainer("GEROC"))
    sets = covers_of(script, found, "grpo_loss")
    for cover in sets:
        covered = set().union(*(edit.covers for edit in cover.edits))
        assert {"MSK001", "MSK002", "SUR004", "SUR005"} <= covered
    assert sets[0].label == (
        "skip padding; take the smaller of the two terms; put a minus before the surrogate"
    )
    # `if not mask[i][t] : continue` is 11 tokens; min and the minus are one each.
    assert sets[0].size == 13


def test_rivals_change_as_little_in_another_way(tmp_path):
    script, _, found = findings_of(tmp_path, trainer("GERKOC"))
    sets = covers_of(script, found, "grpo_loss")
    assert [rival.label for rival in rivals(sets[0], sets)] == ["negate both terms and keep max"]


def test_both_of_a_cancelling_pair_are_repaired(tmp_path):
    """R and S cancel in sign: with either repaired alone, the trainer unlearns (claim B18)."""
    report = repair_text(tmp_path, trainer("GEMKOC"))
    assert report.repair.status is FixStatus.VERIFIED
    assert "math.exp(new_logps[i][t] - old_logps[i][t])" in report.repair.text
    assert "-surrogate + beta * kl" in report.repair.text


def test_a_fault_behind_a_crash_is_repaired_in_the_same_go(tmp_path):
    """The first group has equal rewards, so that `train` ends at std 0 before its first loss."""
    text = trainer("GRMSKC").replace(
        "rewards.append(strokes", "rewards.append(1.0 if p == 0 else strokes"
    )
    report = repair_text(tmp_path, text)
    assert strong(report) == ["ADV004"]
    assert report.repair.status is FixStatus.VERIFIED
    hoisted = (
        "        old_logps = token_logps(theta, rows, tokens)\n        for _ in range(epochs):\n"
    )
    assert hoisted in report.repair.text
    assert "(std + eps)" in report.repair.text


def test_the_budget_ends_the_search_with_a_message(tmp_path):
    report = repair_text(tmp_path, trainer(""), budget=0.0)
    assert report.repair.status is FixStatus.SUGGESTED
    assert report.repair.message == "search stopped after 0 s and 0 versions"
    assert report.repair.text == trainer("")
    assert {f.fix.status for f in report.findings if f.fix} == {FixStatus.SUGGESTED}


def test_versions_are_counted_and_run_once(tmp_path):
    script, report, _ = findings_of(tmp_path, page("SUR001").planted)
    verifier = Verifier(script, report, EVERY, 10.0, None, None, 60.0, 2)
    assert verifier.verdict("x = (") is None
    text = script.source.text + "# one\n"
    first = verifier.verdict(text)
    assert first is verifier.verdict(text)
    assert verifier.checks == 1
    verifier.verdict(text + "# two\n")
    with pytest.raises(SearchStopped, match="after 2 versions"):
        verifier.verdict(text + "# three\n")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("count += 1", "count += 2", "computes something else"),
        ("return total / max(count, 1)", "return undefined", "running grpo_loss"),
    ],
)
def test_a_version_that_changes_something_else_is_refused(tmp_path, old, new, problem):
    script, report, _ = findings_of(tmp_path, page("SUR001").planted)
    verifier = Verifier(script, report, EVERY, 10.0, None, None, 60.0, 9)
    fixed = script.source.text.replace(
        "new_logps[i][t] / old_logps[i][t]", "math.exp(new_logps[i][t] - old_logps[i][t])"
    )
    assert verifier.verdict(fixed).accepted
    verdict = verifier.verdict(fixed.replace(old, new))
    assert not verdict.accepted
    assert any(problem in text for text in verdict.problems)


def test_other_codes_stay_as_they_are(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(trainer("GERKO"))
    script = read(str(path))
    report = repair(script, check(script), frozenset({"MET001"}))
    assert report.repair.status is FixStatus.VERIFIED
    assert "max(plain, clipped)" in report.repair.text
    assert strong(report.repair.after) == ["SUR004", "SUR005"]


def test_a_repaired_file_has_nothing_to_repair(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(trainer("GERMSKOC"))
    assert repair_file(path).repair is None


def test_a_crash_of_the_default_call_is_repaired_where_the_table_is_made(tmp_path):
    """Prompt ids 1 and 2 in a table of two rows: IndexError, raised far from its cause."""
    text = trainer("GERMSKOC").replace("prompts=(0, 1, 2)", "prompts=(1, 2)")
    report = repair_text(tmp_path, text)
    assert strong(report) == ["LOP010"]
    assert report.repair.status is FixStatus.VERIFIED
    assert "for _ in range(max(prompts) + 1)]" in report.repair.text


def test_the_same_fault_at_two_places_gets_an_edit_at_each():
    """Each place's own edit comes first; the other's is only a second choice."""
    one, two = (Edit("", (Change(i, i + 1, "y"),), frozenset({"SUR005"})) for i in (0, 4))
    found = [
        Finding(catalogue()["SUR005"], Severity.ERROR, Place("f", line, line), "")
        for line in (1, 2)
    ]
    best = covers("x + x", found, [[one, two], [two, one]])[0]
    assert set(best.edits) == {one, two}


def test_a_fault_seen_through_a_caller_is_repaired_where_it_is(tmp_path):
    text = (
        "def group_advantages(rewards, group_size, eps=1e-6):\n"
        '    """Reward minus group mean over group std; a group of equal rewards gets 0."""\n'
        "    advantages = []\n"
        "    for start in range(0, len(rewards), group_size):\n"
        "        group = rewards[start : start + group_size]\n"
        "        mean = sum(group) / len(group)\n"
        "        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5\n"
        "        advantages += [(r - mean) / std for r in group]\n"
        "    return advantages\n\n\n"
        "def normalize_rewards(rewards, group_size, eps=1e-6):\n"
        "    return [-a for a in group_advantages([-r for r in rewards], group_size)]\n"
    )
    report = repair_text(tmp_path, text)
    assert [f.place.function for f in report.findings if f.code == "ADV004"] == [
        "group_advantages",
        "normalize_rewards",
    ]
    assert report.repair.status is FixStatus.VERIFIED
    assert report.repair.text == text.replace("/ std for", "/ (std + eps) for")
