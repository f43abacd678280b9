"""SMP001, LGP001: tokens are scored with the distribution that they were drawn from."""

import pytest
from tests.support.rehearsing import rehearse
from tests.support.sampling import one_in

LOOP = """
import torch

HEAT = 0.7

def logps_of(model, ids):
    logits = model(ids).logits[:, :-1]SCALED
    return torch.log_softmax(logits.float(), -1).gather(-1, ids[:, 1:, None])[..., 0]

def train(model, loader, reward, optimizer):
    for prompts in loader:
        ids = model.generate(prompts, do_sample=True, temperature=HEATMORE)
        logps = logps_of(model, ids)
        loss = -((logps - logps.detach()).exp() * reward(ids).view(-1, 1)).mean()EXTRA
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BONUS = """
        lines = torch.log_softmax(model(ids).logits[:, :-1]SCALED, -1)
        loss = loss + 0.5 * (lines.exp() * lines).sum(-1).mean()"""


def loop(scaled="", more="", extra=""):
    extra = extra.replace("SCALED", scaled)
    return LOOP.replace("SCALED", scaled).replace("MORE", more).replace("EXTRA", extra)


@pytest.mark.parametrize(
    ("code", "text"),
    one_in(
        99,
        [
            ("LGP001", loop()),
            ("SMP001", loop(" / HEAT", ", top_k=3")),
            ("SMP001", loop(" / HEAT", ", top_p=0.5")),
            ("SMP001", loop(" / HEAT", ", repetition_penalty=1.3")),
            ("SMP001", loop(" / HEAT", ", min_new_tokens=12")),
        ],
    ),
)
def test_another_distribution_is_shown(tmp_path, code, text):
    pytest.importorskip("torch")
    found = rehearse(tmp_path, text, code, "train")
    assert found.holds is False
    assert abs(found.evidence.got - found.evidence.expected) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", ", top_k=0", ", top_p=1.0", ", repetition_penalty=1.0"])
def test_the_same_one_is_not(tmp_path, more):
    pytest.importorskip("torch")
    assert rehearse(tmp_path, loop(" / HEAT", more), "LGP001", "train").holds is True


@pytest.mark.slow
def test_a_bonus_for_entropy_leaves_it_open(tmp_path):
    """What the bonus sends to the logits is no distribution: nothing is said of the sampling."""
    pytest.importorskip("torch")
    text = (
        loop(" / HEAT", "", BONUS)
        .replace("lines = ", "lines = ")
        .replace(
            "logps = logps_of(model, ids)\n",
            "answer = model(ids).logits[:, :-1] / HEAT\n"
            "        lines = torch.log_softmax(answer, -1)\n"
            "        logps = lines.gather(-1, ids[:, 1:, None])[..., 0]\n",
        )
        .replace("\n        lines = torch.log_softmax(model(ids).logits[:, :-1] / HEAT, -1)", "")
    )
    found = rehearse(tmp_path, text, "LGP001", "train")
    assert (found.holds, found.reason) == (None, "the loss has other terms that act on the logits")


@pytest.mark.slow
def test_methods_that_sample_and_score_are_called_one_after_the_other(tmp_path):
    pytest.importorskip("torch")
    text = """
class Trainer:
    def __init__(self, model, heat=0.9):
        self.model, self.heat = model, heat

    def logps(self, model, tokens, keep):
        logits = model(tokens).logits[:, :-1][:, -keep:]SCALED
        chosen = tokens[:, -keep:, None]
        return logits.log_softmax(-1).gather(-1, chosen).squeeze(-1)

    def sample(self, prompt_ids):
        return self.model.generate(prompt_ids, do_sample=True, temperature=self.heat)
"""
    bad, good = text.replace("SCALED", ""), text.replace("SCALED", " / self.heat")
    assert rehearse(tmp_path, bad, "LGP001", "Trainer.logps").holds is False
    assert rehearse(tmp_path, good, "LGP001", "Trainer.logps").holds is True
