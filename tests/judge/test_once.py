"""Findings of one function in several branches, and evidence where the default range hides one."""

from tests.support.checking import check_text

from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import Finding, once

FAULT = catalogue()["SUR004"]


def finding(function, line=3, code="SUR004"):
    fault = catalogue()[code]
    return Finding(fault, fault.severity, Place(function, line, line, 0, 9), "said", None)


def test_branches_that_share_a_line_are_named_once():
    base, branch, other = finding("f"), finding("f [x=True]"), finding("f [x=2]", line=4)
    again, apart = finding("f [x=3]", line=4), finding("f [x=True]", code="SUR005")
    assert once([base, branch, other, again, apart]) == [base, other, apart]


def test_two_findings_of_one_function_without_branches_stay():
    assert len(once([finding("f"), finding("f")])) == 2


WIDE = '''
import numpy as np


def policy_loss(logp, old_logp, adv, mask, clip_eps=10.0):
    """Clipped policy loss."""
    ratio = np.exp(logp - old_logp)
    chosen = np.minimum(ratio, np.clip(ratio, 1 - clip_eps, 1 + clip_eps))
    return -(chosen * adv[:, None] * mask).sum() / max(mask.sum(), 1)
'''


def test_evidence_lies_beyond_a_range_that_hides_the_fault(tmp_path):
    """At A = −1, ρ = 0.9 / 0.01 = 90: the right loss is 90, min(ρ, 11)·A gives 11."""
    report = check_text(tmp_path, WIDE)
    found = {f.code: f for f in report.findings}
    evidence = found["SUR006"].evidence
    assert evidence is not None
    assert (evidence.got, evidence.expected) == (11.0, 90.0)
