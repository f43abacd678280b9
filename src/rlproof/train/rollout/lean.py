"""One token for each row of a Llama-shaped model, without what transformers does around it.

At sampling a small model spends most of its time not in matrix products but in what surrounds
them: building masks, rotary tables, checks, concatenated caches. Here that is done once a batch,
and so is the joining of matrices that multiply the same input, in small models; layers that are
more than a matrix (adapters, hooks) are called as they are. It stands in only for architectures
named here, in float32 and float64, and once it has agreed with the model's own forward.
Shapes: R rows, N slots seen, H width, K key heads, Q query heads of each, D width of a head,
A heads of queries, keys and values, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from rlproof.train.rollout.cache import RoomyLayer

FAMILIES = ("llama", "qwen2", "qwen3")
"""Pre-norm blocks of rotary attention and a gated SiLU, of transformers' `<Family>ForCausalLM`."""
ROPE = ("default", "linear", "llama3", "yarn")
"""Rotary tables that don't depend on the length of the text."""
JOINED = 1 << 24
"""Numbers of all layers, above which nothing is joined: the copies would cost memory, and what
surrounds the products is little then."""
TOLERANCE = 1e-4
"""Largest difference of a log-prob (nats) at which the two forwards are said to agree."""


class LeanDecoder:
    """Gives the logits of one further token. Make it with `lean_decoder`.

    It holds weights of several layers in one matrix, and serves one batch: the next one, after an
    update, needs another.
    """

    def __init__(self, body: Any, head: Any, length: int) -> None:
        join = _joinable(body.layers)
        self._embed, self._norm = body.embed_tokens, _norm(body.norm)
        self._head = _together([head], False)
        self._blocks = [_Block(layer, join) for layer in body.layers]
        slots_1N = torch.arange(length, device=body.norm.weight.device)[None]
        cos_1ND, sin_1ND = body.rotary_emb(body.norm.weight, slots_1N)
        half = sin_1ND.shape[-1] // 2
        sin_ND = torch.cat([-sin_1ND[0, :, :half], sin_1ND[0, :, half:]], dim=1)
        self._rotary_N2D = torch.stack([cos_1ND[0], sin_ND], dim=1)

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
        cos_R1D, sin_R1D = self._rotary_N2D[position_R][:, :, None].unbind(1)
        bias_R1N = None
        if mask_RN is not None:
            hidden_R1N = (mask_RN == 0)[:, None]
            bias_R1N = torch.zeros_like(hidden_R1N, dtype=state_RH.dtype)
            bias_R1N.masked_fill_(hidden_R1N, -torch.inf)
        for block, kept in zip(self._blocks, cache.layers, strict=True):
            state_RH = state_RH + block.attend(state_RH, cos_R1D, sin_R1D, bias_R1N, kept)
            state_RH = state_RH + block.think(state_RH)
        return self._head(self._norm(state_RH))


class _Block:
    """One layer, its matrices of equal inputs as one."""

    def __init__(self, layer: Any, join: bool) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.width, self.scale = attention.head_dim, attention.scaling
        self.queries = attention.config.num_attention_heads
        self.heads = self.queries + attention.config.num_key_value_heads
        self.before, self.between = (
            _norm(layer.input_layernorm),
            _norm(layer.post_attention_layernorm),
        )
        self.norms = None
        if hasattr(attention, "q_norm"):
            self.norms = _norm(attention.q_norm), _norm(attention.k_norm)
        self.qkv = _together([attention.q_proj, attention.k_proj, attention.v_proj], join)
        self.out = _together([attention.o_proj], join)
        self.gate_up = _together([mlp.gate_proj, mlp.up_proj], join)
        self.down = _together([mlp.down_proj], join)

    def attend(
        self, state_RH: Tensor, cos_R1D: Tensor, sin_R1D: Tensor, bias: Tensor | None, kept: Any
    ) -> Tensor:
        """What the token sees of the slots (R, H). A key head's queries are in one product."""
        rows = len(state_RH)
        all_RAD = self.qkv(self.before(state_RH)).view(rows, -1, self.width)
        turned = all_RAD[:, : self.heads]
        if self.norms is not None:
            query, key = turned.tensor_split((self.queries,), dim=1)
            turned = torch.cat([self.norms[0](query), self.norms[1](key)], dim=1)
        turned = _turn(turned, cos_R1D, sin_R1D)
        keys, values = kept.update(
            turned[:, self.queries :, None], all_RAD[:, self.heads :, None]
        )  # fmt: skip
        keys, values = keys.flatten(0, 1), values.flatten(0, 1)
        query = turned[:, : self.queries].reshape(len(keys), -1, self.width)
        scores = torch.bmm(query * self.scale, keys.transpose(1, 2))
        if bias is not None:
            scores.view(rows, self.queries, -1).add_(bias)
        return self.out(torch.bmm(scores.softmax(-1), values).view(rows, -1))

    def think(self, state_RH: Tensor) -> Tensor:
        """The gated layer (R, H)."""
        gate, up = self.gate_up(self.between(state_RH)).chunk(2, dim=1)
        return self.down(functional.silu(gate).mul_(up))


def _joinable(layers: Any) -> bool:
    """Whether matrices may be copied into larger ones: a share of the memory of a small model."""
    return bool(sum(p.numel() for p in layers.parameters()) <= JOINED)


def _together(modules: list[Any], join: bool) -> Callable[[Tensor], Tensor]:
    """The outputs of linear layers, side by side."""
    plain = [_plain(module) for module in modules]
    biases = [module.bias for module, is_plain in zip(modules, plain, strict=True) if is_plain]
    if all(plain) and join and len(modules) > 1 and len({b is None for b in biases}) == 1:
        bias = None if biases[0] is None else torch.cat(biases)
        return _product(torch.cat([module.weight for module in modules]), bias)
    each = [
        _product(module.weight.detach(), module.bias) if is_plain else module
        for module, is_plain in zip(modules, plain, strict=True)
    ]
    return each[0] if len(each) == 1 else lambda x: torch.cat([one(x) for one in each], dim=1)


def _plain(module: Any) -> bool:
    """Whether a module is a linear layer and no more: not adapted, quantised, hooked, changed."""
    return (
        type(module) is nn.Linear
        and type(module.weight) is nn.Parameter
        and not (module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))
    )


def _product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    turned = weight.t()
    if bias is None:
        return lambda x: torch.mm(x, turned)
    return lambda x: torch.addmm(bias, x, turned)


def lean_decoder(model: Any, cache: Any, length: int) -> LeanDecoder | None:
    """A decoder for this model, or None where the model's own forward is to be used.

    Args:
        model: of transformers.
        cache: the one it will be called with.
        length: above every position.
    """
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
    return None if _touched(model, body) else LeanDecoder(body, model.lm_head, length)


def _touched(model: Any, body: Any) -> bool:
    """Whether something changed the modules that are not called here."""
    skipped = [model, body, body.norm, *body.layers]
    for layer in body.layers:
        skipped += [layer.self_attn, layer.mlp, layer.input_layernorm]
        skipped += [layer.post_attention_layernorm]
    return any(m._forward_hooks or m._forward_pre_hooks or "forward" in vars(m) for m in skipped)


def _turn(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (arXiv:2104.09864), the halves of a head as the pairs."""
    half = heads.shape[-1] // 2
    return torch.addcmul(heads * cos, heads.roll(half, dims=-1), sin)


def _norm(module: Any) -> Callable[[Tensor], Tensor]:
    weight, eps = module.weight.detach(), module.variance_epsilon
    shape = tuple(weight.shape)
    return lambda state: functional.rms_norm(state, shape, weight, eps)
