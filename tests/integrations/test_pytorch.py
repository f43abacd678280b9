"""Steps of a torch loop, recorded with the gradient that `backward` computes.

Shapes: B rows, T slots, V words.
"""

import gc
import time
import warnings
import weakref

import pytest

from rlproof.errors import ConfigError
from rlproof.integrations.pytorch import Recording
from rlproof.watch.command import inspect_path
from rlproof.watch.schema import decode

torch = pytest.importorskip("torch")
GROUP, PROMPTS, WIDTH, WORDS = 4, 4, 5, 8
ROWS = GROUP * PROMPTS


def records(path):
    return [decode(line) for line in path.read_bytes().splitlines()]


def array(record, name):
    return torch.tensor(record.arrays[name].array())


def grpo(new, old, advantages, mask, fault=None):
    ratio = torch.exp(new - old)
    plain, clipped = ratio * advantages[:, None], ratio.clamp(0.8, 1.2) * advantages[:, None]
    gain = (torch.maximum if fault == "SUR004" else torch.minimum)(plain, clipped)
    return -(gain * mask).sum() / mask.sum()


class World:
    """A table of logits, and batches of one group a prompt."""

    def __init__(self, dtype=torch.float32):
        self.random = torch.Generator().manual_seed(0)
        self.theta = torch.zeros(PROMPTS, WORDS, dtype=dtype, requires_grad=True)

    def scored(self, tokens):
        rows = torch.log_softmax(self.theta, -1).repeat_interleave(GROUP, 0)
        return torch.gather(rows, 1, tokens)

    def batch(self):
        with torch.no_grad():
            chances = torch.softmax(self.theta, -1).repeat_interleave(GROUP, 0)
            tokens = torch.multinomial(
                chances.float(), WIDTH, replacement=True, generator=self.random
            )
            old = self.scored(tokens)
        lengths = torch.randint(1, WIDTH + 1, (ROWS, 1), generator=self.random)
        mask = (torch.arange(WIDTH) < lengths).to(old.dtype)
        rewards = ((tokens < 2) * mask).sum(1) / lengths[:, 0]
        grouped = rewards.view(-1, GROUP)
        centred = grouped - grouped.mean(1, keepdim=True)
        advantages = (centred / (grouped.std(1, keepdim=True) + 1e-4)).flatten()
        return {"tokens": tokens, "old": old, "mask": mask, "rewards": rewards, "adv": advantages}


def train(recording, steps=4, parts=1, fault=None, dtype=torch.float32, scale=None):
    """One update of every batch is on-policy, the second is not; rows in `parts` micro-batches."""
    world = World(dtype)
    optimizer = torch.optim.SGD([world.theta], lr=10.0)
    gradients = []
    for step in range(steps):
        batch = world.batch()
        for update in range(2):
            optimizer.zero_grad()
            for rows in torch.arange(ROWS).chunk(parts):
                part = {name: value[rows] for name, value in batch.items()}
                new = world.scored(batch["tokens"])[rows]
                loss = grpo(new, part["old"], part["adv"], part["mask"], fault)
                if recording is not None:
                    recording.step(
                        step, update=update, new_logps=new, old_logps=part["old"],
                        rewards=part["rewards"], advantages=part["adv"], mask=part["mask"],
                        tokens=part["tokens"], loss=loss,
                    )  # fmt: skip
                (loss * (1 / parts if scale is None else scale)).backward()
            gradients.append(world.theta.grad.clone())
            optimizer.step()
    return gradients


@pytest.fixture
def path(tmp_path):
    return tmp_path / "steps.jsonl"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("parts", [1, 2])
def test_gradients_are_the_same_bits_with_and_without(path, dtype, parts):
    with Recording(path, every=1, groups=GROUP) as recording:
        watched = train(recording, parts=parts, dtype=dtype)
    for a, b in zip(watched, train(None, parts=parts, dtype=dtype), strict=True):
        assert a.dtype == b.dtype == dtype
        assert torch.equal(a, b)


def test_what_is_written_is_what_autograd_says(path):
    """The recorded gradient against torch.autograd.grad of the same loss."""
    batch = World().batch()
    new = World().scored(batch["tokens"])
    old = batch["old"] + 0.1 * torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(1))
    loss = grpo(new, old, batch["adv"], batch["mask"])
    (expected,) = torch.autograd.grad(loss, new, retain_graph=True)
    with (
        Recording(path) as recording,
        recording.step(
            0, new_logps=new, old_logps=old, advantages=batch["adv"], mask=batch["mask"], loss=loss
        ),
    ):
        (loss / 4).backward()
    (found,) = records(path)
    assert found.scale == 0.25  # the factor above
    assert torch.allclose(array(found, "grad").float(), expected, rtol=1e-6, atol=0)
    assert found.loss == pytest.approx(loss.item())
    assert torch.equal(array(found, "new_logps"), new.detach())


def test_passes_through_one_graph_add_up(path):
    """Twice a quarter is a half: the sum of both gradients is half the loss's."""
    new = torch.randn(2, 3, requires_grad=True) * 1.0
    loss = (new * torch.arange(6.0).view(2, 3)).sum()
    with Recording(path) as recording:
        recording.step(0, new_logps=new, loss=loss)
        (loss / 4).backward(retain_graph=True)
        (loss / 4).backward()
    (found,) = records(path)
    assert found.scale == 0.5
    assert array(found, "grad").flatten().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("scale", [None, 65536.0])
def test_a_right_loop_is_named(path, scale):
    with Recording(path, every=1, groups=GROUP) as recording:
        train(recording, scale=scale)
    shown = inspect_path(str(path), ())
    assert shown.findings == ()
    assert "grpo" in shown.said[0]
    assert "with its coefficients" in shown.said[0]


def test_accumulated_parts_are_numbered_and_named(path):
    with Recording(path, every=1, groups=GROUP) as recording:
        train(recording, parts=2)
    found = records(path)
    assert [(r.step, r.update, r.micro_batch, r.scale) for r in found[:5]] == [
        (0, 0, 0, 0.5), (0, 0, 1, 0.5), (0, 1, 0, 0.5), (0, 1, 1, 0.5), (1, 0, 0, 0.5),
    ]  # fmt: skip
    shown = inspect_path(str(path), ())
    assert shown.findings == ()
    assert "grpo" in shown.said[0]


def test_a_declared_accumulation_stays_in_loss_and_gradient(path):
    """A quarter of the loss and of its gradient, which is 1 a slot."""
    new = torch.full((2, 3), -1.0, requires_grad=True) * 1.0
    loss = new.sum()
    with Recording(path, facts={"accumulation": 4}) as recording:
        recording.step(0, new_logps=new, loss=loss)
        (loss / 4).backward()
    (found,) = records(path)
    assert (found.loss, found.scale) == (-1.5, None)
    assert array(found, "grad").flatten().tolist() == [0.25] * 6


def test_bfloat16_is_recorded_and_silent(path):
    with Recording(path, every=1, groups=GROUP) as recording:
        train(recording, dtype=torch.bfloat16)
    assert records(path)[0].arrays["grad"].of == "bfloat16"
    assert inspect_path(str(path), ()).findings == ()


def test_a_fault_is_found(path):
    with Recording(path, every=1, groups=GROUP) as recording:
        train(recording, fault="SUR004")
    shown = inspect_path(str(path), ())
    assert [f.rule.code for f in shown.findings] == ["STP001"]
    assert "SUR004" in shown.findings[0].faults


def test_only_due_steps_are_recorded_and_the_rest_has_no_hook(path):
    new = torch.zeros(2, 3, requires_grad=True) * 1.0
    with Recording(path, every=20) as recording:
        for step in range(41):
            recording.step(step, new_logps=new, loss=new.sum())
            assert bool(new._backward_hooks) == (step % 20 == 0)
    assert [r.step for r in records(path)] == [0, 20, 40]


def test_without_a_path_nothing_is_done(tmp_path, monkeypatch):
    monkeypatch.delenv("RLPROOF_RECORD", raising=False)
    new = torch.zeros(2, 3, requires_grad=True) * 1.0
    with Recording(every=1) as recording:
        recording.step(0, new_logps=new, loss=new.sum())
        assert not new._backward_hooks
    monkeypatch.setenv("RLPROOF_RECORD", str(tmp_path / "{rank}.jsonl"))
    with Recording(every=1) as recording:
        recording.step(0, new_logps=new, loss=new.sum())
    assert (tmp_path / "0.jsonl").exists()


def test_no_graph_is_kept(path):
    theta = torch.zeros(2, 3, requires_grad=True)
    with Recording(path, every=1) as recording:
        new = theta * 2.0
        loss = new.sum()
        recording.step(0, new_logps=new, loss=loss)
        loss.backward()
        alive = weakref.ref(new), weakref.ref(loss)
        del new, loss
        gc.collect()
        assert [ref() for ref in alive] == [None, None]


def test_values_are_those_of_the_call(path):
    """A loss that shifts its advantages in place is recorded with what it was given."""
    new = torch.zeros(2, 3, requires_grad=True) * 1.0
    advantages = torch.ones(2)
    with Recording(path) as recording:
        recording.step(0, new_logps=new, advantages=advantages, loss=new.sum())
        advantages.add_(5)
    assert array(records(path)[0], "advantages").tolist() == [1, 1]


def test_a_copy_of_the_log_probs_gives_no_gradient(path):
    theta = torch.zeros(2, 3, requires_grad=True)
    new = theta * 1.0
    loss = new.sum()
    with Recording(path) as recording:
        recording.step(0, new_logps=new.float() + 0, loss=loss)
        loss.backward()
    (found,) = records(path)
    assert "grad" not in found.arrays
    assert found.problems == ("grad: backward did not pass through new_logps",)


def test_autocast(path):
    layer = torch.nn.Linear(4, WORDS)
    states, tokens = torch.randn(2, WIDTH, 4), torch.zeros(2, WIDTH, 1, dtype=torch.long)
    with Recording(path) as recording, torch.autocast("cpu", torch.bfloat16):
        logits = layer(states)
        assert logits.dtype == torch.bfloat16
        new = torch.gather(torch.log_softmax(logits.to(torch.bfloat16), -1), 2, tokens)[..., 0]
        loss = -new.mean()
        recording.step(0, new_logps=new.to(torch.bfloat16), loss=loss)
        loss.backward()
    (found,) = records(path)
    assert found.loss == pytest.approx(loss.item())


@pytest.mark.parametrize("odd", [
    {"new_logps": "text"}, {"new_logps": None}, {"loss": float("nan")}, {"loss": "none"},
    {"mask": object()}, {"rewards": [[1], [1, 2]]}, {"groups": object()}, {"advantages": {}},
])  # fmt: skip
def test_what_values_hold_never_raises(path, odd):
    new = torch.zeros(2, 3, requires_grad=True) * 1.0
    given = {"new_logps": new, "loss": new.sum(), **odd}
    with warnings.catch_warnings(), Recording(path, every=1) as recording:
        warnings.simplefilter("ignore", RuntimeWarning)
        recording.step(0, **given)
        new.sum().backward()
    if path.exists():
        inspect_path(str(path), ())


def test_an_unknown_name_is_refused_at_once(path):
    recording = Recording(path, every=20)
    with pytest.raises(ConfigError, match="'advantage': unknown, expected one of advantages"):
        recording.step(1, advantage=[1.0])
    with pytest.raises(ConfigError, match="'group'"):
        Recording(path, group=8)
    with pytest.raises(ConfigError, match="every is 0"):
        Recording(path, every=0)


def test_a_step_that_fails_is_written_and_raises(path):
    new = torch.zeros(2, 3, requires_grad=True) * 1.0
    with (
        pytest.raises(ArithmeticError),
        Recording(path) as recording,
        recording.step(0, new_logps=new, loss=new.sum()),
    ):
        raise ArithmeticError
    assert len(records(path)) == 1


def test_recording_every_20th_step_costs_less_than_2_percent(path):
    """Time spent in here over the time of the loop, in one run: a model of 130,000 weights."""
    model = torch.nn.Sequential(torch.nn.Embedding(512, 128), torch.nn.Linear(128, 512))
    tokens, mask, adv = torch.randint(512, (ROWS, 32)), torch.ones(ROWS, 32), torch.randn(ROWS)
    own, began = 0.0, time.perf_counter()
    with Recording(path, groups=GROUP) as recording:
        for step in range(40):
            new = torch.gather(torch.log_softmax(model(tokens), -1), 2, tokens[..., None])[..., 0]
            old = new.detach()
            loss = grpo(new, old, adv, mask)
            before = time.perf_counter()
            recording.step(
                step, new_logps=new, old_logps=old, advantages=adv, rewards=adv, mask=mask,
                tokens=tokens, loss=loss,
            )  # fmt: skip
            own += time.perf_counter() - before
            loss.backward()
            before = time.perf_counter()
            recording.flush()
            own += time.perf_counter() - before
    assert own < 0.02 * (time.perf_counter() - began)
    assert len(records(path)) == 2
