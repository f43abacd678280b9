"""Repairs of what was found by reading, verified by executing with stand-ins."""

import pytest
from tests.support.repairing import repair_text

from rlproof.checks import Options, check_paths
from rlproof.errors import ConfigError
from rlproof.judge.findings import FixStatus

LOOP = """
import torch

def token_logps(policy, tokens):
    lines = torch.log_softmax(policy(tokens).logits[:, :-1].float(), dim=-1)
    return lines.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)

def fit(policy, prompts_loader, judge_answers, rounds=3, eps=0.2):
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    for prompts in prompts_loader:
        tokens = policy.generate(prompts, do_sample=True, temperature=1.0)
        advantages = judge_answers(tokens)
        for _ in range(rounds):
            logps = token_logps(policy, tokens)
            old_logps = logps.detach()
            ratio = torch.exp(logps - old_logps)
            clipped = ratio.clamp(1 - eps, 1 + eps)
            loss = -torch.min(ratio * advantages, clipped * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.slow
def test_it_is_verified_and_carries_the_numbers(tmp_path):
    pytest.importorskip("torch")
    report = repair_text(tmp_path, LOOP)
    assert report.repair.status is FixStatus.VERIFIED
    made = report.repair.text
    assert made.index("old_logps = token_logps(policy, tokens).detach()") < made.index("for _ in")
    [found] = [f for f in report.findings if f.code == "LOP001"]
    assert not found.by_reading
    assert "executed with stand-ins" in found.evidence.input
    assert found.evidence.got == 1.0


@pytest.mark.slow
def test_what_can_not_be_executed_is_suggested_with_the_reason(tmp_path):
    pytest.importorskip("torch")
    text = LOOP.replace("temperature=1.0)", "temperature=1.0, penalty_alpha=0.6)")
    report = repair_text(tmp_path, text)
    assert report.repair.status is FixStatus.SUGGESTED
    assert report.repair.text == text
    assert "found by reading, and not verified" in report.repair.message
    assert "samples without `penalty_alpha`" in report.repair.message


def test_no_run_executes_nothing(tmp_path):
    """The script leaves a file when it is imported."""
    path = tmp_path / "script.py"
    mark = tmp_path / "executed"
    path.write_text(f"open({str(mark)!r}, 'w').close()\n" + LOOP)
    outcome = check_paths((str(path),), Options.resolve((), (), None, False, None, None))
    assert not mark.exists()
    assert all(f.by_reading or f.code != "LOP001" for r in outcome.reports for f in r.findings)
    with pytest.raises(ConfigError, match="leave --no-run out"):
        Options.resolve((), (), None, False, None, None, fix=True)
