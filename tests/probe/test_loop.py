"""The loop recorder on small scripts: rollouts, bursts, knobs. Counts are read off the scripts."""

import pytest

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.sandbox import Sandbox
from rlproof.probe.loop import PROBE_CLIP, Call, Recorder, Rollout
from rlproof.read.names import Slot
from rlproof.read.script import read
from rlproof.read.targets import Role

PARTS = """\
def group_advantages(rewards, group_size):
    mean = sum(rewards) / len(rewards)
    return [r - mean for r in rewards]

def token_logps(theta, rows, tokens):
    return [[theta[row] for _ in line] for row, line in zip(rows, tokens)]

def grpo_loss(logp, old_logp, advantages, mask, clip_eps=0.2):
    return sum(a * n for a, n in zip(advantages, logp))

def clip_fraction(logp, old_logp, clip_eps=0.2):
    return 0.0

def rollout(step):
    return [float(step), 1.0]
"""
# Three loss calls per epoch, as a numeric gradient of one parameter with a base point makes.
TRAIN = """
def train(steps=2, epochs=2, lr=0.5, clip_eps=0.2):
    theta = 0.0
    for step in range(steps):
        rewards = rollout(step)
        adv = group_advantages(rewards, 2)
        old = [theta, theta]
        mask = [1, 1]
        for _ in range(epochs):
{metric}            for h in (-1e-3, 0.0, 1e-3):
                grpo_loss([theta + h] * 2, old, adv, mask, clip_eps)
            theta += lr * (step + 1)
    return theta
"""
METRIC = "            clip_fraction([theta] * 2, old, clip_eps)\n"


@pytest.fixture
def recorder(tmp_path):
    """A function from a script's text to its recorder, in a sandbox that is closed afterwards."""
    opened = []

    def make(text, name="train"):
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        script = read(str(path))
        target = next(t for t in script.of(Role.TRAIN) if t.name == name)
        opened.append(Sandbox(script.source))
        return Recorder(script, target, opened[-1])

    yield make
    for sandbox in opened:
        sandbox.__exit__(None, None, None)


def loop(metric=METRIC, **changes):
    text = PARTS + TRAIN.format(metric=metric)
    for old, new in changes.items():
        text = text.replace(f"{old}=2", new)
    return text


def test_default_run(recorder):
    seen = recorder(loop()).observe()
    assert seen.default.settings == {"steps": 3}
    assert seen.default.error is None
    assert len(seen.default.rollouts) == 3  # one per step
    first = seen.default.rollouts[0]
    roles = [call.role for call in first.calls]
    epoch = [Role.CLIP_FRACTION, *[Role.LOSS] * 3]
    assert roles == [Role.ROLLOUT, Role.ADVANTAGES, *epoch * 2]
    assert sum(len(r.calls) for r in seen.default.rollouts) == len(seen.default.calls)


def test_knobs(recorder):
    seen = recorder(loop()).observe()
    assert seen.epochs.settings == {"steps": 3, "epochs": 3, "clip_eps": PROBE_CLIP}
    assert seen.slow.settings == {"steps": 2, "epochs": 3, "lr": 0.005}
    assert seen.prompts is None  # there is no such parameter
    assert [len(r.bursts()) for r in seen.epochs.rollouts] == [3, 3, 3]
    clips = {call.args[Slot.CLIP] for call in seen.epochs.calls if call.role is Role.LOSS}
    assert clips == {PROBE_CLIP}


def test_epochs_above_three_stay(recorder):
    seen = recorder(loop(epochs="epochs=4")).observe()
    assert seen.epochs.settings["epochs"] == 4


@pytest.mark.parametrize("metric", [METRIC, ""], ids=["metric between epochs", "losses only"])
def test_bursts_are_the_first_calls_of_the_epochs(recorder, metric):
    """Two updates per rollout; θ moves by 0.5·(step + 1) with each, after a first probe at −h."""
    seen = recorder(loop(metric)).observe().default
    bursts = [rollout.bursts() for rollout in seen.rollouts]
    assert [len(burst) for burst in bursts] == [2, 2, 2]
    starts = [burst.args[Slot.NEW][0] + 1e-3 for burst in bursts[0]]
    assert starts == pytest.approx([0.0, 0.5])
    assert [rollout.epochs for rollout in seen.rollouts] == [2, 2, 2]


def test_bursts_without_an_epochs_knob(recorder):
    text = loop("").replace("epochs=2, ", "").replace("range(epochs)", "range(2)")
    seen = recorder(text).observe()
    assert [len(r.bursts()) for r in seen.default.rollouts] == [1] * 3  # can't be told apart
    assert seen.default.rollouts[0].epochs is None
    with_metric = text.replace("            for h", METRIC + "            for h")
    assert [len(r.bursts()) for r in recorder(with_metric).observe().default.rollouts] == [2] * 3


def test_arguments_keys_and_origin(recorder):
    seen = recorder(loop()).observe().default
    loss = next(call for call in seen.calls if call.role is Role.LOSS)
    assert loss.name == "grpo_loss"
    assert set(loss.args) == {Slot.NEW, Slot.OLD, Slot.ADVANTAGES, Slot.MASK, Slot.CLIP}
    assert loss.args[Slot.ADVANTAGES] == [-0.5, 0.5]  # rewards 0 and 1 about their mean
    assert loss.args[Slot.CLIP] == 0.2
    maker = seen.calls[loss.origin[Slot.ADVANTAGES]]
    assert (maker.role, maker.result) == (Role.ADVANTAGES, [-0.5, 0.5])
    assert loss.keys[Slot.ADVANTAGES] == seen.calls[3].keys[Slot.ADVANTAGES]
    line = loop().splitlines()[loss.line - 1]
    assert line.strip().startswith("grpo_loss(")


def test_error_ends_the_recording_and_is_kept(recorder):
    text = loop().replace(
        "            theta +=", "            1 / (1 - step)\n            theta +="
    )
    seen = recorder(text).observe().default
    assert seen.error.kind == "ZeroDivisionError"  # at step 1
    assert loop().splitlines()[seen.error.line - 1].startswith("            theta +=")
    assert len(seen.rollouts) == 2


def test_other_prompts(recorder):
    text = loop().replace("def train(", "def train(prompts=(0, 1), ").replace("steps=2, ", "")
    text = text.replace("range(steps)", "prompts")
    seen = recorder(text).observe()
    assert seen.prompts.settings == {"prompts": [5]}
    sampled = [c.result for c in seen.prompts.calls if c.role is Role.ROLLOUT]
    assert sampled == [[5.0, 1.0]]


def test_clip_of_the_loss_through_keyword_arguments(recorder):
    text = loop().replace("clip_eps=0.2):\n    theta", "**loss_args):\n    theta")
    text = text.replace("adv, mask, clip_eps)", "adv, mask, **loss_args)").replace(METRIC, "")
    assert recorder(text).observe().epochs.settings["clip_eps"] == PROBE_CLIP


def test_required_number_of_steps_is_given(recorder):
    seen = recorder(loop(steps="steps")).observe()
    assert seen.default.settings == {"steps": 3}


def test_other_required_argument_is_a_reason(recorder):
    with pytest.raises(UnbindableError, match="`model`"):
        recorder(loop().replace("def train(", "def train(model, "))


def test_loop_that_hangs_is_a_reason(recorder):
    made = recorder(loop().replace("    theta = 0.0\n", "    while True: pass\n"))
    made.sandbox.seconds = 0.3
    with pytest.raises(UnbindableError, match="did not finish"):
        made.observe()


def call(role, **keys):
    return Call(role, str(role), 1, {}, None, keys, {})


def loss(old, adv=1, mask=1):
    return call(Role.LOSS, **{Slot.OLD: old, Slot.ADVANTAGES: adv, Slot.MASK: mask})


@pytest.mark.parametrize(
    ("calls", "epochs", "starts"),
    [
        ([loss(1), loss(1), loss(2), loss(2)], None, [0, 2]),  # other old log-probs
        ([loss(1), loss(1, adv=2)], None, [0, 1]),  # other advantages: a minibatch
        ([loss(1), loss(1, mask=2)], None, [0, 1]),
        ([loss(1), call(Role.LOG_PROBS), loss(1)], None, [0]),  # log-probs come with a loss
        ([loss(1), call(Role.CLIP_FRACTION), loss(1)], None, [0, 2]),
        ([loss(1)] * 6, 3, [0, 2, 4]),
        ([loss(1)] * 6, 4, [0]),  # 6 calls are not 4 epochs
        ([call(Role.CLIP_FRACTION)], 2, []),
        ([], None, []),
    ],
)
def test_bursts_of_a_rollout(calls, epochs, starts):
    marked = [
        Call(c.role, c.name, i, c.args, c.result, c.keys, c.origin) for i, c in enumerate(calls)
    ]
    assert [c.line for c in Rollout(epochs, marked).bursts()] == starts
