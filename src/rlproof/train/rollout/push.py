"""Weights for another engine, by way of a folder that both can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlproof.train.rollout.http import Client


def save_weights(model: Any, folder: Path) -> None:
    """Writes the weights as safetensors, an adapter of peft merged into them.

    Args:
        model: a causal language model of transformers, or one that peft wraps.
        folder: made if it isn't there; the files of an earlier call are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not hasattr(model, "merge_adapter"):
        model.save_pretrained(folder)
        return
    base = model.get_base_model()
    model.merge_adapter()
    try:
        names = {
            name.replace(".base_layer.", "."): tensor.contiguous()
            for name, tensor in base.state_dict().items()
            if ".lora_" not in name
        }
        base.save_pretrained(folder, state_dict=names)
    finally:
        model.unmerge_adapter()


class VllmReload:
    """Has a vLLM server read its weights from a folder again, and forget cached prefixes.

    The server has to be started with VLLM_SERVER_DEV_MODE=1: its endpoints `/collective_rpc` and
    `/reset_prefix_cache` are meant for development, and differ between versions. Executed with
    vLLM 0.32.0 on a CPU.

    Args:
        url: where the server is.
        folder: where the weights are written, readable under this path by the server too.
        timeout: seconds for one call.
    """

    def __init__(self, url: str, folder: str | os.PathLike[str], *, timeout: float = 600.0) -> None:
        self._client = Client(url, timeout=timeout, tries=1, wait=0)
        self._folder = Path(folder).absolute()

    def __call__(self, model: Any, _version: int) -> None:
        """Writes the weights and has them read.

        Raises:
            RolloutError: the server refuses, or doesn't answer.
        """
        save_weights(model, self._folder)
        kwargs = {"weights_path": str(self._folder)}
        self._client.post("/collective_rpc", {"method": "reload_weights", "kwargs": kwargs})
        self._client.post("/reset_prefix_cache", {})
