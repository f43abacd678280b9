"""Loops that can't be run: two places of the source contradict each other, or nothing is said."""

from __future__ import annotations

import ast

import pytest
from tests.support.loops import CASES, STYLES, Case

from rlproof.checks import Options, check_paths
from rlproof.judge.source_loop import SourceLoops, judge
from rlproof.read.source import Source
from rlproof.read.targets import Script


def read(text: str) -> SourceLoops:
    return judge(Script(Source("script.py", text, ast.parse(text)), ()))


def spans(loops: SourceLoops) -> list[tuple[str, int]]:
    return [(code, sighting.place.line) for code, sighting in loops.sightings]


def marked(text: str) -> int:
    [number] = [
        n for n, line in enumerate(text.split("\n"), 1) if "# here" in line or "# alias" in line
    ]
    return number


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fault_is_found_at_its_line(case: Case, style: str):
    text = case.text(style, faulty=True)
    loops = read(text)
    if style == "method" and case.name == "another-name-for-the-model":
        # the alias stands in `__init__`; the line named is the one that asks the reference
        text = text.replace("  # alias", "").replace(
            "ref_logps = token_logps(", "ref_logps = token_logps(  # here\n", 1
        )
        assert spans(loops) == [("LOP003", marked(text))]
        return
    assert spans(loops) == [(case.code, marked(text))]
    [(_, sighting)] = loops.sightings
    assert sighting.evidence is not None
    assert f"line {sighting.place.line}:" in sighting.evidence.input


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_healthy_twin_is_silent(case: Case, style: str):
    loops = read(case.text(style, faulty=False))
    assert loops.sightings == ()
    assert loops.skipped == ()
    assert loops.loops, "a loop that is not read proves nothing"


FACTORY = """
import torch


def token_logps(model, ids):
    return torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]


def train(model, tokenizer, loader, score, config, epochs=4, accum_steps=8):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    SETUP
    for batch in loader:
        ids = model.generate(**batch, do_sample=True, temperature=1.0)
        advantages = score(ids)
        BODY
"""
UPDATE = """
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""
ON_POLICY = (
    "logps = token_logps(model, ids)\nloss = -(torch.exp(logps - logps.detach()) * advantages)"
)


def script(body: str, setup: str = "pass") -> str:
    text = FACTORY.replace("SETUP", setup.replace("\n", "\n    "))
    return text.replace("BODY", body.strip().replace("\n", "\n        "))


LOOK_ALIKES = {
    "one update with recomputed old log-probs": f"""
with torch.no_grad():
    old_logps = token_logps(model, ids)
new_logps = token_logps(model, ids)
loss = -(torch.exp(new_logps - old_logps) * advantages).mean()
{UPDATE.strip()}""",
    "old log-probs of the first epoch": """
old_logps = None
for epoch in range(epochs):
    new_logps = token_logps(model, ids)
    if old_logps is None:
        old_logps = new_logps.detach()
    loss = -(torch.exp(new_logps - old_logps) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()""",
    "the stored ones if there are any": """
for epoch in range(4):
    new_logps = token_logps(model, ids)
    old_logps = new_logps.detach() if batch.old is None else batch.old
    other = batch.stored.get("old", new_logps.detach())
    loss = -(torch.exp(new_logps - old_logps) * advantages).mean()
    loss = loss - torch.exp(new_logps - other).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()""",
    "a buffer of old log-probs by mini-batch": """
with torch.no_grad():
    stored = [token_logps(model, ids[k : k + 4]) for k in range(0, len(ids), 4)]
for epoch in range(epochs):
    for k in range(0, len(ids), 4):
        new_logps = token_logps(model, ids[k : k + 4])
        loss = -(torch.exp(new_logps - stored[k // 4]) * advantages[k : k + 4]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()""",
    "a divergence to the current policy for the log only": """
for epoch in range(epochs):
    logps = token_logps(model, ids)
    loss = -(torch.exp(logps - ids.old) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        after = token_logps(model, ids)
    drift = (logps - after).mean()""",
    "a mean over completions in micro-batches": """
mask = (ids[:, 1:] > 2).float()
for k in range(0, len(ids), 4):
    rows = slice(k, k + 4)
    logps = token_logps(model, ids[rows])
    terms = -torch.exp(logps - logps.detach()) * advantages[rows] * mask[rows]
    loss = (terms.sum(1) / mask[rows].sum(1)).mean() / accum_steps
    loss.backward()
optimizer.step()
optimizer.zero_grad()""",
    "the number of items of the whole batch": """
mask = (ids[:, 1:] > 2).float()
num_items = mask.sum()
for k in range(0, len(ids), 4):
    rows = slice(k, k + 4)
    logps = token_logps(model, ids[rows])
    terms = -torch.exp(logps - logps.detach()) * advantages[rows] * mask[rows]
    (terms.sum() / num_items).backward()
optimizer.step()
optimizer.zero_grad()""",
    "a value loss beside": f"""
{ON_POLICY}
values = critic(ids)
loss = loss.mean() + 0.5 * (values - batch.returns).pow(2).mean()
{UPDATE.strip()}""",
    "evaluation with other sampling": f"""
{ON_POLICY}
loss = loss.mean()
{UPDATE.strip()}
if batch.is_eval:
    eval_ids = model.generate(**batch, do_sample=True, temperature=0.3, top_p=0.9)""",
    "a judge with other sampling": f"""
verdict = judge_model.generate(ids, do_sample=True, temperature=0.2, top_k=5)
{ON_POLICY}
loss = loss.mean()
{UPDATE.strip()}""",
    "a temperature that the log-probs may know of": f"""
ids = model.generate(**batch, do_sample=True, temperature=config.temperature)
{ON_POLICY}
loss = loss.mean()
{UPDATE.strip()}""",
    "attention to everything but padding": f"""
attention_mask = (ids != tokenizer.pad_token_id).long()
{ON_POLICY}
loss = loss.mean()
{UPDATE.strip()}""",
    "a mask that only counts": f"""
completion_mask = (ids != tokenizer.eos_token_id)
lengths = completion_mask.sum(1)
{ON_POLICY}
loss = loss.mean()
{UPDATE.strip()}""",
    "one prompt and tiles": f"""
prompt = tokenizer([batch.question])
repeated = prompt.repeat(8, 1)
rewards = score(repeated)
means = rewards.view(-1, 8).mean(dim=1)
{ON_POLICY}
loss = loss.mean()
{UPDATE.strip()}""",
    "an optimizer of other code": f"""
{ON_POLICY}
loss = loss.mean()
optimizer.zero_grad()
config.engine.backward(loss)
config.engine.step()""",
    "gradients set by hand": f"""
{ON_POLICY}
loss.mean().backward()
saved = [p.grad.clone() for p in model.parameters()]
optimizer.zero_grad()
for p, g in zip(model.parameters(), saved):
    p.grad = g
optimizer.step()""",
}


@pytest.mark.parametrize("body", LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_look_alikes_are_silent(body: str):
    loops = read(script(body))
    assert spans(loops) == []
    assert loops.skipped == ()
    assert loops.loops == {"train"}


STALE = """
with torch.no_grad():
    old_logps = token_logps(old_model, ids)
for _ in range(epochs):
    new_logps = token_logps(model, ids)
    loss = -(torch.exp(new_logps - old_logps) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()"""


def test_a_copy_that_nothing_renews():
    text = script(STALE, "old_model = copy.deepcopy(model)")
    assert spans(read(text)) == [("LOP002", 11)]


@pytest.mark.parametrize(
    "renewed",
    [
        "\nold_model.load_state_dict(model.state_dict())",
        "\nsync(old_model, model)",
        "\nold_model = copy.deepcopy(model)",
    ],
)
def test_a_copy_that_is_renewed(renewed: str):
    assert spans(read(script(STALE + renewed, "old_model = copy.deepcopy(model)"))) == []


def reasons(loops: SourceLoops) -> list[tuple[str, str]]:
    assert loops.sightings == ()
    return [(s.check.split()[0], s.reason) for s in loops.skipped]


def test_a_number_of_rounds_that_decides_is_named():
    body = f"""
for _ in range(config.rounds):
    {ON_POLICY.replace(chr(10), chr(10) + "    ")}
    loss = loss.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()"""
    [(code, reason)] = reasons(read(script(body)))
    assert code == "LOP001"
    assert "config.rounds" in reason
    assert reason.startswith("line 17:")


def test_a_condition_that_decides_is_named():
    body = """
for epoch in range(epochs):
    if epoch % config.every == 0:
        with torch.no_grad():
            old_logps = token_logps(model, ids)
    new_logps = token_logps(model, ids)
    loss = -(torch.exp(new_logps - old_logps) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()"""
    assert reasons(read(script(body))) == [
        ("LOP001", "line 20: a condition decides which old log-probs are taken")
    ]


def test_a_tokenizer_that_decides_is_named():
    setup = "if tokenizer.pad_token is None:\n    tokenizer.pad_token = tokenizer.eos_token"
    body = f"""
completion_mask = (ids != tokenizer.pad_token_id).float()
{ON_POLICY}
loss = (loss * completion_mask).sum()
{UPDATE.strip()}"""
    [(code, reason)] = reasons(read(script(body, setup)))
    assert code == "MSK004"
    assert "depends on the tokenizer (line 12)" in reason


def test_rows_of_a_micro_batch_that_decide_are_named():
    body = """
mask = (ids[:, 1:] > 2).float()
for k in range(0, len(ids), config.rows):
    logps = token_logps(model, ids[k : k + config.rows])
    part = mask[k : k + config.rows]
    mb_mask = part
    terms = -torch.exp(logps - logps.detach()) * mb_mask
    loss = (terms * mb_mask).sum() / mb_mask.sum()
    loss.backward()
optimizer.step()
optimizer.zero_grad()"""
    [(code, reason)] = reasons(read(script(body)))
    assert code == "AGG001"
    assert "more than one row" in reason


def test_an_optimizer_that_is_given_away_is_named():
    body = f"{ON_POLICY}\nloss.mean().backward()\noptimizer.step()\nafter(optimizer)"
    [(code, reason)] = reasons(read(script(body)))
    assert code == "LOP005"
    assert "`after`" in reason


def test_settings_of_a_trainer():
    text = """
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="x", num_generations=8, top_k=50, top_p=1.0)
trainer = GRPOTrainer(model="m", args=args, reward_funcs=[reward])
"""
    assert spans(read(text)) == [("SMP001", 4)]
    assert spans(read(text.replace("top_k=50", "top_k=-1"))) == []


def test_a_recorded_loop_is_left_alone():
    case = CASES[0]
    text = case.text("function", faulty=True)
    loops = judge(Script(Source("s.py", text, ast.parse(text)), ()), frozenset({"train"}))
    assert loops == SourceLoops()


def test_a_file_without_rewards_is_not_read():
    text = script(f"{ON_POLICY}\nloss.mean().backward()\noptimizer.step()")
    assert spans(read(text)) == [("LOP005", 18)]
    other = text.replace("advantages", "weights").replace("reward", "x")
    assert read(other) == SourceLoops()


def test_same_input_same_output():
    text = "\n".join(case.text("function", faulty=True) for case in CASES[:4])
    assert read(text) == read(text)


@pytest.mark.parametrize("run", [True, False])
@pytest.mark.parametrize("style", STYLES)
def test_check_reports_loops_that_were_not_run(tmp_path, style: str, run: bool):
    path = tmp_path / "script.py"
    options = Options.resolve((), (), None, run, None, None)
    path.write_text(CASES[0].text(style, faulty=True), encoding="utf-8")
    outcome = check_paths((str(path),), options)
    found = [(f.code, f.place.line) for f in outcome.reports[0].findings if f.severity == "error"]
    assert found == [("LOP001", marked(path.read_text(encoding="utf-8")))]
    assert outcome.exit_code == 1

    path.write_text(CASES[0].text(style, faulty=False), encoding="utf-8")
    outcome = check_paths((str(path),), options)
    assert [f.code for f in outcome.reports[0].findings if f.severity != "note"] == []
    assert outcome.reports[0].read == 1
    assert outcome.exit_code == 0
    assert "1 loop by reading" in outcome.render("full", 100)
