"""Losses in methods and modules: which parameters they get, which settings are constants."""

import ast
import textwrap

import pytest

from rlproof.read.names import Slot
from rlproof.read.outline import outline
from rlproof.read.roles import recognise
from rlproof.read.targets import Role

CLIP = """
class GRPOLoss(nn.Module):
    def __init__(self, low=0.2, cfg=None, level="token"):
        super().__init__()
        self.clip_eps = low
        self.beta = cfg.kl_coef
        self.level = level
        self.scale = 2.0

    def masked_mean(self, values, mask):
        return (values * mask).sum() / mask.sum() / self.scale

    def forward(self, log_probs, batch):
        log_ratio = log_probs - batch.action_log_probs
        if self.level == "sequence":
            log_ratio = log_ratio.mean(-1, keepdim=True)
        ratio = log_ratio.exp()
        kept = torch.clamp(ratio, 1 - self.clip_eps, 1 + self.clip_eps)
        loss = -torch.min(ratio * batch["advantages"], kept * batch["advantages"]) + self.beta
        self.log("loss", loss.mean())
        return self.masked_mean(loss, batch.mask), ratio
"""


IMPORTS = """
import json
import torch
import jax
import jax.numpy as jnp
from dataclasses import dataclass
from torch import nn
"""


def outlined(text, role=Role.LOSS):
    tree = ast.parse(textwrap.dedent(text) + IMPORTS)
    targets, _ = outline(tree, recognise(tree))
    return [t for t in targets if t.role is role]


def only(text, role=Role.LOSS):
    (target,) = outlined(text, role)
    return target


def slots(target):
    return {p.name: p.slot for p in target.parameters}


def test_a_module_gets_the_parts_of_its_batch_and_of_init():
    first = outlined(CLIP)[0]
    assert slots(first) == {
        "clip_eps": Slot.CLIP,
        "beta": Slot.BETA,
        "log_probs": Slot.NEW,
        "action_log_probs": Slot.OLD,  # of two log-probs those of the batch are the old ones
        "advantages": Slot.ADVANTAGES,
        "mask": Slot.MASK,
    }
    assert first.origin.reason == ""


def test_the_default_of_a_coefficient_is_that_of_init():
    (clip,) = [p for p in outlined(CLIP)[0].parameters if p.slot is Slot.CLIP]
    assert ast.unparse(clip.default) == "0.2"


def test_each_branch_of_a_setting_is_a_target_of_its_own():
    names = [t.name for t in outlined(CLIP)]
    assert names == ["GRPOLoss.forward [level='token']", "GRPOLoss.forward [level='sequence']"]


def test_statements_keep_their_lines_and_what_is_not_needed_is_gone():
    target = outlined(CLIP)[0]
    lines = {n.lineno: ast.unparse(n) for n in target.node.body}
    assert lines[14] == "log_ratio = log_probs - action_log_probs"
    assert not any("self.log" in line for line in lines.values())


def test_a_method_called_on_the_way_becomes_a_function_inside():
    target = outlined(CLIP)[0]
    inner = [n for n in target.node.body if isinstance(n, ast.FunctionDef)]
    assert [n.name for n in inner] == ["self_masked_mean"]
    assert "self_scale" in ast.unparse(inner[0])


def test_a_trainer_of_another_package_gets_its_log_probs_from_outside():
    target = only("""
    class Mine(GRPOTrainer):
        def _compute_loss(self, model, inputs):
            ids, mask = inputs["completion_ids"], inputs["completion_mask"]
            logps = self._get_per_token_logps(model, ids)
            ratio = torch.exp(logps - inputs["old_per_token_logps"])
            adv = inputs["advantages"].unsqueeze(1)
            loss = -(torch.min(ratio * adv, ratio.clamp(0.8, 1 + self.epsilon_high) * adv))
            loss = (loss * mask).sum() / mask.sum()
            return loss / self.current_gradient_accumulation_steps
    """)
    assert target.name == "Mine._compute_loss"
    assert set(slots(target).values()) == {
        Slot.NEW, Slot.OLD, Slot.ADVANTAGES, Slot.MASK, Slot.CLIP_HIGH,
    }  # fmt: skip
    assert ast.unparse(target.node.body[-1]) == "return loss / 1"


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("self.mystery", "needs `self.mystery` (line 4), whose meaning is not recognised"),
        ("self.helper(adv)", "line 4 calls `self.helper`, which is of another file"),
        ("super().weights(adv)", "line 4 calls super()"),
        ("json.load(open(path))", "line 4 asks json"),
    ],
)
def test_what_cannot_be_had_is_named_with_its_line(attribute, reason):
    target = only(f"""
    class T(Base):
        def compute_loss(self, logp, old_logp, adv):
            scale = {attribute}
            return -(torch.exp(logp - old_logp) * adv * scale).mean()
    """)
    assert target.origin.reason == reason


def test_a_setting_that_is_off_leaves_its_branch_out():
    target = only("""
    class T(Base):
        def compute_loss(self, logp, old_logp, adv):
            loss = -(torch.exp(logp - old_logp) * adv)
            if self.args.delta is not None:
                loss = loss.clamp(max=self.args.delta)
            return loss.mean()
    """)
    assert "delta" not in ast.unparse(target.node)


def test_a_config_with_defaults_in_the_file_gives_them():
    target = only("""
    @dataclass
    class Config:
        clip_ratio: float = 0.28
        floor: float = 0.125

    class T:
        def policy_loss(self, logp, old_logp, adv, cfg: Config):
            ratio = torch.exp(logp - old_logp)
            kept = ratio.clamp(1 - cfg.clip_ratio, 1 + cfg.clip_ratio)
            return -torch.min(ratio * adv, kept * adv).mean() + cfg.floor
    """)
    (clip,) = [p for p in target.parameters if p.slot is Slot.CLIP]
    assert ast.unparse(clip.default) == "0.28"
    assert "+ 0.125" in ast.unparse(target.node)


def test_a_measure_is_no_loss():
    text = """
    class T:
        def log_metrics(self, logp, old_logp, adv):
            return (torch.exp(logp - old_logp) * adv).mean()
    """
    assert outlined(text) == []


def test_a_module_function_that_is_known_is_left_alone():
    text = "def loss(logp, old_logp, adv):\n    return (logp - old_logp) * adv\n"
    assert outlined(text) == []


def test_a_function_with_a_config_is_outlined_in_its_place():
    target = only("""
    def policy_loss(old_log_prob, log_prob, advantages, response_mask, config=None):
        assert config is not None
        ratio = torch.exp(log_prob - old_log_prob)
        low = config.clip_low if config.clip_low is not None else config.clip_ratio
        kept = ratio.clamp(1 - low, 1 + config.get("clip_ratio_high", 0.28))
        loss = torch.max(-advantages * ratio, -advantages * kept)
        return (loss * response_mask).sum() / response_mask.sum(), {"ratio": ratio.mean()}
    """)
    found = {p.name: p for p in target.parameters}
    assert target.name == "policy_loss"
    assert found["clip_low"].slot is Slot.CLIP_LOW
    assert ast.unparse(found["clip_ratio_high"].default) == "0.28"
    assert "config" not in {n.id for n in ast.walk(target.node) if isinstance(n, ast.Name)}
