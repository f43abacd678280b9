"""Which objectives are token-local, and that their slopes need no other token."""

import pytest

torch = pytest.importorskip("torch")

from tests.space.test_objective_points import KINDS, MASK, POINTS, data  # noqa: E402

from rlproof.space.mismatch import Mismatch  # noqa: E402
from rlproof.space.objective import Objective  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train.fused import FusedBatch  # noqa: E402
from rlproof.train.fused.local import Local, token_local  # noqa: E402

TWO_PASSES = {"gspo", "gspo-token", "luspo", "gmpo", "opsm", "vespo", "topr"}
"""Published objectives with a ratio or a rejection of rows that depends on the policy trained."""


def fused_batch(kind):
    lists = data(kind)
    plain = ("scope", "groups")
    return {
        key: value if key in plain or value is None else torch.tensor(value, dtype=torch.float64)
        for key, value in lists.items()
    }


def test_published_ones_that_need_two_passes():
    """By their equations: all others have token ratios, and corrections by fixed policies."""
    batch = FusedBatch(torch.ones(1, 1), torch.ones(1), old=torch.zeros(1, 1))
    found = {n for n, one in OBJECTIVES.items() if not token_local(one.objective, batch)}
    assert found == TWO_PASSES


def test_a_correction_of_the_policy_at_hand_is_not_local():
    """With old = None the weights of a correction come from the log-probs of this very call."""
    batch = FusedBatch(torch.ones(1, 1), torch.ones(1))
    assert not token_local(Objective(mismatch=Mismatch("truncate")), batch)
    assert token_local(Objective(), batch)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POINTS)
def test_slopes_without_the_other_tokens(name, kind):
    given, point = fused_batch(kind), POINTS[name]
    new, entropy = given.pop("new"), given.pop("entropy")
    batch = FusedBatch(**given)
    if not token_local(point, batch):
        return
    local = Local.of(point, batch, new.dtype)
    expected = point.gradient(batch.space(new, entropy)).reshape(-1)
    slots = torch.tensor(MASK).reshape(-1).nonzero()[:, 0]
    for part in slots.split(4):
        found = local.slopes(part, new.reshape(-1)[part])
        torch.testing.assert_close(found, expected[part], rtol=1e-13, atol=1e-15)
