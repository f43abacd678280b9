"""How many rows go forward and backward at once, where the run doesn't say.

On a CPU what a layer keeps for its backward pass is most of the memory of training, and products
of a few hundred rows are as quick as larger ones. So an update is cut into whole groups that keep
about `KEPT` numbers. The gradient doesn't depend on it: every piece has the denominators of the
whole update. On other devices, and where several processes must take as many turns, nothing is cut.

Shapes: B rows, T completion slots, H hidden, I inner width of the MLP.
"""

from __future__ import annotations

from typing import Any

from rlproof.train.prepare import Step

KEPT = 3 << 22
"""Numbers that the layers keep for one piece, about: 48 MB in float32."""
OF_HIDDEN, OF_INNER = 15, 4
"""What a layer keeps of a token, in H and in I: its two norms, queries, keys and values before and
after they are turned, what attention gives, both sums; gate, its SiLU, up and their product."""


def rows_at_once(part: Step, config: Any) -> int | None:
    """Rows of one piece, a multiple of the group; None for all of them.

    Args:
        part: the rows of an update in this process.
        config: of the transformers model; one that doesn't say how wide its layers are is not cut.
    """
    width, layers = (getattr(config, key, None) for key in ("hidden_size", "num_hidden_layers"))
    inner = getattr(config, "intermediate_size", None)
    if not all(isinstance(one, int) and one > 0 for one in (width, layers, inner)):
        return None
    token = layers * (OF_HIDDEN * width + OF_INNER * inner)  # type: ignore[operator]
    pieces = part.mask.numel() * token // KEPT
    if pieces < 2 or len(part) % part.group:
        return None
    groups = len(part) // part.group
    return part.group * max(-(-groups // pieces), 1)
