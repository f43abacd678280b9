"""LOP001: on data that is used again, the ratio is that of the policies."""

from math import exp

import pytest
from tests.support.rehearsing import rehearse
from tests.support.sampling import one_in

LOOP = """
import torch

def scored(model, ids):
    lines = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return lines.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)

def train(model, loader, reward, iterations=3, eps=0.2):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for prompts in loader:
        ids = model.generate(prompts, do_sample=True, temperature=1.0)
        adv = reward(ids)
        before = scored(model, ids).detach()
        for _ in range(iterations):
            now = scored(model, ids)
            old = OLD
            ratio = torch.exp(now - old)
            loss = LOSS
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
TRAINER = """
import torch

class Trainer:
    def __init__(self, model, ref_model, optimizer, reward_fn, args):
        self.model, self.ref_model, self.args = model, ref_model, args
        self.optimizer, self.reward_fn = optimizer, reward_fn

    def fit(self, dataloader):
        def logps_of(net, tokens):
            lines = net(tokens).logits[:, :-1].log_softmax(-1)
            return torch.take_along_dim(lines, tokens[:, 1:, None], -1)[..., 0]
        for batch in dataloader:
            tokens = self.model.generate(batch, do_sample=True)
            gains = self.reward_fn(tokens)
            with torch.no_grad():
                stale = logps_of(self.model, tokens)
                anchor = logps_of(self.ref_model, tokens)
            for _ in range(self.args.num_iterations):
                fresh = logps_of(self.model, tokens)
                weight = (fresh - WHICH).exp()
                gap = anchor - fresh
                kl = gap.exp() - gap - 1
                (-(weight * gains) + 0.1 * kl).mean().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
"""
CLIPPED = "-torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()"


def loop(old, loss=CLIPPED):
    return LOOP.replace("OLD", old).replace("LOSS", loss)


@pytest.mark.parametrize(
    "text",
    one_in(
        99,
        [
            loop("now.detach()"),
            loop("now.detach().clone()"),
            TRAINER.replace("WHICH", "fresh.detach()"),
        ],
    ),
)
def test_a_ratio_that_is_1_is_shown_with_what_it_should_be(tmp_path, text):
    pytest.importorskip("torch")
    name = "Trainer.fit" if "class" in text else "train"
    found = rehearse(tmp_path, text, "LOP001", name)
    assert found.holds is False
    assert found.evidence.got == 1.0  # e^0: old follows new
    shift = float(found.evidence.input.split(" moved by ")[1].split(" since")[0])
    assert found.evidence.expected == pytest.approx(exp(shift), rel=2e-3)  # shift has 3 digits


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        loop("before"),
        loop("before", "-(ratio * adv).mean()"),
        loop("before", "-(ratio.detach().clamp(max=2) * now * adv).mean()"),  # CISPO
        loop("before", "-((now - old).mean(1, keepdim=True).exp() * adv.view(-1, 1)).mean()"),
        TRAINER.replace("WHICH", "stale"),
    ],
)
def test_published_ratios_keep_it(tmp_path, text):
    """Token-wise, clipped or not; truncated and detached (arXiv:2506.13585); of whole sequences
    (arXiv:2507.18071); beside a divergence."""
    pytest.importorskip("torch")
    found = rehearse(tmp_path, text, "LOP001", "Trainer.fit" if "class" in text else "train")
    assert found.holds is True, found


@pytest.mark.slow
def test_one_update_for_each_batch_says_nothing(tmp_path):
    pytest.importorskip("torch")
    text = loop("now.detach()").replace("range(iterations)", "range(1)")
    found = rehearse(tmp_path, text, "LOP001", "train")
    assert (found.holds, found.reason) == (None, "no row is used again after a step")
