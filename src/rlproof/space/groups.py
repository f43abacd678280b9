"""Which rows belong to one prompt, and sums over them.

Shapes: P prompts (groups), N rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device

from rlproof.space.arrays import Array, namespace, where


def membership(rows_N: Array, groups: Any) -> Array:
    """1 where row n belongs to group p: (P, N).

    Args:
        rows_N: anything of one number a row, for its library, type and device.
        groups: the group of each row (N,), or the size of consecutive groups.

    Raises:
        ValueError: a group size that does not divide N, or another number of ids than N.
    """
    xp, size = namespace(rows_N), rows_N.shape[0]
    if hasattr(groups, "tolist"):  # from any library, on any device
        groups = groups.tolist()
    if isinstance(groups, int):
        if groups < 1 or size % groups:
            raise ValueError(f"group size {groups} does not divide {size} rows")
        ids = np.arange(size) // groups
    else:
        ids = np.unique(np.asarray(groups), return_inverse=True)[1]
    if ids.shape != (size,):
        raise ValueError(f"{ids.size} group ids for {size} rows")
    one_hot = ids[None, :] == np.arange(ids.max(initial=-1) + 1)[:, None]
    member = xp.asarray(one_hot.astype(float).tolist(), device=device(rows_N))
    return xp.astype(xp.reshape(member, one_hot.shape), rows_N.dtype)


def spread(values_P: Array, member_PN: Array) -> Array:
    """A number for each group to one for each row."""
    xp = namespace(member_PN)
    return xp.sum(kept(values_P[:, None], member_PN, 0.0), axis=0)


def group_sum(values_N: Array, member_PN: Array) -> Array:
    """The sum over each row's group: (N,)."""
    xp = namespace(member_PN)
    return spread(xp.sum(kept(values_N[None, :], member_PN, 0.0), axis=1), member_PN)


def kept(values: Array, member: Array, other: float) -> Array:
    """The values of members; what stands elsewhere, NaN included, does not get in."""
    return where(member > 0, namespace(member).broadcast_to(values, member.shape), other)
