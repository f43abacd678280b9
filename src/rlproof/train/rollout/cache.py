"""A key-value cache that doesn't copy itself at every token."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values with room for the tokens to come.

    `DynamicLayer` concatenates at every token: it copies all it has. Here a token is written into
    a buffer of which `keys` and `values` are views.

    Args:
        room: tokens that the buffer has room for; it doubles when they are passed.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._used = 0
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Appends (B, heads, new tokens, width) and gives all keys and values so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self._used = self._used, self._used + key_states.shape[2]
        if self._buffers is None or self._used > self._buffers[0].shape[2]:
            self._enlarge(key_states, value_states)
        assert self._buffers is not None
        views = []
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start : self._used] = states
            views.append(buffer[:, :, : self._used])
        self.keys, self.values = views
        return self.keys, self.values

    def forget(self, tokens: int) -> None:
        """Takes the last tokens back."""
        assert self._buffers is not None
        self._used -= tokens
        self.keys, self.values = (buffer[:, :, : self._used] for buffer in self._buffers)

    def _enlarge(self, *states: Tensor) -> None:
        self._room = max(self._room, 2 * self._used if self._buffers else self._used)
        buffers = [s.new_empty(*s.shape[:2], self._room, s.shape[3]) for s in states]
        for new, old in zip(buffers, self._buffers or (), strict=False):
            new[:, :, : old.shape[2]] = old
        self._buffers = (buffers[0], buffers[1])

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Takes these rows; a row may be left out or stand there several times."""
        if self._buffers is None:
            return
        used = self._used
        kept = []
        for buffer in self._buffers:
            rows = buffer.new_empty(len(beam_idx), *buffer.shape[1:])
            rows[:, :, :used] = buffer[:, :, :used].index_select(0, beam_idx)
            kept.append(rows)
        self._buffers = (kept[0], kept[1])
        self.keys, self.values = (rows[:, :, :used] for rows in kept)


def roomy_cache(config: Any, room: int) -> Any:
    """A cache for the model of this configuration.

    Layers with full attention get room for `room` tokens; those with a sliding window or a
    recurrent state, which stay small, are transformers' own.
    """
    cache = DynamicCache(config=config)
    cache.layers = [
        RoomyLayer(room) if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    if not cache.layers:  # a configuration that doesn't list its layers
        return DynamicCache()
    return cache
