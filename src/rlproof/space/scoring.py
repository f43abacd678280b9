"""From logits to the log-probability of a token. Shapes: B rows, T slots, V vocabulary."""

from __future__ import annotations

from rlproof.space.arrays import Array, namespace


def log_probs(logits_BTV: Array, tokens_BT: Array, temperature: float = 1.0) -> Array:
    """log softmax(z/τ)[token], nats: (B, T).

    The logits at a slot are those that the token of the slot was drawn from: of a causal model,
    the ones one position earlier.

    Raises:
        ValueError: a temperature that is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature = {temperature!r}; expected a number above 0")
    xp = namespace(logits_BTV)
    scaled = logits_BTV / temperature
    scaled = scaled - xp.max(scaled, axis=-1, keepdims=True)
    log_total_BT = xp.log(xp.sum(xp.exp(scaled), axis=-1))
    slots = xp.arange(logits_BTV.shape[-1])
    chosen = xp.where(slots == tokens_BT[..., None], scaled, xp.zeros_like(scaled))
    return xp.sum(chosen, axis=-1) - log_total_BT
