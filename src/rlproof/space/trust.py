"""Trust regions of one token, by how far its probability moved and to which side A pushes it.

π_old is recovered from the ratio: π_old = π_new/ρ. Nothing here has a gradient. For A > 0 a move
upwards can leave the region, for A ≤ 0 one downwards; a move back is never dropped.
"""

from __future__ import annotations

from math import inf

from rlproof.space.arrays import Array, namespace, stop_gradient


def edge(bound: float | None) -> float:
    """A bound; None leaves the side open."""
    return inf if bound is None else bound


def moved(ratio: Array, new: Array) -> Array:
    """π_new − π_old."""
    probability = stop_gradient(namespace(new).exp(new))
    return probability - probability / stop_gradient(ratio)


def inside_tv(ratio: Array, new: Array, adv: Array, low: float | None, high: float | None) -> Array:
    """Where π_new − π_old ≤ high (A > 0) or ≥ −low (A ≤ 0)."""
    xp, distance = namespace(new), moved(ratio, new)
    return xp.where(adv > 0, distance <= edge(high), distance >= -edge(low))


def inside_kl(ratio: Array, new: Array, adv: Array, low: float | None, high: float | None) -> Array:
    """Where KL(π_old ‖ π_new) of token against all others is within its bound, or moved back."""
    log_new = stop_gradient(new)
    log_old = log_new - namespace(new).log(stop_gradient(ratio))
    divergence = coin_divergence(log_old, log_new)
    up = (divergence <= edge(high)) | (log_new <= log_old)
    down = (divergence <= edge(low)) | (log_new >= log_old)
    return namespace(new).where(adv > 0, up, down)


def coin_divergence(first: Array, second: Array) -> Array:
    """KL of two coins that show the sampled token with probabilities exp(first) and exp(second).

    DPPO, arXiv:2602.04879, eq. 14. The other side of a coin keeps 1e-8, as in its authors' code.
    """
    xp, dtype = namespace(first), first.dtype
    if xp.finfo(dtype).bits < 32:  # 1e-8 is 0 in half precision
        wide = coin_divergence(xp.astype(first, xp.float32), xp.astype(second, xp.float32))
        return xp.astype(wide, dtype)
    p, q = xp.exp(first), xp.exp(second)
    rest_p, rest_q = xp.clip(1 - p, 0.0, None), xp.clip(1 - q, 0.0, None)
    return p * (first - second) + rest_p * xp.log((rest_p + 1e-8) / (rest_q + 1e-8))
