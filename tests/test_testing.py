"""`rlproof.testing`: what is asserted, in which words, and what can't be bound.

Functions stand in files of a temporary folder and are imported as a user's tests would. The
expected numbers are the clipped surrogate by hand: π_new = 0.5, π_old = 0.25 is ρ = 2, which the
clip range 0.2 makes 1.2 and 0.28 makes 1.28; the loss is minus that for A = 1.
"""

import functools
import importlib.util
import unittest

import pytest

from rlproof.errors import ConfigError, NothingToCheckError, SourceError
from rlproof.faults.page import page
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.space.surrogates import Clip
from rlproof.testing import assert_conforms, check_trainer, trainer_checks

SOURCE = '''\
import functools

import numpy as np


def token_loss(logp, old_logp, adv, mask, clip_eps=0.2):
    """Clipped policy loss."""
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    term = np.minimum(ratio * a, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * a)
    return -(term * mask).sum() / mask.sum()


def optimistic_loss(logp, old_logp, adv, mask, clip_eps=0.2):
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    term = np.maximum(ratio * a, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * a)
    return -(term * mask).sum() / mask.sum()


def constant_loss(logp, old_logp, adv, mask):
    """Clipped policy loss."""
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    term = np.minimum(ratio * a, np.clip(ratio, 0.8, 1.2) * a)
    return -(term * mask).sum() / (mask.shape[0] * 512)


def cubed_loss(logp, old_logp, adv, mask):
    ratio = np.exp(logp - old_logp)
    return -((ratio**3 * adv[:, None]) * mask).sum() / mask.sum()


def wobble(x, y, z, w):
    return -((np.exp(x - y) * z[:, None]) * w).sum() / w.sum()


def group_advantages(rewards, group_size):
    r = np.asarray(rewards).reshape(-1, group_size)
    return ((r - r.mean(1, keepdims=True)) / (r.std(1, keepdims=True) + 1e-6)).reshape(-1)


def list_loss(logps, old_logps, advantages, mask):
    """Policy gradient with a ratio, over lists."""
    import math

    total, count = 0.0, 0
    for new, old, adv, row in zip(logps, old_logps, advantages, mask):
        for n, o, m in zip(new, old, row):
            if m:
                total -= min(math.exp(n - o) * adv, max(min(math.exp(n - o), 1.2), 0.8) * adv)
                count += 1
    return total / count


def needs_loss(logp, old_logp, adv, mask, oracle):
    return oracle.loss(logp, old_logp, adv, mask)


def nothing_special(a_list):
    return sorted(a_list)


def make():
    def inner_loss(logp, old_logp, adv, mask):
        return 0.0

    return inner_loss


def logged(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        return function(*args, **kwargs)

    return run


@logged
def decorated_loss(logp, old_logp, adv, mask):
    """Clipped policy loss."""
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    term = np.minimum(ratio * a, np.clip(ratio, 0.8, 1.2) * a)
    return -(term * mask).sum() / mask.sum()


class Trainer:
    def compute_loss(self, logp, old_logp, adv, mask):
        ratio, a = np.exp(logp - old_logp), adv[:, None]
        term = np.maximum(ratio * a, np.clip(ratio, 0.8, 1.2) * a)
        return -(term * mask).sum() / mask.sum()


small = lambda logp, old_logp, adv, mask: 0.0
'''
pytest_plugins = ["pytester"]
NAMES = {"x": "new", "y": "old", "z": "adv", "w": "mask"}
DAPO = OBJECTIVES["dapo"].objective


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(SOURCE, encoding="utf-8")
    return loaded(path)


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("token_loss", "dapo"),
        ("token_loss", "auto"),
        ("decorated_loss", "dapo"),
        ("group_advantages", "grpo"),
        ("list_loss", "dapo"),
        ("constant_loss", "dr_grpo"),
    ],
)
def test_what_conforms_passes(mine, name, objective):
    assert_conforms(getattr(mine, name), objective)


def test_a_fault_is_told_as_check_tells_it(mine):
    with pytest.raises(AssertionError) as failed:
        assert_conforms(mine.optimistic_loss, "dapo")
    text = str(failed.value)
    assert "mine.py:15:5: SUR004 optimistic-clip [error] in optimistic_loss" in text
    assert "π_new = 0.5, π_old = 0.25, A = 1, clip range 0.2" in text
    assert "got -2   expected -1.2" in text
    assert "token_loss" not in text


def test_another_recipe_is_a_difference(mine):
    with pytest.raises(AssertionError, match=r"AGG006.*\n(.*\n)*.*token-mean.*sequence-mean"):
        assert_conforms(mine.token_loss, "grpo")


def test_an_unknown_formula_does_not_pass(mine):
    with pytest.raises(AssertionError, match=r"not shown to be a published objective.*surrogate"):
        assert_conforms(mine.cubed_loss)


def test_a_declared_recipe_and_an_unknown_surrogate_are_no_internal_error(mine):
    """AGG006 can be said of it, but no value predicted."""
    with pytest.raises(AssertionError, match="AGG006"):
        assert_conforms(mine.cubed_loss, "grpo")


def test_a_method_of_a_class(mine):
    with pytest.raises(AssertionError, match=r"SUR004 .* in Trainer\.compute_loss"):
        assert_conforms(mine.Trainer.compute_loss)


def test_names_that_say_nothing_are_told(mine):
    with pytest.raises(ConfigError, match="not recognised"):
        assert_conforms(mine.nothing_special)
    assert_conforms(mine.wobble, role="loss", names=NAMES)


@pytest.mark.parametrize(
    ("pick", "said"),
    [
        (lambda m: m.small, "is a lambda"),
        (lambda m: m.make(), r"make\.inner_loss is made inside a function"),
        (lambda m: functools.partial(m.token_loss, clip_eps=0.1), "give token_loss itself"),
        (lambda m: m.Trainer, "Trainer is a class"),
        (lambda m: m.Trainer().compute_loss, "bound to an object"),
        (lambda m: len, "no Python source"),
        (lambda m: m.needs_loss, "needs_loss can't be called.*oracle"),
    ],
)
def test_what_cannot_be_bound_is_said(mine, pick, said):
    with pytest.raises(ConfigError, match=said):
        assert_conforms(pick(mine), "dapo")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"objective": "dappo"}, "did you mean dapo"),
        ({"role": "lost"}, "role 'lost' is unknown"),
        ({"role": "advantages"}, "is no advantages: it is recognised as loss"),
        ({"names": {"logp": "new"}}, "give one of them"),
        ({"role": "loss", "names": {"lp": "new"}}, "no parameter 'lp'"),
        ({"role": "loss", "names": {"logp": "knew"}}, "did you mean new"),
    ],
)
def test_wrong_arguments_are_said(mine, more, said):
    with pytest.raises(ConfigError, match=said):
        assert_conforms(mine.token_loss, **more)


def test_code_that_is_no_file_and_a_file_that_changed(tmp_path):
    space = {}
    exec(compile("def policy_loss(logp, old_logp, adv, mask): ...", "<made>", "exec"), space)
    with pytest.raises(ConfigError, match="<made>, which is no file"):
        assert_conforms(space["policy_loss"])
    path = tmp_path / "moved.py"
    path.write_text(SOURCE, encoding="utf-8")
    module = loaded(path)
    path.write_text("# a line more\n" + SOURCE, encoding="utf-8")
    with pytest.raises(ConfigError, match="import it anew"):
        assert_conforms(module.token_loss)


def test_an_objective_is_compared_number_by_number(mine):
    symmetric = DAPO.but(name="symmetric", clip=Clip(0.2, 0.2))
    assert_conforms(mine.token_loss, symmetric)
    with pytest.raises(AssertionError, match=r"(?s)given \(dapo\).*got -1.2   expected -1.28"):
        assert_conforms(mine.token_loss, DAPO)  # one range, where DAPO has two
    with pytest.raises(AssertionError, match=r"(?s)π_ref = 0.25.*got 0   expected 0.00772589"):
        # k3 of p = 0.25/0.5: p − log p − 1 = 0.193147, times β = 0.04
        assert_conforms(mine.token_loss, OBJECTIVES["grpo"].objective)


def test_a_constant_divisor_is_compared_up_to_the_constant(mine):
    assert_conforms(mine.constant_loss, OBJECTIVES["dr_grpo"].objective)


def test_a_wrong_aggregation_shows_in_rows_of_unequal_length(mine):
    grpo = Objective("rows", aggregation="sequence-mean")
    with pytest.raises(AssertionError, match="rows of 1 and 2 tokens"):
        assert_conforms(mine.token_loss, grpo)


def test_an_unknown_formula_is_told_from_an_objective_by_numbers(mine):
    """ρ³ at ρ = 1 has value 1 like ρ, and slope 3."""
    with pytest.raises(AssertionError, match=r"(?s)∂loss/∂logp.*got -3   expected -1"):
        assert_conforms(mine.cubed_loss, DAPO)


def test_advantages_of_an_objective(mine):
    """[1, 0] has mean 0.5, population std 0.5 and sample std √0.5; DAPO's here is the sample's."""
    assert_conforms(mine.group_advantages, Objective())
    with pytest.raises(AssertionError, match=r"got \[1, -1\]   expected \[0.70701, -0.70701\]"):
        assert_conforms(mine.group_advantages, DAPO)


def test_an_objective_that_no_such_function_can_show_is_refused(mine):
    corrected = DAPO.but(mismatch=Mismatch("truncate"))
    with pytest.raises(ConfigError, match="mismatch can't be seen"):
        assert_conforms(mine.token_loss, corrected)


@pytest.mark.slow
def test_a_function_over_torch_tensors(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "over_torch.py"
    text = SOURCE[SOURCE.index("def token_loss") : SOURCE.index("def constant_loss")]
    for old, new in (
        ("np.exp", "torch.exp"), ("np.minimum", "torch.minimum"), ("np.maximum", "torch.maximum"),
        ("np.clip", "torch.clamp"),
    ):  # fmt: skip
        text = text.replace(old, new)
    path.write_text("import torch\n\n\n" + text, encoding="utf-8")
    module = loaded(path)
    assert_conforms(module.token_loss, "dapo")
    with pytest.raises(AssertionError, match="SUR004"):
        assert_conforms(module.optimistic_loss, "dapo")


def test_a_trainer(tmp_path):
    broken, right = tmp_path / "broken.py", tmp_path / "right.py"
    broken.write_text(page("LOP002").planted, encoding="utf-8")
    right.write_text(page("LOP002").healthy, encoding="utf-8")
    check_trainer(right)
    with pytest.raises(AssertionError, match=r"LOP002 .* in train"):
        check_trainer(loaded(broken))


def test_a_trainer_that_is_none(tmp_path):
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(NothingToCheckError):
        check_trainer(empty)
    with pytest.raises(NothingToCheckError):
        list(trainer_checks(empty))
    with pytest.raises(SourceError, match="no such file"):
        check_trainer(tmp_path / "missing.py")
    with pytest.raises(ConfigError, match="a path or a module"):
        check_trainer(len)


def test_the_checks_of_a_trainer_one_by_one(tmp_path):
    path = tmp_path / "train.py"
    unrunnable = SOURCE[SOURCE.index("def needs_loss") : SOURCE.index("def nothing_special")]
    path.write_text(page("LOP002").planted + "\n\n" + unrunnable, encoding="utf-8")
    checks = dict(trainer_checks(path))
    assert list(checks)[-1] == "file"
    with pytest.raises(AssertionError, match="LOP002"):
        checks.pop("train train")()
    with pytest.raises(unittest.SkipTest, match="oracle"):
        checks.pop("loss needs_loss")()
    assert len(checks) > 1
    for check in checks.values():
        check()


def test_files_that_a_trainer_imports_functions_from_belong_to_the_rest(tmp_path):
    (tmp_path / "losses.py").write_text(SOURCE, encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text("from losses import optimistic_loss\n\nloss = optimistic_loss\n", "utf-8")
    checks = dict(trainer_checks(path))
    assert list(checks) == ["file"]
    with pytest.raises(AssertionError, match=r"losses\.py:15:5: SUR004"):
        checks["file"]()


def test_only_what_is_asked_for_is_told(tmp_path):
    """A loop is recorded with the other functions of its file, whose faults are not its own."""
    path = tmp_path / "loop.py"
    more = SOURCE[SOURCE.index("import numpy") : SOURCE.index("def constant_loss")]
    path.write_text(page("LOP002").planted + "\n\n" + more, encoding="utf-8")
    module = loaded(path)
    with pytest.raises(AssertionError) as failed:
        assert_conforms(module.train)
    assert "LOP002" in str(failed.value)
    assert "SUR004" not in str(failed.value)
    assert_conforms(module.grpo_loss)


def test_a_function_of_the_test_module_itself(pytester):
    """Assertions of a test module are rewritten when it is imported; its source is as it was."""
    start = SOURCE.index("def token_loss")
    text = "import numpy as np\n\n\n" + SOURCE[start : SOURCE.index("def constant_loss")]
    pytester.makepyfile(
        text
        + "import pytest\nfrom rlproof.testing import assert_conforms\n\n\n"
        + "@pytest.mark.parametrize('f', [token_loss, optimistic_loss])\n"
        + "def test_losses(f):\n    assert_conforms(f, 'dapo')\n"
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    result.stdout.fnmatch_lines(["*SUR004*in optimistic_loss*"])
