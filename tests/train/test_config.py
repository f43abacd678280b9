"""Settings: from TOML to a run, and every wrong value refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from rlproof.errors import ConfigError
from rlproof.space.published import OBJECTIVES
from rlproof.train.config import TrainConfig, load

RUN = {"run": {"folder": "out"}}


def made(**sections: Any) -> TrainConfig:
    return TrainConfig.of({**RUN, **sections})


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_recipe_is_the_published_point(name):
    assert made(objective={"recipe": name}).resolved() == OBJECTIVES[name].objective


def test_coordinates_change_a_recipe_and_its_name():
    objective = made(objective={
        "recipe": "grpo", "clip": {"high": 0.28}, "divergence": {"coefficient": 0.01},
    }).resolved()  # fmt: skip
    assert (objective.clip.low, objective.clip.high) == (0.2, 0.28)
    assert (objective.divergence.place, objective.divergence.coefficient) == ("loss", 0.01)
    assert objective.name == "custom"


def test_the_temperature_of_the_sampling_is_scored():
    assert made(sampling={"temperature": 0.7}).resolved().temperature == 0.7


WRONG = [
    ({"run": {"folder": "x", "stepz": 3}}, "did you mean steps"),
    ({"run": {"steps": 3}}, r"\[run\] folder is missing"),
    ({"rum": {}}, "did you mean run"),
    ({"run": {"folder": "x", "steps": 0}}, r"\[run\] steps is 0, expected 1 or more"),
    ({"batch": {"group": "8"}}, r"\[batch\] group is '8', expected a whole number"),
    ({"batch": {"group": True}}, "expected a whole number"),
    ({"batch": {"prompts": 7, "minibatches": 2}}, "does not divide 7 prompts"),
    ({"batch": {"micro": 6}, "objective": {"recipe": "prompt-mean"}}, "multiple of group = 8"),
    ({"optimizer": {"betas": [0.9]}}, "expected a list"),
    ({"optimizer": {"lr": -1}}, r"lr is -1\.0, expected 0 or more"),
    ({"optimizer": {"schedule": "cosin"}}, "expected one of constant, linear, cosine"),
    ({"objective": {"recipe": "gpro"}}, "did you mean gspo"),
    ({"objective": {"surrogate": "min-clipp"}}, "is unknown; expected one of"),
    ({"objective": {"clip": {"hi": 0.3}}}, r"\[objective.clip\] has no setting 'hi'; did you mean"),
    ({"objective": {"clip": 0.3}}, "expected a table"),
    ({"objective": {"length": 0}}, "expected a number of tokens above 0"),
    ({"objective": {"temperature": 0.5}, "sampling": {"temperature": 1.5}}, "temperature"),
    ({"sampling": {"top_p": 0.9}}, "SMP001"),
    ({"sampling": {"temperature": 0}}, "temperature is 0"),
    ({"model": {"path": "a", "config": "b"}}, "has path and config"),
    ({"data": {"path": "a", "dataset": "b"}}, "has path and dataset"),
    ({"rewards": {"functions": ["a:b"], "weights": [1.0, 2.0]}}, "2 numbers for 1 functions"),
    ({"metrics": {"to": ["mlflow"]}}, "expected any of"),
    ({"lora": {"rank": -1}}, "0 or more"),
]


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_a_wrong_value_is_named(table, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.of({**RUN, **table})


def test_a_file_with_paths_beside_it(tmp_path):
    (tmp_path / "model").mkdir()
    file = tmp_path / "run.toml"
    file.write_text(
        '[run]\nfolder = "out"\n[model]\npath = "model"\ntokenizer = "name/on-the-hub"\n'
        '[data]\npath = "prompts.jsonl"\n'
    )
    config = load(file)
    assert config.run.folder == str(tmp_path / "out")
    assert config.model.path == str(tmp_path / "model")
    assert config.model.tokenizer == "name/on-the-hub"
    assert config.data.path == str(tmp_path / "prompts.jsonl")


@pytest.mark.parametrize(
    ("text", "message"), [("[run", "TOML"), ("[run]\nfolder = 3", "is 3, expected text")]
)
def test_a_broken_file(tmp_path, text, message):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "run.toml")


def test_a_missing_file(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "no.toml")


def test_some_settings_changed():
    config = made(objective={"recipe": "grpo", "clip": {"low": 0.1}})
    other = config.but(run={"steps": 3}, objective={"clip": {"high": 0.3}})
    assert (other.run.steps, other.run.folder) == (3, "out")
    assert (other.resolved().clip.low, other.resolved().clip.high) == (0.1, 0.3)
