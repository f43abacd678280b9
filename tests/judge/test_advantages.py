"""What is read off an advantage function: baseline, scale, and the stabiliser."""

import pytest
from tests.support.checking import check_text

FUNCTION = '''\
import numpy as np


def group_advantages(rewards, group_size):
    """Advantages."""
    g = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    baseline = {baseline}
    return ((g - baseline) / {scale}).ravel()
'''
BASELINES = {
    "group-mean": "g.mean(1, keepdims=True)",
    "leave-one-out": "(g.sum(1, keepdims=True) - g) / max(group_size - 1, 1)",
}


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize(
    ("scale", "eps", "place"),
    [
        ("(g.std(1, keepdims=True) + 1e-4)", 1e-4, "std + eps"),
        ("np.sqrt(g.var(1, keepdims=True) + 1e-6)", 1e-6, "sqrt(var + eps)"),
    ],
)
def test_the_stabiliser_is_measured_under_every_baseline(tmp_path, baseline, scale, eps, place):
    # of (0, d) the second reward is d/2 above the group's mean and d above the other one
    report = check_text(tmp_path, FUNCTION.format(baseline=BASELINES[baseline], scale=scale))
    [target] = report.targets
    found = {axis: target.objective.get(axis) for axis in ("baseline", "eps", "eps_place")}
    assert found == {"baseline": baseline, "eps": pytest.approx(eps), "eps_place": place}
