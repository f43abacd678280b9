"""Ways of writing that real scripts use: what is returned, and what has to be given."""

import pytest

from tests.support.checking import check_text, strong

LOSS = '''
import numpy as np


def policy_loss(logp, old_logp, advantages, mask, clip_eps=0.2):
    """Clipped policy loss."""
    ratio = np.exp(logp - old_logp)
    clipped = np.clip(ratio, 1 - clip_eps, 1 + clip_eps)
    per_token = -np.minimum(ratio * advantages[:, None], clipped * advantages[:, None])
    loss = (per_token * mask).sum() / max(mask.sum(), 1)
    clip_share = float((((ratio < 1 - clip_eps) | (ratio > 1 + clip_eps)) * mask).sum())
    return {returned}
'''


@pytest.mark.parametrize(
    "returned",
    [
        "loss",
        "(loss, clip_share)",
        "(loss, {'clip': clip_share})",
        "{'clip': clip_share, 'loss': loss}",
        "{'policy_loss': loss, 'ratio': ratio}",
        "loss.reshape(1)",
        "float(loss)",
    ],
)
def test_a_loss_is_found_in_what_is_returned(tmp_path, returned):
    report = check_text(tmp_path, LOSS.format(returned=returned))
    [target] = report.targets
    assert (strong(report), report.skipped) == ([], ())
    assert (target.recipe, target.objective["aggregation"]) == ("grpo", "token-mean")


@pytest.mark.parametrize("returned", ["per_token * mask", "(per_token * mask, {})"])
def test_a_loss_that_is_not_reduced_is_judged_per_token(tmp_path, returned):
    report = check_text(tmp_path, LOSS.format(returned=returned))
    [target] = report.targets
    assert strong(report) == []
    assert (target.recipe, target.objective["aggregation"]) == ("grpo", "per-token")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ("'low'", "returned str 'low', where a loss was expected"),
        ("None", "returned None, where a loss was expected"),
        ("loss * float('nan')", "returned nan"),
        ("[]", "returned a list, where a loss was expected"),
    ],
)
def test_what_is_no_loss_is_skipped_with_its_reason(tmp_path, returned, reason):
    report = check_text(tmp_path, LOSS.format(returned=returned))
    assert [(s.check, s.reason) for s in report.skipped] == [("running policy_loss", reason)]
    assert (strong(report), report.checked) == ([], 0)


def test_advantages_from_a_reward_function(tmp_path):
    """Responses in, a tuple out: the course-work signature."""
    report = check_text(
        tmp_path,
        "import numpy as np\n\n\n"
        "def group_normalized_rewards(reward_fn, responses, ground_truths, group_size,\n"
        "                             advantage_eps, normalize_by_std):\n"
        '    """Centred rewards of each group, over the std if asked for."""\n'
        "    pairs = zip(responses, ground_truths)\n"
        "    raw = np.array([reward_fn(r, g)['reward'] for r, g in pairs])\n"
        "    groups = raw.reshape(-1, group_size)\n"
        "    adv = groups - groups.mean(axis=1, keepdims=True)\n"
        "    if normalize_by_std:\n"
        "        adv = adv / (groups.std(axis=1, ddof=1, keepdims=True) + advantage_eps)\n"
        "    return adv.ravel(), raw, {'mean': raw.mean()}\n",
    )
    [target] = report.targets
    assert (target.objective["baseline"], target.objective["scale"]) == ("group-mean", "sample-std")
    assert (strong(report), report.skipped) == ([], ())


def test_an_argument_nobody_can_guess_is_named(tmp_path):
    """One that nothing reads stands in nobody's way."""
    text = LOSS.replace("mask, clip_eps", "mask, frobnicator, clip_eps")
    report = check_text(tmp_path, text.format(returned="loss * frobnicator"))
    [skipped] = report.skipped
    assert "needs `frobnicator` (line " in skipped.reason
    assert skipped.reason.endswith("whose meaning is not recognised")
    unread = check_text(tmp_path, text.format(returned="loss"))
    assert (strong(unread), unread.skipped, unread.checked) == ([], (), 1)


def test_a_virtual_environment_beside_the_script_is_not_local_code(tmp_path, monkeypatch):
    """Installed packages are imported as they are, even from below the script's folder."""
    import sysconfig
    from pathlib import Path

    site = Path(sysconfig.get_paths()["purelib"])
    script = site.parents[3] / "rlproof_probe_script.py"
    if not site.is_relative_to(script.parent) or script.exists():
        pytest.skip("no folder above the environment to write to")
    try:
        script.write_text(LOSS.format(returned="loss"))
    except OSError:
        pytest.skip("the folder above the environment is not writable")
    try:
        from rlproof.judge.check import check
        from rlproof.read.script import read

        assert check(read(str(script))).skipped == ()
    finally:
        script.unlink()


TORCH_TRAINER = '''
import torch


def grpo_loss(logps, old_logps, advantages, mask, clip_eps=0.2):
    """Clipped surrogate, a loss to minimise."""
    ratio = torch.exp(logps - old_logps)
    a = advantages[:, None]
    terms = torch.min(ratio * a, ratio.clamp(1 - clip_eps, 1 + clip_eps) * a)
    return -(terms * mask).sum() / mask.sum()


def token_logps(theta, rows, tokens):
    return torch.log_softmax(theta, -1)[rows].gather(1, tokens)


def train(steps=20, epochs=2, lr=0.5, seed=0):
    torch.manual_seed(seed)
    theta = torch.nn.Parameter(torch.zeros(3, 4, dtype=torch.float64))
    optimizer = torch.optim.Adam([theta], lr=lr)
    rows = torch.arange(3).repeat_interleave(4)
    for _ in range(steps):
        with torch.no_grad():
            tokens = torch.multinomial(torch.softmax(theta, -1)[rows], 3, replacement=True)
            rewards = (tokens == rows[:, None]).double().mean(1).view(-1, 4)
        centred = rewards - rewards.mean(1, keepdim=True)
        adv = (centred / (rewards.std(1, keepdim=True) + 1e-6)).view(-1)
        mask = torch.ones(12, 3, dtype=torch.float64)
        {old}
        for _ in range(epochs):
            {refreshed}
            optimizer.zero_grad()
            loss = grpo_loss(token_logps(theta, rows, tokens), old, adv, mask)
            loss.backward()
            optimizer.step()
    return theta
'''
OLD = "old = token_logps(theta, rows, tokens).detach()"


def test_a_loop_with_an_optimizer_is_recorded(tmp_path):
    pytest.importorskip("torch")
    healthy = check_text(tmp_path, TORCH_TRAINER.format(old=OLD, refreshed=""))
    assert (strong(healthy), healthy.skipped, healthy.checked) == ([], (), 4)  # advantages inline
    broken = check_text(tmp_path, TORCH_TRAINER.format(old="", refreshed=OLD))
    assert strong(broken) == ["LOP001"]


def test_what_the_machine_lacks_is_no_fault_of_the_script(tmp_path):
    pytest.importorskip("torch")
    text = TORCH_TRAINER.format(old=OLD, refreshed="").replace(
        "    optimizer =", "    theta = open('weights.bin', 'rb')\n    optimizer ="
    )
    report = check_text(tmp_path, text)
    assert strong(report) == []
    assert "weights.bin" in report.skipped[0].reason


def test_the_mask_of_the_whole_batch_may_be_the_one_that_is_counted(tmp_path):
    """A chunk's terms over the tokens of all chunks: a scope, not a second mask (MSK003)."""
    text = LOSS.format(returned="loss").replace("mask, clip_eps", "mask, {second}, clip_eps")
    text = text.replace("max(mask.sum(), 1)", "max({second}.sum(), 1)")
    scope = check_text(tmp_path, text.replace("{second}", "full_mask"))
    assert strong(scope) == []
    first = text.replace("(logp, old", "({second}, logp, old").replace(
        "{second}, clip_eps", "clip_eps"
    )
    assert "(full_mask, logp" in (first := first.replace("{second}", "full_mask"))
    assert strong(check_text(tmp_path, first)) == []  # whichever of the two comes first
    other = check_text(tmp_path, text.replace("{second}", "count_mask"))
    assert strong(other) == ["MSK003"]


def test_a_width_in_place_of_a_setting_left_out_is_said_and_no_fault(tmp_path):
    """The same divisor without the setting is AGG004: nobody could make it a constant."""
    text = LOSS.format(returned="loss").replace("clip_eps=0.2", "clip_eps=0.2, horizon=None")
    start = "    ratio = np"
    text = text.replace(start, "    if horizon is None:\n        horizon = mask.shape[1]\n" + start)
    text = text.replace("max(mask.sum(), 1)", "(mask.shape[0] * horizon)")
    report = check_text(tmp_path, text)
    assert strong(report) == []
    assert [s.reason for s in report.skipped] == [
        "without `horizon` it is the padded width: constant only if that is fixed"
    ]
    bare = text.replace("horizon is None", "True")
    assert strong(check_text(tmp_path, bare)) in (["AGG004"], ["MSK002"])


SILENT = """
import torch


class Learner:
    def improve(self, data):
        cur = self.net(data.x)
        prev, gain = data.prev, data.gain
        keep = data.keep
        prev = data.prev
        gain = data.gain
        r = torch.exp(cur - prev)
        s = torch.{picker}(r * gain[:, None], r.clamp(0.8, 1.2) * gain[:, None])
        out = -(s * keep).sum() / keep.sum()
        out.backward()
        self.opt.step()
        self.opt.zero_grad()
"""


def test_names_that_say_nothing_have_roles_by_the_shape_of_the_code(tmp_path):
    pytest.importorskip("torch")
    assert strong(check_text(tmp_path, SILENT.format(picker="max"))) == ["SUR004"]
    healthy = check_text(tmp_path, SILENT.format(picker="min"))
    assert (strong(healthy), healthy.skipped, healthy.checked) == ([], (), 1)


GROUPED = '''
import numpy as np


def normalize(x, k):
    """{doc}"""
    g = x.reshape(-1, k)
    return ((g - g.mean(1, keepdims=True)) / (g.std(1, keepdims=True) + 1e-6)).reshape(-1)


{use}
'''


@pytest.mark.parametrize(
    ("doc", "use", "judged"),
    [
        ("x: rewards of all rows, k: completions per prompt", "", 1),
        ("Rows of k.", "def main(rewards):\n    return normalize(rewards, 4)", 1),
        ("Rows of k.", "def main(pixels):\n    return normalize(pixels, 4)", 0),
    ],
)
def test_a_normaliser_is_that_of_rewards_where_something_says_so(tmp_path, doc, use, judged):
    from rlproof.read.script import read

    path = tmp_path / "s.py"
    path.write_text(GROUPED.format(doc=doc, use=use), "utf-8")
    if not judged:
        assert not read(str(path)).targets
        return
    report = check_text(tmp_path, GROUPED.format(doc=doc, use=use))
    [target] = report.targets
    assert (target.objective["baseline"], report.checked) == ("group-mean", judged)
