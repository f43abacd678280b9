"""The model of `bind.model` as a torch module that answers like one of Hugging Face.

Its logits are `tokens[input_ids] + places[n]`, n the real tokens before the slot: masked slots
never count. What it can't answer (sampling, caches, images) it refuses with a reason.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rlproof.bind.child.load import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUIET = {
    "cache_position", "logits_to_keep", "num_logits_to_keep", "output_attentions",
    "output_hidden_states", "output_router_logits", "past_key_values", "return_dict", "use_cache",
}  # fmt: skip


def model(table: dict[str, Any]) -> Any:
    """A fresh module with this table; it has a `.module`, as wrappers for several devices do."""
    classes = _classes()
    return classes["Wrapped"](classes["StandIn"](table))


def tokenizer(known: dict[str, Any]) -> Any:
    """Knows its special tokens; encodes nothing."""
    return SimpleNamespace(
        pad_token_id=known["pad"], eos_token_id=known["eos"], padding_side="left",
        pad_token="<pad>", eos_token="<eos>",
    )  # fmt: skip


class Tensors(dict[str, Any]):
    """Tensors by name, as keys or as attributes, like the answer of a tokenizer."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)

    def to(self, *_: Any, **__: Any) -> Tensors:
        """Stays where it is."""
        return self


class Output:
    """What a model returns: attributes, keys and positions."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= {"loss": None, **fields}
        self._fields = {key: value for key, value in fields.items() if value is not None}

    def __getitem__(self, key: Any) -> Any:
        return self._fields[key] if isinstance(key, str) else self.to_tuple()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._fields[key] = value
        self.__dict__[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def keys(self) -> Any:
        """Names of what there is."""
        return self._fields.keys()

    def get(self, key: str, default: Any = None) -> Any:
        """One field, or the default."""
        return self._fields.get(key, default)

    def to_tuple(self) -> tuple[Any, ...]:
        """All fields that there are."""
        return tuple(self._fields.values())


def _refuse(what: str) -> Any:
    raise UnavailableError(f"the model that stands in for the policy {what}")


def _classes() -> dict[str, Any]:
    """The modules; torch is imported on the first use."""
    import torch

    class Body(torch.nn.Module):
        """The part below the head: its hidden states are the logits."""

        def __init__(self, table: dict[str, Any]) -> None:
            super().__init__()
            self.token_lines = torch.nn.Parameter(torch.tensor(table["tokens"]))
            self.place_lines = torch.nn.Parameter(torch.tensor(table["places"]))

        def forward(
            self,
            input_ids: Any = None,
            attention_mask: Any = None,
            position_ids: Any = None,
            **kwargs: Any,
        ) -> Any:
            hidden = self.hidden(input_ids, attention_mask, position_ids, kwargs)
            return Output(last_hidden_state=hidden, hidden_states=(hidden,))

        def hidden(self, ids: Any, mask: Any, positions: Any, more: dict[str, Any]) -> Any:
            for name, value in more.items():
                if value is not None and (name not in _QUIET or name == "past_key_values"):
                    _refuse(f"takes no `{name}`")
            if ids is None or not torch.is_tensor(ids) or ids.dim() != 2:
                _refuse("wants token ids of shape (rows, tokens)")
            if mask is not None and (not torch.is_tensor(mask) or mask.dim() != 2):
                _refuse("wants an attention mask of shape (rows, tokens)")
            places = _places(ids, mask, positions)
            return self.token_lines[ids.long()] + self.place_lines[places]

    class Head(torch.nn.Linear):
        """Hands the hidden states on, exactly, whatever precision is set around it."""

        def __init__(self, words: int) -> None:
            super().__init__(words, words, bias=False)
            self.weight = torch.nn.Parameter(torch.eye(words))

        def forward(self, hidden: Any) -> Any:
            with torch.autocast("cpu", enabled=False):
                return super().forward(hidden)

    class StandIn(torch.nn.Module):
        """The whole model."""

        is_gradient_checkpointing = False
        name_or_path = "stand-in"

        def __init__(self, table: dict[str, Any]) -> None:
            super().__init__()
            self.warnings_issued: dict[str, bool] = {}
            words = len(table["tokens"])
            self.model = Body(table)
            self.lm_head = Head(words)
            self.config = SimpleNamespace(
                vocab_size=words, pad_token_id=table["pad"], eos_token_id=table["eos"],
                bos_token_id=None, model_type="stand-in", hidden_size=words, use_cache=True,
                is_encoder_decoder=False, _name_or_path="stand-in", num_labels=2,
                max_position_embeddings=len(table["places"]),
                final_logit_softcapping=None,
            )  # fmt: skip
            self.generation_config = SimpleNamespace(
                pad_token_id=table["pad"], eos_token_id=table["eos"], temperature=1.0
            )

        @property
        def device(self) -> Any:
            return self.model.token_lines.device

        @property
        def dtype(self) -> Any:
            return self.model.token_lines.dtype

        @property
        def base_model(self) -> Any:
            return self.model

        def forward(
            self,
            input_ids: Any = None,
            attention_mask: Any = None,
            position_ids: Any = None,
            past_key_values: Any = None,
            inputs_embeds: Any = None,
            labels: Any = None,
            use_cache: Any = None,  # noqa: ARG002 (a caller may give it)
            output_hidden_states: Any = None,
            return_dict: Any = None,
            logits_to_keep: Any = 0,
            num_logits_to_keep: Any = None,
            **kwargs: Any,
        ) -> Any:
            if labels is not None:
                _refuse("computes no loss of its own (`labels`)")
            if past_key_values is not None or inputs_embeds is not None:
                _refuse("takes token ids only, no caches or embeddings")
            hidden = self.model.hidden(input_ids, attention_mask, position_ids, kwargs)
            keep = num_logits_to_keep if num_logits_to_keep is not None else logits_to_keep
            kept = hidden[:, -keep if keep else 0 :] if isinstance(keep, int) else hidden[:, keep]
            logits = self.lm_head(kept)
            if return_dict is False:
                return (logits,)
            return Output(
                logits=logits,
                past_key_values=None,
                hidden_states=(hidden,) if output_hidden_states else None,
            )

        def generate(self, *_: Any, **__: Any) -> Any:
            return _refuse("generates nothing")

        def disable_adapter(self) -> AbstractContextManager[None]:
            return nullcontext()

        def get_base_model(self) -> Any:
            return self

        def get_input_embeddings(self) -> Any:
            return _refuse("has no embeddings")

        def get_output_embeddings(self) -> Any:
            return self.lm_head

        def gradient_checkpointing_enable(self, *_: Any, **__: Any) -> None:
            """Nothing to store."""

        gradient_checkpointing_disable = enable_input_require_grads = gradient_checkpointing_enable

    class Wrapped(torch.nn.Module):
        """The model in a wrapper: whatever is asked of the one is answered by the other."""

        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self.module(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("module"), name)

    Wrapped.forward.__signature__ = _signature(StandIn.forward)  # type: ignore[attr-defined]
    return {"StandIn": StandIn, "Wrapped": Wrapped}


def _signature(function: Any) -> Any:
    import inspect

    return inspect.signature(function)


def _places(ids: Any, mask: Any, positions: Any) -> Any:
    """How many real tokens stand before each slot; positions that start anew start a new text.

    Without a mask positions count as given. With one only their starting anew does: a rotary
    model sees distances alone.
    """
    import torch

    width = ids.shape[1]
    if mask is None and positions is None:
        return torch.arange(width, device=ids.device).expand_as(ids)
    if mask is None:
        return positions.long().clamp(min=0).expand_as(ids)
    rows = []
    starts = positions.long().expand_as(ids).tolist() if positions is not None else None
    for i, row in enumerate(mask.long().tolist()):
        total, last, line = 0, None, []
        for t, real in enumerate(row):
            if real and starts is not None:
                total = 0 if last is not None and starts[i][t] <= last else total
                last = starts[i][t]
            total += 1 if real else 0
            line.append(max(total - 1, 0))
        rows.append(line)
    return torch.tensor(rows, device=ids.device)
