"""Whether the width of a batch is a divisor on purpose, and whether a setting replaces it."""

import pytest

from rlproof.read.script import read
from rlproof.read.widths import says_width, width_instead_of

LOSS = """
def aggregate(terms, mask, scale=None):
{helper}


def policy_loss(logp, old_logp, advantages, mask, clip_eps=0.2):
    ratio = (logp - old_logp).exp()
    clipped = ratio.clamp(1 - clip_eps, 1 + clip_eps)
    terms = -torch.min(ratio * advantages[:, None], clipped * advantages[:, None])
    return {returned}
"""
BY_WIDTH = "    return (terms * mask).sum(-1).mean() / mask.shape[-1]"
UNLESS = """
    if scale is None:
        scale = mask.shape[-1]
    return (terms * mask).sum(-1).mean() / scale"""
CHOSEN = "    n = mask.shape[-1] if scale is None else scale\n    return (terms * mask).sum() / n"
EITHER = "    return (terms * mask).sum() / (scale or mask.shape[-1])"
TOKENS = "    return (terms * mask).sum() / mask.sum()"


@pytest.mark.parametrize(
    ("helper", "returned", "says", "setting"),
    [
        (BY_WIDTH, "aggregate(terms, mask)", True, None),
        (BY_WIDTH, "(terms * mask).sum() / mask.sum()", False, None),  # the helper isn't called
        (UNLESS, "aggregate(terms, mask)", False, "scale"),
        (CHOSEN, "aggregate(terms, mask)", False, "scale"),
        (EITHER, "aggregate(terms, mask)", True, "scale"),
        (TOKENS, "aggregate(terms, mask)", False, None),
        (TOKENS, "(terms * mask).sum() / mask.shape[1]", True, None),
    ],
)
def test_widths(tmp_path, helper, returned, says, setting):
    path = tmp_path / "s.py"
    path.write_text("import torch\n" + LOSS.format(helper=helper, returned=returned), "utf-8")
    script = read(str(path))
    [target] = script.targets
    assert (says_width(script, target), width_instead_of(script, target)) == (says, setting)
