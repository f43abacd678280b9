"""A loop in torch, in float32, with autograd: named from what it records.

Shapes: B rows, T slots, V words.
"""

import pytest

import rlproof
from rlproof.watch.command import inspect_path

torch = pytest.importorskip("torch")
GROUP, PROMPTS, WIDTH, WORDS = 4, 4, 5, 8


def losses(new, old, ref, advantages, mask, fault):
    ratio = (new / old) if fault == "SUR001" else torch.exp(new - old)
    plain, clipped = ratio * advantages[:, None], ratio.clamp(0.8, 1.28) * advantages[:, None]
    gain = (torch.maximum if fault == "SUR004" else torch.minimum)(plain, clipped)
    gap = (ref - new).detach() if fault == "KLD003" else ref - new
    per_token = 0.02 * (torch.exp(gap) - gap - 1) - gain
    if fault == "MSK001":
        return per_token.mean()
    if fault == "SUR012":
        return (per_token.detach() * mask + 0 * new).sum() / mask.sum()
    return (per_token * mask).sum() / mask.sum()


def train(path, fault=None, steps=6, gradient=False, lr=3.0):
    torch.manual_seed(0)
    theta = torch.zeros(PROMPTS, WORDS, requires_grad=True)
    optimizer = torch.optim.SGD([theta], lr=lr)
    reference = torch.randn(PROMPTS, WORDS) * 0.1

    def scored(logits, tokens):
        rows = torch.log_softmax(logits, -1).repeat_interleave(GROUP, 0)
        return torch.gather(rows, 1, tokens)

    for step in range(steps):
        with torch.no_grad():
            chances = torch.softmax(theta, -1).repeat_interleave(GROUP, 0)
            tokens = torch.multinomial(chances, WIDTH, replacement=True)
            old, ref = scored(theta, tokens), scored(reference, tokens)
        lengths = torch.randint(1, WIDTH + 1, (len(tokens), 1))
        mask = (torch.arange(WIDTH) < lengths).float()
        rewards = ((tokens < 2) * mask).sum(1) / lengths[:, 0]
        grouped = rewards.view(-1, GROUP)
        centred = grouped - grouped.mean(1, keepdim=True)
        advantages = (centred / (grouped.std(1, keepdim=True) + 1e-4)).flatten()
        for update in range(3):
            new = scored(theta, tokens)
            new.retain_grad()
            loss = losses(new, old, ref, advantages, mask, fault)
            optimizer.zero_grad()
            loss.backward()
            rlproof.record(
                step=step, update=update, rewards=rewards, groups=GROUP, advantages=advantages,
                new_logps=new, old_logps=old, ref_logps=ref, mask=mask, tokens=tokens, loss=loss,
                grad=new.grad if gradient else None, path=path, every=1,
            )  # fmt: skip
            optimizer.step()
    return inspect_path(str(path), ())


@pytest.mark.parametrize("gradient", [False, True])
def test_a_right_loop_is_named(tmp_path, gradient):
    shown = train(tmp_path / "a.jsonl", gradient=gradient)
    assert shown.findings == ()
    assert "min-clip 0.2/0.28 of the token ratio, k3 · 0.02, token-mean" in shown.said[0]
    assert shown.said[1] == "the advantages are: group-mean baseline over sample-std"


@pytest.mark.parametrize("fault", ["SUR001", "SUR004", "MSK001"])
@pytest.mark.parametrize("gradient", [False, True])
def test_a_fault_is_named(tmp_path, fault, gradient):
    shown = train(tmp_path / "a.jsonl", fault, gradient=gradient)
    assert {f.rule.code for f in shown.findings} == {"STP001"}
    assert fault in shown.findings[0].faults


def test_a_penalty_without_gradient_is_named_from_gradients(tmp_path):
    shown = train(tmp_path / "a.jsonl", "KLD003", gradient=True)
    assert [f.faults for f in shown.findings] == [("KLD003",)]


def test_a_loss_that_reaches_no_weight(tmp_path):
    shown = train(tmp_path / "a.jsonl", "SUR012", gradient=True)
    found = {f.rule.code: f.faults for f in shown.findings}
    assert found["STP014"] == ("LOP006",)
