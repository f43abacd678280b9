"""The policy of a rehearsal: a small language model that is trained, sampled from and watched.

Its logits at a slot are a line for the token there and one for the place. What it returns is a
tensor of log-probs, one for each token, that also has `.logits` and `.log_prob(actions)`: what a
script takes from a model's answer is then there.

Shapes: B rows, L slots, V words, D features of a state, K actions.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rlproof.bind.child.load import UnavailableError
from rlproof.bind.child.rehearsal.settings import EOS, LENGTH, WORDS, NoStandInError, generator
from rlproof.read.names import is_logp

if TYPE_CHECKING:
    from rlproof.bind.child.rehearsal.recorder import Recorder

FEATURES = 3
ACTIONS = 6
_PLACES = LENGTH + 64


@cache
def classes() -> dict[str, Any]:
    """The modules; torch is imported on the first use."""
    import torch

    class Answer(torch.Tensor):
        """Log-probs of the tokens (B, L) with the logits they are of as an attribute."""

        logits: Any
        picked: Any

        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, str):
                if key == "logits":
                    return self.logits
                raise KeyError(key)
            return torch.Tensor.__getitem__(self, key)

        def log_prob(self, actions: Any) -> Any:
            """Log-probs of actions: (B,) of states, (B, slots) of tokens."""
            return self.picked(actions)

        def entropy(self) -> Any:
            """Of each distribution, in nats."""
            lines = torch.log_softmax(self.logits, dim=-1)
            return -(lines.exp() * lines).sum(-1)

    class Policy(torch.nn.Module):
        """A model, a wrapper of one, and an actor at once."""

        def __init__(self, recorder: Recorder, name: str, trained: bool) -> None:
            super().__init__()
            draws = generator("policy", name)
            self.token_lines = torch.nn.Parameter(_lines(draws, WORDS, torch))
            self.place_lines = torch.nn.Parameter(0.3 * _lines(draws, _PLACES, torch))
            self.first_line = torch.nn.Parameter(_lines(draws, 1, torch)[0])
            self.state_lines = torch.nn.Parameter(torch.randn(FEATURES, ACTIONS, generator=draws))
            self.trained = trained
            self.config = SimpleNamespace(
                vocab_size=WORDS, pad_token_id=recorder.settings.pad, eos_token_id=EOS,
                bos_token_id=None, is_encoder_decoder=False, use_cache=True, model_type="stand-in",
                hidden_size=WORDS, _name_or_path="stand-in",
            )  # fmt: skip
            self.generation_config = SimpleNamespace(
                pad_token_id=recorder.settings.pad, eos_token_id=EOS
            )
            self.__dict__["recorder"] = recorder

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            made = Policy(self.recorder, "copy", False)
            made.load_state_dict(self.state_dict())
            for one, other in zip(made.parameters(), self.parameters(), strict=True):
                one.requires_grad_(other.requires_grad)
            memo[id(self)] = made
            return made

        def forward(self, input_ids: Any = None, *_: Any, **more: Any) -> Any:
            given = input_ids if input_ids is not None else more.get("inputs", more.get("states"))
            if not torch.is_tensor(given):
                raise UnavailableError("the stand-in for the policy wants a tensor")
            if more.get("labels") is not None or more.get("inputs_embeds") is not None:
                raise UnavailableError("the stand-in for the policy takes ids alone")
            if given.is_floating_point():
                return self._of_states(given)
            return self._of_ids(given, more)

        def _of_states(self, states: Any) -> Any:
            if states.dim() != 2 or states.shape[1] != FEATURES:
                raise UnavailableError("the stand-in for the policy wants states of (rows, 3)")
            logits = states.to(self.state_lines.dtype) @ self.state_lines
            answer = logits.as_subclass(Answer)

            def picked(actions: Any) -> Any:
                lines = torch.log_softmax(logits, dim=-1)
                found = lines.gather(-1, actions.long().reshape(-1, 1)).squeeze(-1)
                self.recorder.of_states(self, states, found)
                return found

            answer.logits, answer.picked = logits, picked
            return answer

        def _of_ids(self, ids: Any, more: dict[str, Any]) -> Any:
            if ids.dim() != 2 or ids.shape[1] > _PLACES:
                raise UnavailableError("the stand-in for the policy wants ids of (rows, tokens)")
            logits = self.lines(ids)
            first = self.first_line.expand(len(ids), 1, WORDS)
            scored = torch.cat([first, logits[:, :-1]], dim=1)
            logps = torch.log_softmax(scored, dim=-1).gather(-1, ids.long().unsqueeze(-1))
            logps = logps.squeeze(-1)
            keep = more.get("logits_to_keep") or more.get("num_logits_to_keep") or 0
            start = ids.shape[1] - keep if isinstance(keep, int) and keep else 0
            shown = logits[:, start:]
            self.recorder.of_ids(self, ids, shown, start, logps)
            answer = logps.as_subclass(Answer)

            def picked(actions: Any) -> Any:
                width = actions.shape[1] if actions.dim() == 2 else 0
                if width not in (ids.shape[1], ids.shape[1] - 1):
                    raise UnavailableError("the stand-in for the policy scores whole rows alone")
                lines = scored if width == ids.shape[1] else logits[:, :-1]
                lines = torch.log_softmax(lines, dim=-1)
                return lines.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)

            answer.logits, answer.picked = shown, picked
            return answer

        def lines(self, ids: Any) -> Any:
            """Logits (B, L, V)."""
            return self.token_lines[ids.long()] + self.place_lines[: ids.shape[1]]

        @torch.no_grad()
        def generate(self, *args: Any, **kwargs: Any) -> Any:
            from rlproof.bind.child.rehearsal.sampling import generate

            return generate(self, args, kwargs)

        def scores(self, *args: Any, **kwargs: Any) -> Any:
            """Log-probs as a plain tensor, whatever else is given."""
            ids = kwargs.get("input_ids", kwargs.get("ids", args[0] if args else None))
            return self(ids).as_subclass(torch.Tensor)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name in _SAME:
                    return self
                if is_logp(name.removeprefix("compute_").removeprefix("get_")):
                    return self.scores
                if name in _QUIET:
                    return lambda *_, **__: self
                if name in _AROUND:
                    return lambda *_, **__: nullcontext()
                raise NoStandInError(f"the stand-in for the policy has no `{name}`") from None

        def to(self, *_: Any, **__: Any) -> Any:
            return self

        cuda = half = bfloat16 = float = double = cpu = to

        @property
        def device(self) -> Any:
            return self.token_lines.device

        @property
        def dtype(self) -> Any:
            return self.token_lines.dtype

    return {"Answer": Answer, "Policy": Policy}


_SAME = {"module", "model", "base_model", "policy", "actor", "pretrained_model"}
_QUIET = {
    "gradient_checkpointing_enable", "gradient_checkpointing_disable", "set_adapter",
    "print_trainable_parameters", "enable_input_require_grads", "resize_token_embeddings",
    "get_base_model", "tie_weights", "save_pretrained",
}  # fmt: skip
_AROUND = {"disable_adapter", "no_sync"}


def _lines(draws: Any, count: int, torch: Any) -> Any:
    """Logits of a few likely words and many unlikely ones; the end is likely enough to come."""
    lines = 0.5 * torch.randn(count, WORDS, generator=draws)
    likely = torch.randint(40, 60, (count, 5), generator=draws)
    lines.scatter_(1, likely, 4 + torch.randn(count, 5, generator=draws))
    lines[:, EOS] = 3.0
    return lines


def policy(recorder: Recorder, name: str, *, trained: bool) -> Any:
    """A model; one that is trained is the policy."""
    return classes()["Policy"](recorder, name, trained)
