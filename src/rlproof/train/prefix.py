"""Reads a prompt once for all completions of it, with gradients.

The completions of a group start with the same tokens, whose keys and values are the same too. So
each prompt goes through the model once, its keys and values are handed to every completion, and the
gradients of all of them flow back into it. The last token of a completion is not read at all: no
token is drawn after it. With S prompt and T completion slots and G completions a prompt that leaves
S/G + T − 1 of S + T tokens a row. Values and gradients are those of the plain forward.

It is used where every layer keeps plain keys and values, and once it has agreed with the model's
own forward. Shapes: B rows, U different prompts, S prompt slots, T completion slots, H hidden.
"""

from __future__ import annotations

import inspect
import warnings
import weakref
from typing import Any

import torch
from torch import Tensor

from rlproof.train.rollout.batch import RolloutBatch

TOLERANCE = 1e-4
"""Largest difference of a state, relative to the largest one, in float32; in bfloat16 0.1."""
_AGREED: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
"""Models whose states were compared, and whether they agreed."""


def shared_states(trunk: Any, rows: RolloutBatch) -> Tensor | None:
    """The states (B, T, H) that the completions' tokens were drawn from.

    None where prompts are not shared, or where the model is not one that this is exact for.

    Args:
        trunk: a transformers model without its output layer, taking `position_ids`.
        rows: those of one prompt stand together.
    """
    index_B, first_U = _prompts(rows)
    if 2 * len(first_U) > len(index_B) or not _served(trunk):
        return None
    if trunk not in _AGREED:
        _AGREED[trunk] = _agrees(trunk, rows, index_B)
    return _states(trunk, rows, index_B, first_U) if _AGREED[trunk] else None


def _prompts(rows: RolloutBatch) -> tuple[Tensor, Tensor]:
    """Which prompt each row has (B,), and the first row of each (U,)."""
    ids_BS, mask_BS = rows.prompts, rows.prompt_mask
    new_B = torch.ones(len(ids_BS), dtype=torch.bool, device=ids_BS.device)
    new_B[1:] = ((ids_BS[1:] != ids_BS[:-1]) | (mask_BS[1:] != mask_BS[:-1])).any(1)
    return new_B.cumsum(0) - 1, new_B.nonzero()[:, 0]


def _served(trunk: Any) -> bool:
    """Whether the cache is keys and values of all layers, and nothing wraps single layers."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    if trunk.training or _cache_name(trunk) is None:  # in training mode activations are recomputed
        return False
    if any(type(module).__name__.startswith("FSDP") for module in trunk.modules()):
        return False
    layers = DynamicCache(config=trunk.config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def _cache_name(trunk: Any) -> str | None:
    """What the model's forward calls its cache: transformers has renamed it."""
    names = inspect.signature(trunk.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in names), None)


def _states(trunk: Any, rows: RolloutBatch, index_B: Tensor, first_U: Tensor) -> Tensor:
    from transformers.cache_utils import DynamicCache

    width, positions = rows.prompts.shape[1], rows.positions[:, :-1]
    cache = DynamicCache(config=trunk.config)
    more: dict[str, Any] = {"use_cache": True, str(_cache_name(trunk)): cache}
    read = trunk(
        input_ids=rows.prompts[first_U], attention_mask=rows.prompt_mask[first_U],
        position_ids=positions[first_U, :width], **more,
    ).last_hidden_state  # fmt: skip
    start_B1H: Tensor = read[:, -1:].index_select(0, index_B)
    if rows.tokens.shape[1] == 1:
        return start_B1H
    for layer in cache.layers:
        layer.keys = layer.keys.index_select(0, index_B)
        layer.values = layer.values.index_select(0, index_B)
    further_BTH = trunk(
        input_ids=rows.tokens[:, :-1], attention_mask=rows.attention[:, :-1],
        position_ids=positions[:, width:], **more,
    ).last_hidden_state  # fmt: skip
    return torch.cat([start_B1H, further_BTH], dim=1)


def _agrees(trunk: Any, rows: RolloutBatch, index_B: Tensor) -> bool:
    """Whether the states of two rows of one prompt are those of the plain forward."""
    at = int((index_B[1:] == index_B[:-1]).nonzero()[0, 0])
    two = rows.rows(slice(at, at + 2))
    with torch.no_grad():
        own = plain_states(trunk, two)
        same = torch.zeros_like(index_B[:2])
        found = _states(trunk, two, same, same[:1])
    real = two.attend[..., None] > 0
    gap = ((own - found) * real).abs().max() / (own * real).abs().max()
    bound = TOLERANCE if torch.finfo(own.dtype).bits > 16 else 0.1
    if torch.is_autocast_enabled(own.device.type):
        bound = 0.1
    if not gap > bound:  # states that are not numbers are reported elsewhere
        return True
    warnings.warn(
        f"{type(trunk).__name__} gives other states ({float(gap):.2g}) to completions whose prompt "
        "was read before, so prompts are read with every completion: slower, and right",
        stacklevel=2,
    )
    return False


def plain_states(trunk: Any, rows: RolloutBatch, places: bool = True) -> Tensor:
    """The same states by one forward over prompt and completion."""
    given = {"position_ids": rows.positions} if places else {}
    states_BLH: Tensor = trunk(
        input_ids=rows.ids, attention_mask=rows.attention, use_cache=False, **given
    ).last_hidden_state
    return states_BLH[:, -rows.tokens.shape[1] - 1 : -1]
