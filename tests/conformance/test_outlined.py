"""Trainers and losses as their packages have them: outlined, judged, no finding but notes.

Each expected coordinate is what the cited branch of the package computes, read by hand.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.script import read
from rlproof.read.targets import Role
from tests.conformance.wheels import wheel
from tests.support.checking import strong

pytestmark = pytest.mark.conformance

FILES = {
    "trl": ("trl", "1.16.0", "trl/trainer/grpo_trainer.py"),
    "verl": ("verl", "0.9.1", "verl/trainer/ppo/core_algos.py"),
    "openrlhf": ("openrlhf", "0.11.2", "openrlhf/models/loss.py"),
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("packages")
    found: dict[str, Path] = {}
    for name, (package, version, module) in FILES.items():
        with zipfile.ZipFile(wheel(package, version)) as archive:
            members = [m for m in archive.namelist() if m.endswith(".py")]
            archive.extractall(folder / name, members)
        (found[name],) = (folder / name).glob(f"**/{module}")
    return found


@pytest.fixture(scope="module")
def reports(unpacked: dict[str, Path]) -> dict[str, FileReport]:
    return {name: check(read(str(path))) for name, path in unpacked.items()}


@pytest.mark.parametrize("name", FILES)
def test_no_finding_but_notes(reports: dict[str, FileReport], name: str) -> None:
    assert strong(reports[name]) == []


@pytest.mark.parametrize("name", FILES)
def test_every_loss_is_identified_or_has_a_reason(
    reports: dict[str, FileReport], name: str
) -> None:
    report = reports[name]
    reasons = {skipped.check.partition(" ")[2] for skipped in report.skipped}
    for target in report.targets:
        if target.role == Role.LOSS:
            assert target.objective or target.name in reasons


@pytest.mark.parametrize(
    ("loss_type", "aggregation", "surrogate"),
    [
        ("bnpo", "token-mean", "min-clip"),
        ("dapo", "token-mean", "min-clip"),
        ("dr_grpo", "constant-per-sequence", "min-clip"),
        ("luspo", "sequence-sum", "min-clip"),
        ("cispo", "token-mean", "cispo"),
        ("sapo", "sequence-mean", "soft-gate"),
    ],
)
def test_branches_of_trl(
    reports: dict[str, FileReport], loss_type: str, aggregation: str, surrogate: str
) -> None:
    name = f"GRPOTrainer._compute_loss [loss_type={loss_type!r}]"
    (target,) = [t for t in reports["trl"].targets if t.name == name]
    assert target.objective["aggregation"] == aggregation
    assert target.objective["surrogate"] == surrogate


@pytest.mark.parametrize(
    ("function", "surrogate"),
    [
        ("compute_policy_loss_vanilla", "dual-clip"),
        ("compute_policy_loss_dppo_tv", "score-trust-region-tv"),
        ("compute_policy_loss_dppo_kl", "score-trust-region-kl"),
        ("compute_policy_loss_gspo", "min-clip"),
        ("compute_policy_loss_sapo", "soft-gate"),
        ("compute_policy_loss_gpg", "log-prob"),
        ("compute_policy_loss_cispo", "cispo"),
    ],
)
def test_losses_of_verl(reports: dict[str, FileReport], function: str, surrogate: str) -> None:
    (target,) = [t for t in reports["verl"].targets if t.name == function]
    assert target.objective["surrogate"] == surrogate
