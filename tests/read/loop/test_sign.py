import pytest
from tests.support.reading_loops import loop_of

from rlproof.read.loop.events import Kind
from rlproof.read.loop.sign import Signs
from rlproof.read.loop.updates import loss_of


@pytest.mark.parametrize(
    ("body", "sign"),
    [
        ("l = -(ratio * adv).mean()", -1),
        ("l = (ratio * adv).mean()", 1),
        ("l = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()", -1),
        ("l = torch.max(-ratio * adv, -ratio.clamp(0.8, 1.2) * adv).mean()", -1),
        (
            "s = torch.min(ratio * adv, other * adv)\nl = (0.1 * kl - s).mean()",
            None,
        ),
        ("s = ratio * adv\nl = ((0.1 * kl - s) * mask).sum() / mask.sum()", -1),
        ("l = -ratio * adv\nl = l.mean()\nl = l / 4", -1),
        ("l = ratio * -adv", -1),
        ("l = (1 - ratio) * adv", None),
        ("l = 0\nl = l - (ratio * adv).sum()", -1),
        ("l = nll * adv", None),
        ("l = ratio * adv\nif flip:\n    l = -l", None),
    ],
)
def test_sign_of_a_loss(body, sign):
    lines = "\n            ".join(body.split("\n"))
    loop = loop_of(f"""
        def train(model, ids, adv, mask, kl):
            ratio = torch.exp(model(ids) - model(ids).detach())
            {lines}
            l.backward()
    """)
    [event] = [e for e in loop.events if e.kind is Kind.BACKWARD]
    assert Signs(loop.passes).of(loss_of(event), event.step) == sign
