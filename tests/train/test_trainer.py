"""The loop: it learns, and what goes wrong in a run is said and harms nothing."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.support import tiny_policy  # noqa: E402
from tests.support.sampling import one_in  # noqa: E402
from tests.support.tiny_policy import share_of_a  # noqa: E402

from rlproof.errors import ConfigError, DataError, RewardError, RolloutError  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train import TrainConfig, Trainer, checkpoint  # noqa: E402
from rlproof.train.prepare import needs_reference  # noqa: E402
from rlproof.watch.command import inspect_path  # noqa: E402


def config(folder: Path, **sections: Any) -> TrainConfig:
    table: dict[str, Any] = {
        "run": {"folder": str(folder), "steps": 2}, "sampling": {"max_tokens": 4},
        "batch": {"prompts": 2, "group": 4}, "optimizer": {"lr": 1e-2},
        "objective": {"recipe": "dapo"}, "record": {"every": 1},
    }  # fmt: skip
    for name, values in sections.items():
        table[name] = {**table.get(name, {}), **values}
    return TrainConfig.of(table)


GIVEN = ("prompts", "model", "tokenizer", "say", "resume", "engine", "environment")


def trainer(folder: Path, reward: Any = share_of_a, **more: Any) -> Trainer:
    given = {k: more.pop(k) for k in GIVEN if k in more}
    given = {"prompts": tiny_policy.PROMPTS, "model": tiny_policy.model(),
             "tokenizer": tiny_policy.tokenizer(), **given}  # fmt: skip
    for name in ("model", "engine"):
        if f"{name}_settings" in more:
            more[name] = more.pop(f"{name}_settings")
    functions = reward if isinstance(reward, list) else [reward]
    return Trainer(config(folder, **more), rewards=functions, **given)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


# ---------------------------------------------------------------- it learns


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["grpo", "dapo", "rloo", "gspo"])
def test_the_reward_rises(recipe, tmp_path):
    """A uniform policy over 16 characters has a share of 1/16 or less; a trained one most."""
    result = trainer(
        tmp_path / "run", run={"steps": 30}, batch={"prompts": 4, "group": 8},
        objective={"recipe": recipe},
    ).train()  # fmt: skip
    rewards = [values["reward"] for values in result.history]
    assert sum(rewards[:3]) / 3 < 0.2
    assert sum(rewards[-3:]) / 3 > 0.6


def test_what_is_written_is_read_by_inspect_and_named(tmp_path):
    folder = tmp_path / "run"
    trainer(folder, objective={"recipe": "grpo"}, batch={"epochs": 2}, metrics={"completions": 3},
            run={"steps": 4}).train()  # fmt: skip
    log = inspect_path(str(folder / "metrics.jsonl"), ())
    assert (log.rows, log.framework) == (4, "")
    assert not [found for found in log.findings if found.severity.value == "error"]
    steps = inspect_path(str(folder / "steps.rlproof.jsonl"), ())
    assert steps.steps == 8
    assert not steps.findings
    assert any("those of grpo" in line for line in steps.said)
    assert inspect_path(str(folder / "completions.jsonl"), ()).completions == 12


@pytest.mark.parametrize("recipe", one_in(4, OBJECTIVES))
def test_the_first_step_of_every_recipe_passes(recipe, tmp_path):
    said: list[str] = []
    trainer(
        tmp_path / "run", objective={"recipe": recipe}, run={"steps": 1},
        batch={"minibatches": 2, "micro": 4}, record={"check_first_step": True}, say=said.append,
    ).train()  # fmt: skip
    assert not [line for line in said if "first step" in line]


OWN: dict[str, dict[str, Any]] = {
    "entropy bonus": {"recipe": "grpo", "entropy": {"coefficient": 0.05}},
    "entropy of the few": {"recipe": "dapo", "entropy": {"top_share": 0.3}},
    "filter": {"recipe": "dapo", "filter": {"rule": "zero-variance"}},
    "filter that counts": {"recipe": "dapo", "filter": {"rule": "zero-variance", "counted": True}},
    "masked rows": {"recipe": "dapo", "masks": {"truncated": "dropped"}},
    "masked end": {"recipe": "dr_grpo", "masks": {"end": "dropped"}},
    "large beta": {"recipe": "grpo", "divergence": {"coefficient": 1.0}},
    "constant": {"recipe": "dr_grpo", "aggregation": "constant", "length": 100},
}


@pytest.mark.parametrize("name", OWN)
def test_the_first_step_of_coordinates_of_one_s_own_passes(name, tmp_path):
    said: list[str] = []
    trainer(
        tmp_path / "run", objective=OWN[name], run={"steps": 1}, say=said.append,
        batch={"prompts": 4, "minibatches": 2, "epochs": 2}, record={"check_first_step": True},
        sampling={"temperature": 0.8},
    ).train()  # fmt: skip
    assert not [line for line in said if "first step" in line]


def test_a_reference_is_kept_only_where_one_is_needed(tmp_path):
    for n, recipe in enumerate(("dapo", "grpo")):
        one = trainer(tmp_path / str(n), objective={"recipe": recipe})
        assert (one.policy.reference is not None) == needs_reference(one.objective)
        assert (one.policy.reference is not None) == (recipe == "grpo")


def test_several_weighted_rewards_one_of_them_silent_on_some_rows(tmp_path):
    def on_even(completions: list[str], **_: Any) -> list[float | None]:
        return [1.0 if n % 2 else None for n in range(len(completions))]

    one = trainer(tmp_path / "run", [share_of_a, on_even], rewards={"weights": [1.0, 0.5]})
    (first, _) = one.train().history
    # share of a, plus half of the second reward on the rows where it is one
    assert first["reward"] == pytest.approx(first["rewards/share_of_a"] + 0.25)
    assert first["rewards/on_even"] == 1.0


def test_messages_and_columns_reach_the_reward(tmp_path):
    seen: dict[str, Any] = {}

    def reward(prompts: Any, completions: Any, answer: Any, **_: Any) -> list[float]:
        seen.update(prompts=prompts, completions=completions, answer=answer)
        return [0.0] * len(prompts)

    tokenizer = tiny_policy.tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}="
    rows = [{"prompt": [{"role": "user", "content": "1+1"}], "answer": 2}]
    trainer(tmp_path / "run", reward, prompts=rows, tokenizer=tokenizer).train()
    assert seen["answer"] == [2] * 8
    assert seen["prompts"][0] == rows[0]["prompt"]
    assert [c[0]["role"] for c in seen["completions"]] == ["assistant"] * 8


def test_lora_trains_adapters_and_resumes(tmp_path):
    pytest.importorskip("peft")
    how = {"lora": {"rank": 2}, "objective": {"recipe": "grpo"}, "checkpoint": {"every": 1}}
    whole = trainer(tmp_path / "whole", **how)
    names = set(whole.policy.trained())
    assert names
    assert all("lora" in name for name in names)
    before = {n: p.clone() for n, p in whole.policy.model.named_parameters()}
    whole.train()
    moved = {n for n, p in whole.policy.model.named_parameters() if not torch.equal(p, before[n])}
    assert moved == names
    assert (tmp_path / "whole/model/adapter_config.json").exists()
    trainer(tmp_path / "cut", **{**how, "run": {"steps": 1}}).train()
    again = trainer(tmp_path / "cut", resume=True, model=tiny_policy.model(seed=5), **how)
    again.train()
    for name, parameter in whole.policy.trained().items():
        assert torch.equal(parameter, again.policy.trained()[name])


def test_bfloat16_keeps_float32_weights(tmp_path):
    assert trainer(tmp_path / "float32").sampler.exact
    how = {"dtype": "bfloat16", "config": None}
    one = trainer(tmp_path / "run", model_settings=how, batch={"minibatches": 2})
    assert not one.sampler.exact  # the old log-probs are then computed, not kept from sampling
    history = one.train().history
    assert {p.dtype for p in one.policy.trained().values()} == {torch.float32}
    assert 0 < history[0]["sampler_gap"] < 0.1
    assert history[0]["grad_norm"] > 0


def test_gpt2_with_dropout_in_its_settings_is_scored_alike(tmp_path):
    one = trainer(
        tmp_path / "run", model=tiny_policy.model(tiny_policy.gpt2()), batch={"epochs": 2}
    )
    assert one.train().history[0]["sampler_gap"] < 1e-5


class Another:
    """An engine that is not the trainer: its log-probs are off by up to 0.1 nats."""

    exact = False

    def __init__(self, inner: Any) -> None:
        self.inner, self.sampling, self.context = inner, inner.sampling, inner.context
        self.versions: list[int] = []

    def generate(self, prompts: Any, *, limits: Any = None) -> Any:
        batch = self.inner.generate(prompts, limits=limits)
        off = 0.1 * torch.sin(torch.arange(batch.logps.numel()).reshape(batch.logps.shape))
        return replace(batch, logps=batch.logps + off * batch.mask)

    def update(self, model: Any, version: int) -> None:
        self.versions.append(version)

    def state(self) -> dict[str, Any]:
        return self.inner.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.inner.restore(state)


def another(folder: Path) -> tuple[Another, Any]:
    """The engine, and the model that it samples from."""
    inner = trainer(folder)
    return Another(inner.engine), inner.policy.model


@pytest.mark.parametrize("recipe", ["dapo", "grpo-tis", "icepop", "opsm"])
def test_another_engine_has_its_own_log_probs(recipe, tmp_path):
    engine, model = another(tmp_path / "inner")
    one = trainer(
        tmp_path / "run", objective={"recipe": recipe}, engine=engine, model=model,
        batch={"epochs": 2}, record={"check_first_step": True},
    )  # fmt: skip
    history = one.train().history
    # the mean of |0.1·sin| over many slots is 0.2/π, and its end is in the mask of few
    assert history[0]["sampler_gap"] == pytest.approx(0.2 / 3.14159, abs=0.02)
    assert engine.versions == [0, 2]


def test_an_engine_that_fails_ends_the_run_and_the_checkpoint_is_whole(tmp_path):
    engine, model = another(tmp_path / "inner")
    one = trainer(
        tmp_path / "run", engine=engine, model=model, run={"steps": 3}, checkpoint={"every": 1}
    )
    real = engine.generate

    def vanishes(*args: Any, **kwargs: Any) -> Any:
        if one.step == 1:
            raise RolloutError("the server is gone")
        return real(*args, **kwargs)

    engine.generate = vanishes  # type: ignore[method-assign]
    with pytest.raises(RolloutError, match="gone"):
        one.train()
    assert [p.name for p in checkpoint.saved(tmp_path / "run")] == ["step-00000001"]


def test_what_an_environment_says_is_not_trained_on(tmp_path):
    seen: list[Any] = []

    def answers(turn: Any) -> str | None:
        return "+1=" if turn.number == 0 else None

    one = trainer(
        tmp_path / "run", environment=answers, turns={"turns": 2, "tokens": 12},
        run={"steps": 1}, sampling={"max_tokens": 4}, batch={"prompts": 4, "group": 8},
    )  # fmt: skip
    one.engine.eos = list(range(16))  # type: ignore[attr-defined]  # each turn has one token
    real = one.updater.gradient
    one.updater.gradient = lambda part, entropy: seen.append(part) or real(part, entropy)  # type: ignore
    one.train()
    (part,) = seen
    assert part.mask.sum(1).tolist() == [2.0] * 32  # one token a turn
    assert part.rollout.attend.sum(1).tolist() == [5] * 32  # and three of the environment


def test_recomputed_activations_give_the_same_run(tmp_path):
    runs, norms = [], []
    for flag in (False, True):
        one = trainer(
            tmp_path / str(flag), model_settings={"gradient_checkpointing": flag},
            batch={"epochs": 2},
        )  # fmt: skip
        norms.append(one.train().history[0]["grad_norm"])
        runs.append(one.policy.trained())
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    for name, parameter in runs[0].items():
        # With it every row reads its prompt again: sums round otherwise, and Adam divides a small
        # gradient by its own size. A tenth of what one of the four updates may move is allowed.
        assert torch.allclose(parameter, runs[1][name], atol=1e-3)


def test_a_server_without_its_settings(tmp_path):
    with pytest.raises(ConfigError, match="a server needs all three"):
        trainer(tmp_path / "run", engine_settings={"kind": "server"})


# ---------------------------------------------------------------- faults survived


def failing(after: int, fail: Any) -> Any:
    """A reward that fails from the n-th step on."""
    calls = [0]

    def reward(completions: list[str], **rest: Any) -> Any:
        calls[0] += 1
        return fail(completions) if calls[0] > after else share_of_a(completions)

    return reward


def raises(_completions: Any) -> Any:
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        (raises, "raised ZeroDivisionError"),
        (lambda c: [float("nan")] * len(c), "returned nan for row 0"),
        (lambda c: [1.0], "returned 1 rewards for 8"),
        (lambda c: time.sleep(60), "has not returned after 0.3 s"),
    ],
    ids=["raises", "nan", "wrong length", "hangs"],
)
def test_a_reward_that_fails_ends_the_run_and_the_checkpoint_is_whole(fail, message, tmp_path):
    folder = tmp_path / "run"
    how = {"run": {"steps": 4}, "checkpoint": {"every": 1}, "rewards": {"timeout": 0.3}}
    with pytest.raises(RewardError, match=message):
        trainer(folder, failing(2, fail), **how).train()
    assert [p.name for p in checkpoint.saved(folder)] == ["step-00000001", "step-00000002"]
    assert [row["step"] for row in metrics(folder)] == [0, 1]
    again = trainer(folder, share_of_a, resume=True, **how)
    assert again.step == 2
    assert again.train().steps == 4


def test_no_prompts(tmp_path):
    with pytest.raises(DataError, match="no prompt to train on: it is empty"):
        trainer(tmp_path / "run", prompts=[])
    assert not (tmp_path / "run").exists()


def test_a_prompt_longer_than_the_context(tmp_path):
    rows = [*tiny_policy.PROMPTS, {"prompt": "1" * 61}]
    with pytest.raises(DataError, match="prompt 8 has 61 tokens, and the context has room for 60"):
        trainer(tmp_path / "run", prompts=rows)
    said: list[str] = []
    one = trainer(tmp_path / "run", prompts=rows, data={"too_long": "drop"}, say=said.append)
    assert len(one.prompts.rows) == 8
    assert said == ["note: 1 prompts are too long for the context: dropped"]


@pytest.mark.parametrize("recipe", ["grpo", "dapo", "dr_grpo", "rloo"])
@pytest.mark.parametrize("masks", ["counted", "dropped"])
def test_all_completions_truncated(recipe, masks, tmp_path):
    said: list[str] = []
    one = trainer(
        tmp_path / "run", objective={"recipe": recipe, "masks": {"truncated": masks}},
        sampling={"max_tokens": 1}, say=said.append, run={"steps": 1},
    )  # fmt: skip
    one.engine.eos = []  # type: ignore[attr-defined]
    (values,) = one.train().history
    assert values["truncated_frac"] == 1
    assert any("every completion was cut off at 1 tokens" in line for line in said)
    if masks == "dropped":
        assert values["grad_norm"] == 0
        assert any("nothing is learnt" in line for line in said)


@pytest.mark.parametrize("recipe", one_in(4, OBJECTIVES))
def test_equal_rewards_are_said_and_change_no_weight(recipe, tmp_path):
    def constant(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    said: list[str] = []
    one = trainer(tmp_path / "run", constant, objective={"recipe": recipe}, say=said.append)
    before = {n: p.clone() for n, p in one.policy.trained().items()}
    history = one.train().history
    signal = any(v["adv_max"] or v["adv_min"] for v in history)
    assert signal or any("all advantages are 0" in line for line in said)
    assert all(torch.isfinite(torch.tensor(list(v.values()))).all() for v in history)
    if not signal:
        same = all(torch.equal(p, before[n]) for n, p in one.policy.trained().items())
        assert same


def test_a_model_and_no_tokenizer(tmp_path):
    with pytest.raises(ConfigError, match="model and tokenizer go together"):
        Trainer(config(tmp_path), rewards=[share_of_a], model=tiny_policy.model())


def test_a_tokenizer_of_another_model(tmp_path):
    with pytest.raises(ConfigError, match="the tokenizer has 258 tokens and the model 16"):
        trainer(tmp_path / "run", tokenizer=tiny_policy.tokenizer(None))
