"""What happens in a rehearsal: forward passes, their gradients, samples and steps.

The gradient by the log-prob of a token is read off the gradient by the logits. The log-prob of
token y at temperature T has the gradient (e_y − q)/T by the logits l, with q = softmax(l/T). So the
gradient d of any function of that log-prob has ln(−d_v/c) = l_v/T − ln Z for every v ≠ y: its slope
over l is 1/T, and c = T·d_y/(1 − q_y) is the derivative by the log-prob.

Shapes: B rows, L slots, C of the completion, V words.
"""

from __future__ import annotations

from typing import Any

from rlproof.bind.child.rehearsal.settings import PROMPT, Settings, generator

_CHECKS = 16  # random directions in which a gradient is compared
_PLAIN = 1e-4  # how far shares may be off a softmax's
_FAR = 0.15  # how far a set step moves each parameter, in units of a logit


class Enough(BaseException):
    """The run has shown enough; not an `Exception`, so that no loop swallows it."""


class Recorder:
    """The events of one run."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.passes: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.samples: list[dict[str, Any]] = []
        self.used: set[str] = set()
        """Which conventions mattered."""
        self.policy: Any = None
        self.born: dict[tuple[int, ...], int] = {}
        """At which step each row was sampled or handed out."""
        self.place: dict[tuple[int, ...], int] = {}
        """Which row of a batch ids are."""
        self.drawn: dict[tuple[int, ...], Any] = {}
        self.rewarded: dict[tuple[int, ...], float] = {}
        self.columns: dict[int, tuple[str, Any]] = {}
        """Tensors of a batch by identity; kept, so that no identity is used twice."""
        self._alive: list[Any] = []
        self._calls = 0
        self._occurrences: dict[tuple[int, ...], int] = {}
        self._before: list[Any] = []

    # --- sampling -----------------------------------------------------------------------------

    def draws(self, prompt: tuple[int, ...]) -> tuple[object, ...]:
        """What the random numbers of one completion depend on: not on its place in a batch."""
        count = self._occurrences.get(prompt, 0)
        self._occurrences[prompt] = count + 1
        return (prompt, count, self._calls)

    def sampled(self, ids: Any, chances: Any) -> None:
        """Completions were drawn from these distributions (B, C, V); None if not drawn."""
        self._calls += 1
        self._occurrences.clear()
        for i, row in enumerate(ids.tolist()):
            self.born.setdefault(tuple(row), len(self.steps))
            if chances is not None:
                self.drawn.setdefault(tuple(row), chances[i])

    # --- forward passes -----------------------------------------------------------------------

    def of_ids(self, model: Any, ids: Any, logits: Any, start: int, logps: Any) -> None:
        """A pass over rows of ids; logits are those from slot `start` on."""
        self._count()
        if not model.trained or not logps.requires_grad:
            return
        rows = [tuple(row) for row in ids.tolist()]
        seen = self._pass(rows, logps)
        seen["ids"] = [list(row) for row in rows]
        if logits.requires_grad:
            lines = logits.detach().clone()
            logits.register_hook(lambda d: self._by_logits(seen, rows, lines, start, d))

    def of_states(self, model: Any, states: Any, logps: Any) -> None:
        """Log-probs of actions in states: one slot a row."""
        self._count()
        if model.trained and logps.requires_grad:
            self._pass([tuple(row) for row in states.tolist()], logps.unsqueeze(1), logps)

    def _pass(self, rows: list[Any], logps: Any, source: Any = None) -> dict[str, Any]:
        import torch

        seen: dict[str, Any] = {
            "rows": [self.place.get(row, -1) for row in rows],
            "born": [self.born.get(row, -1) for row in rows],
            "step": len(self.steps),
            "logps": logps.detach().tolist(),
            "gradient": torch.zeros(logps.shape, dtype=torch.float64),
            "touched": False,
            "rewards": [self.rewarded.get(row) for row in rows],
            "scored": [],
        }
        self.passes.append(seen)

        def add(d: Any) -> None:
            seen["gradient"] += d.detach().reshape(logps.shape)
            seen["touched"] = True

        (source if source is not None else logps).register_hook(add)
        return seen

    def _by_logits(
        self, seen: dict[str, Any], rows: list[Any], lines: Any, start: int, d: Any
    ) -> None:
        """Gradients by the log-probs of the tokens after each slot, from those by the logits."""
        import torch

        ids = torch.tensor(rows)[:, start + 1 :]
        d = d.detach().double()[:, : ids.shape[1]]
        lines = lines.double()[:, : ids.shape[1]]
        if not bool((d != 0).any()):
            return
        seen["touched"] = True
        own = torch.zeros_like(d, dtype=torch.bool).scatter_(2, ids.unsqueeze(-1), True)
        at = d.gather(2, ids.unsqueeze(-1)).squeeze(-1)
        live = at != 0
        share = torch.where(own, torch.zeros_like(d), d / -at.unsqueeze(-1))
        share = torch.where(live.unsqueeze(-1), share, torch.zeros_like(share))
        usable = (share > 1e-6) & ~own
        count = usable.sum(-1).clamp(min=1)
        x = torch.where(usable, lines, torch.zeros_like(lines))
        y = torch.where(usable, share.clamp(min=1e-12).log(), torch.zeros_like(lines))
        dx = torch.where(usable, x - (x.sum(-1) / count).unsqueeze(-1), torch.zeros_like(x))
        slope = (dx * y).sum(-1) / dx.square().sum(-1).clamp(min=1e-12)
        heat = torch.where(slope > 1e-3, 1 / slope.clamp(min=1e-3), torch.ones_like(slope))
        whole = (lines / heat.unsqueeze(-1)).softmax(-1)
        chance = whole.gather(2, ids.unsqueeze(-1)).squeeze(-1)
        found = torch.where(live, heat * at / (1 - chance).clamp(min=1e-9), torch.zeros_like(at))
        seen["gradient"][:, start + 1 : start + 1 + ids.shape[1]] += found
        rest = torch.where(own, torch.zeros_like(whole), whole)
        rest = rest / rest.sum(-1, keepdim=True).clamp(min=1e-12)
        plain = (share - rest).abs().amax(-1) < _PLAIN
        self._compare(seen, rows, ids, start, live, share, plain)

    def _compare(
        self, seen: dict[str, Any], rows: list[Any], ids: Any, start: int, live: Any, share: Any,
        plain: Any,
    ) -> None:  # fmt: skip
        """The scored distribution of each drawn token against the one it was drawn from.

        Both without the token itself, whose share the gradient does not tell. Where a loss has
        other terms (an entropy bonus), the shares are those of no distribution: `plain` says
        that they are a softmax's at some temperature.
        """
        import torch

        for i, row in enumerate(rows):
            chances = self.drawn.get(row)
            if chances is None:
                continue
            for k in range(len(chances)):
                slot = PROMPT + k - start - 1
                if not 0 <= slot < ids.shape[1] or not bool(live[i, slot]):
                    continue
                token = int(ids[i, slot])
                drawn = chances[k].double().clone()
                drawn[token] = 0.0
                if float(drawn.sum()) < 1e-9:
                    drawn[:] = 0.0
                else:
                    drawn = drawn / drawn.sum()
                gap = (share[i, slot] - drawn).abs()
                worst = int(torch.argmax(gap))
                line = [i, k, worst, float(share[i, slot, worst]), float(drawn[worst])]
                seen["scored"].append([*line, bool(plain[i, slot])])

    def _count(self) -> None:
        if len(self.passes) >= self.settings.forwards:
            raise Enough

    # --- steps --------------------------------------------------------------------------------

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step: the gradients are those it acts on."""
        import torch

        if self.policy is None:
            return
        parts = [
            (p.grad if p.grad is not None else torch.zeros_like(p)).detach().double().flatten()
            for p in self.policy.parameters()
        ]
        whole = torch.cat(parts)
        lines = torch.randn(
            _CHECKS, len(whole), generator=generator("directions"), dtype=torch.float64
        )
        self.steps.append({
            "gradient": (lines @ whole / len(whole) ** 0.5).tolist(),
            "size": float(whole.norm()),
            "passes": len(self.passes),
        })  # fmt: skip
        self._before = [p.detach().clone() for p in self.policy.parameters()]
        del optimizer

    def after_step(self) -> None:
        """The step is made: put back, or moved a set distance, where that is asked for."""
        import torch

        if self.policy is None:
            return
        pairs = list(zip(self.policy.parameters(), self._before, strict=True))
        self.steps[-1]["changed"] = any(not torch.equal(p, old) for p, old in pairs)
        if self.settings.move != "really":
            with torch.no_grad():
                for k, (p, old) in enumerate(pairs):
                    noise = torch.randn(
                        old.shape, generator=generator("move", len(self.steps), k), dtype=old.dtype
                    )
                    p.copy_(old + (_FAR * noise if self.settings.move == "moved" else 0.0))
        if len(self.steps) >= self.settings.steps:
            raise Enough

    # --- the answer ---------------------------------------------------------------------------

    def column(self, name: str, tensor: Any) -> Any:
        """Remember a tensor that was handed out under this name."""
        self.columns[id(tensor)] = (name, tensor)
        return tensor

    def answer(self) -> dict[str, Any]:
        """Everything as plain numbers."""
        for seen in self.passes:
            seen["gradient"] = seen["gradient"].tolist()
        return {"passes": self.passes, "steps": self.steps, "used": sorted(self.used)}
