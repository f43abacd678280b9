"""One token for each row of a Llama-shaped model, without what transformers does around it.

At sampling a small model spends most of its time not in matrix products but in what surrounds
them: building masks, rotary tables, checks, concatenated caches. This runs the same modules with
that done once a batch. It stands in only for architectures named here, in float32 and float64,
and only after it has agreed with the model's own forward on the first token of every batch.
Shapes: R rows, N slots seen, H width, K key heads, Q query heads of each, D width of a head,
V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rlproof.train.rollout.cache import RoomyLayer

FAMILIES = ("llama", "qwen2", "qwen3")
"""Pre-norm blocks of rotary attention and a gated SiLU, of transformers' `<Family>ForCausalLM`."""
ROPE = ("default", "linear", "llama3", "yarn")
"""Rotary tables that don't depend on the length of the text."""
TOLERANCE = 1e-4
"""Largest difference of a log-prob (nats) at which the two forwards are said to agree."""


class LeanDecoder:
    """Gives the logits of one further token. Make it with `lean_decoder`."""

    def __init__(self, body: Any, head: Any) -> None:
        self._embed, self._layers, self._norm = body.embed_tokens, body.layers, body.norm
        self._head, self._rotary = head, body.rotary_emb
        self._cos_ND = self._sin_ND = torch.empty(0, 0)

    def __call__(
        self, token_R: Tensor, mask_RN: Tensor | None, position_R: Tensor, cache: Any
    ) -> Tensor:
        """Logits (R, V); the cache grows by one slot.

        Args:
            token_R: the ids.
            mask_RN: 1 on slots to attend to, this token's included; None for all of them.
            position_R: the positions of the tokens.
            cache: of `RoomyLayer`s.
        """
        state_RH = self._embed(token_R)
        rotary = self._angles(state_RH, position_R)
        bias = None if mask_RN is None else mask_RN.bool()[:, None, None]
        for layer, kept in zip(self._layers, cache.layers, strict=True):
            seen_RH = _attend(
                layer.self_attn, _rms(layer.input_layernorm, state_RH), rotary, bias, kept
            )
            state_RH = state_RH + seen_RH
            mlp, inner_RH = layer.mlp, _rms(layer.post_attention_layernorm, state_RH)
            gated = functional.silu(mlp.gate_proj(inner_RH)) * mlp.up_proj(inner_RH)
            state_RH = state_RH + mlp.down_proj(gated)
        logits_RV: Tensor = self._head(_rms(self._norm, state_RH))
        return logits_RV

    def _angles(self, state_RH: Tensor, position_R: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin (R, 1, D), the sign of `rotate_half` in the sine."""
        if (needed := int(position_R.max()) + 1) > len(self._cos_ND):
            slots = torch.arange(2 * needed, device=state_RH.device)[None]
            cos_1ND, sin_1ND = self._rotary(state_RH, slots)
            half = sin_1ND.shape[-1] // 2
            sign = torch.ones_like(sin_1ND[0, 0])
            sign[:half] = -1
            self._cos_ND, self._sin_ND = cos_1ND[0], sin_1ND[0] * sign
        return self._cos_ND[position_R][:, None], self._sin_ND[position_R][:, None]


def lean_decoder(model: Any, cache: Any) -> LeanDecoder | None:
    """A decoder for this model, or None where the model's own forward is to be used."""
    config = model.config
    body: Any = getattr(model, "model", None)
    if (
        config.model_type not in FAMILIES
        or type(model).__module__
        != f"transformers.models.{config.model_type}.modeling_{config.model_type}"
        or not type(model).__name__.endswith("ForCausalLM")
        or config.hidden_act != "silu"
        or getattr(body.rotary_emb, "rope_type", "") not in ROPE
        or any(type(layer) is not RoomyLayer for layer in cache.layers)
        or len(cache.layers) != len(body.layers)
        or torch.is_autocast_enabled(model.device.type)
    ):
        return None
    if any(p.dtype not in (torch.float32, torch.float64) for p in model.parameters()):
        return None
    return None if _touched(model, body) else LeanDecoder(body, model.lm_head)


def _touched(model: Any, body: Any) -> bool:
    """Whether something changed the modules that are not called here."""
    skipped = [model, body, body.norm, *body.layers]
    for layer in body.layers:
        skipped += [layer.self_attn, layer.mlp, layer.input_layernorm]
        skipped += [layer.post_attention_layernorm]
    return any(m._forward_hooks or m._forward_pre_hooks or "forward" in vars(m) for m in skipped)


def _attend(
    attention: Any, inner_RH: Tensor, rotary: tuple[Tensor, Tensor], bias: Tensor | None, kept: Any
) -> Tensor:
    """What the token sees of the slots (R, H). A key head's queries are taken in one product."""
    rows, width = len(inner_RH), attention.head_dim
    query = attention.q_proj(inner_RH).view(rows, -1, width)
    key = attention.k_proj(inner_RH).view(rows, -1, width)
    value = attention.v_proj(inner_RH).view(rows, -1, 1, width)
    if hasattr(attention, "q_norm"):
        query, key = _rms(attention.q_norm, query), _rms(attention.k_norm, key)
    heads = key.shape[1]
    query, key = _turn(query, *rotary), _turn(key, *rotary)
    keys, values = kept.update(key[:, :, None], value)
    seen = functional.scaled_dot_product_attention(
        query.view(rows, heads, -1, width), keys, values, bias, scale=attention.scaling
    )
    out: Tensor = attention.o_proj(seen.reshape(rows, -1))
    return out


def _turn(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (arXiv:2104.09864), the halves of a head as the pairs."""
    half = heads.shape[-1] // 2
    return torch.addcmul(heads * cos, heads.roll(half, dims=-1), sin)


def _rms(norm: Any, state: Tensor) -> Tensor:
    return functional.rms_norm(state, norm.weight.shape, norm.weight, norm.variance_epsilon)
