"""The model that is trained: loading, and its states before the output matrix.

Shapes: B rows, L tokens of prompt and completion, T completion slots, H hidden, V vocabulary.
"""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rlproof.errors import ConfigError
from rlproof.train.config import Lora, TrainConfig
from rlproof.train.config import Model as ModelSettings
from rlproof.train.fused.heads import After, after_head, logits_of_head
from rlproof.train.prefix import plain_states, shared_states
from rlproof.train.products import FastLinears
from rlproof.train.rollout.batch import RolloutBatch

Head = Callable[[Tensor, nn.Module], Any]
"""What is done with the states (B, T, H) and the output layer."""


class Scorer(nn.Module):
    """A causal model, asked for the states its tokens were drawn from.

    The output layer is used inside `forward`, so that wrappers which shard or synchronise
    parameters around a forward pass see all of them used there.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @property
    def causal(self) -> Any:
        """The transformers model, without the wrapper of peft; its layers hold the adapters."""
        model: Any = self.model
        return model.get_base_model() if hasattr(model, "get_base_model") else model

    def forward(self, rows: RolloutBatch, head: Head) -> Any:
        """`head` of the states (B, T, H) that the completion's tokens were drawn from."""
        trunk = self.causal.base_model
        places = _takes_positions(trunk)
        with nullcontext() if trunk.training else FastLinears():  # training mode: computed again
            states_BTH = shared_states(trunk, rows) if places else None
            if states_BTH is None:
                states_BTH = plain_states(trunk, rows, places)
        return head(states_BTH, self.causal.get_output_embeddings())


def _takes_positions(trunk: Any) -> bool:
    return "position_ids" in inspect.signature(trunk.forward).parameters


@dataclass
class Policy:
    """The policy, its tokenizer and its reference."""

    scorer: Scorer
    tokenizer: Any
    dtype: str = "float32"
    reference: Scorer | None = None
    """A frozen copy of the initial weights, where the objective needs one and there is no LoRA."""

    @property
    def after(self) -> After | None:
        """What the model does to the logits of its output layer; None for nothing."""
        return after_head(self.scorer.causal.config)

    @property
    def model(self) -> Any:
        """The transformers model, or peft's wrapper of it."""
        return self.scorer.model

    @property
    def adapted(self) -> bool:
        """Whether only adapters are trained."""
        return hasattr(self.model, "disable_adapter")

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        place: torch.device = next(self.model.parameters()).device
        return place

    @property
    def pad(self) -> int:
        """The id for padding; it is masked everywhere."""
        pad = self.tokenizer.pad_token_id
        return int(self.eos[0] if pad is None else pad)

    @property
    def eos(self) -> tuple[int, ...]:
        """The ids that end a completion: the tokenizer's, and those of the generation settings."""
        settings = getattr(self.scorer.causal, "generation_config", None)
        given = [self.tokenizer.eos_token_id, getattr(settings, "eos_token_id", None)]
        flat = [i for one in given for i in (one if isinstance(one, list) else [one])]
        return tuple(dict.fromkeys(int(i) for i in flat if i is not None))

    @property
    def vocabulary(self) -> int:
        """V."""
        return int(self.scorer.causal.get_input_embeddings().weight.shape[0])

    @property
    def context(self) -> int | None:
        """Tokens that the model can take, where its configuration says so."""
        length = getattr(self.scorer.causal.config, "max_position_embeddings", None)
        return None if length is None else int(length)

    def trained(self) -> dict[str, nn.Parameter]:
        """The parameters that are trained, by name; tied ones once."""
        return {n: p for n, p in self.model.named_parameters() if p.requires_grad}

    def precision(self) -> AbstractContextManager[Any]:
        """Matrix products in bfloat16, where that is asked for; weights stay float32."""
        if self.dtype == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def referring(self) -> tuple[Scorer, AbstractContextManager[Any]]:
        """The reference and the context in which it is one.

        Raises:
            ConfigError: no reference was kept.
        """
        if self.adapted:
            return self.scorer, self.model.disable_adapter()
        if self.reference is None:
            raise ConfigError("the objective needs a reference, and none was kept")
        return self.reference, nullcontext()


def load(config: TrainConfig, folder: Path | None = None) -> Policy:
    """The policy of a run.

    Args:
        config: the run.
        folder: a saved model to take the weights from in place of `model.path`.

    Raises:
        ConfigError: the model, its tokenizer or its settings can't be loaded or don't fit.
    """
    tokenizer = load_tokenizer(config.model)
    model = load_model(config.model, config.run.seed, folder)
    return made(config, model, tokenizer)


def made(config: TrainConfig, model: Any, tokenizer: Any) -> Policy:
    """The policy of a model that is loaded already.

    Raises:
        ConfigError: the model and the tokenizer don't fit, or peft is missing.
    """
    _without_dropout(model)
    if config.lora.rank and not hasattr(model, "disable_adapter"):
        model = _with_adapters(model, config.lora, config.run.seed)
    device = config.run.device
    if device == "auto":
        own = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        device = own if torch.cuda.is_available() else "cpu"
    model.to(device=device, dtype=torch.float32)
    policy = Policy(Scorer(model), tokenizer, config.model.dtype)
    model.eval()
    if config.model.gradient_checkpointing:
        _recompute(policy.scorer.causal)
        model.train()  # transformers does so in training mode only; dropout is off
    _check(policy)
    return policy


def load_tokenizer(settings: ModelSettings) -> Any:
    """The tokenizer of the settings, with their chat template.

    Raises:
        ConfigError: there is none, or it can't be loaded.
    """
    import transformers

    name = settings.tokenizer or settings.path
    if name is None:
        raise ConfigError("[model] tokenizer is missing; a model from a config has none of its own")
    with _loading("tokenizer", name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            name, trust_remote_code=settings.trust_remote_code
        )
    if settings.chat_template is not None:
        try:
            tokenizer.chat_template = Path(settings.chat_template).read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"[model] chat_template {settings.chat_template}: {error}") from None
    return tokenizer


def load_model(settings: ModelSettings, seed: int, folder: Path | None = None) -> Any:
    """The transformers model: pretrained, or fresh from a configuration.

    Raises:
        ConfigError: neither is given, or it can't be loaded.
    """
    import transformers

    extra: dict[str, Any] = {"trust_remote_code": settings.trust_remote_code}
    if settings.attention is not None:
        extra["attn_implementation"] = settings.attention
    name = str(folder) if folder is not None else settings.path
    if name is not None:
        with _loading("model", name):
            return transformers.AutoModelForCausalLM.from_pretrained(name, **extra)
    if settings.config is None:
        raise ConfigError("[model] has neither path nor config; expected one of them")
    with _loading("model", "from [model] config"), torch.random.fork_rng():
        torch.manual_seed(seed)
        return transformers.AutoModelForCausalLM.from_config(_fresh(settings.config), **extra)


def _fresh(config: str | Mapping[str, Any]) -> Any:
    """A transformers configuration."""
    import transformers

    table = json.loads(Path(config).read_text("utf-8")) if isinstance(config, str) else dict(config)
    kind = table.pop("model_type", None)
    if kind is None:
        raise ValueError("it has no model_type, such as llama")
    return transformers.AutoConfig.for_model(kind, **table)


class _loading(AbstractContextManager[None]):  # noqa: N801 - reads as a statement
    """Errors of transformers in one line."""

    def __init__(self, what: str, name: str) -> None:
        self.text = f"{what} {name!r}" if what != name else what

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, Exception):
            lines = [line for line in str(error).split("\n") if line.strip()]
            said = lines[0].strip()[:300] if lines else type(error).__name__
            raise ConfigError(
                f"{self.text} can't be loaded ({said}); expected a folder, or a name on the hub"
            ) from error


def _with_adapters(model: Any, lora: Lora, seed: int) -> Any:
    try:
        import peft
    except ImportError:
        raise ConfigError("[lora] needs the package peft: pip install peft") from None
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    settings = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, target_modules=targets, task_type="CAUSAL_LM"
    )
    try:
        with (
            warnings.catch_warnings(),
            torch.random.fork_rng(),
        ):  # peft asks transformers for names it has deprecated
            warnings.simplefilter("ignore", FutureWarning)
            torch.manual_seed(seed)
            return peft.get_peft_model(model, settings)
    except ValueError as error:
        raise ConfigError(
            f"[lora] targets {lora.targets!r}: {str(error).splitlines()[0]}"
        ) from None


def _recompute(model: Any) -> None:
    """Activations are computed again in the backward pass."""
    name = "activation_checkpointing_enable"  # of transformers 5; the other name before
    enable = getattr(model, name, None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def _without_dropout(model: Any) -> None:
    """No dropout: log-probs under two draws of it are those of two policies."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "attn_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def _check(policy: Policy) -> None:
    """Refuse a tokenizer or an output layer that does not fit."""
    causal = policy.scorer.causal
    output = causal.get_output_embeddings()
    rows = int(causal.get_input_embeddings().weight.shape[0])
    if len(policy.tokenizer) > rows:
        raise ConfigError(
            f"the tokenizer has {len(policy.tokenizer)} tokens and the model {rows} embeddings; "
            "expected a tokenizer of this model"
        )
    if not policy.eos:
        raise ConfigError("the tokenizer has no end token, so no completion would ever end")
    ids = torch.arange(min(4, rows), device=policy.device)[None, :]
    if not logits_of_head(causal, output, ids, policy.after):
        raise ConfigError(
            f"{type(causal).__name__} does something to its logits that is not known here, so its "
            "log-probs can't be computed from its last states; this model is not supported"
        )
