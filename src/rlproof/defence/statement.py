"""The statement of what a script optimises, made from the measurements alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlproof.defence import divergence as kl
from rlproof.defence.direction import DirectionSeen
from rlproof.defence.functions import Advantages, Loss
from rlproof.defence.lengths import StoppingSeen, WeightsSeen
from rlproof.defence.model import Fact, Formula, Optimised
from rlproof.defence.optimises import PipelineSeen
from rlproof.defence.reward import RewardSeen
from rlproof.defence.shapes import LATEX, Shape
from rlproof.defence.worlds import PROBABILITIES
from rlproof.lab.calculus import compare

_ZERO = 1e-9
_TURNED = 0.05
"""Degrees from which on two directions are called different."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All that was measured of one loss and its advantages; None where it could not be."""

    size: int
    size_known: bool
    pipeline: PipelineSeen | None = None
    reward: RewardSeen | None = None
    direction: DirectionSeen | None = None
    divergence: list[kl.Seen] | None = None
    beta: float | None = None
    lengths: WeightsSeen | None = None
    stopping: StoppingSeen | None = None
    flat: tuple[str, ...] | None = None
    in_reward: list[kl.Seen] | None = None
    """The penalty that another function puts into the reward."""
    loop: tuple[str, ...] = ()
    """Errors of the training loop, by code."""


def optimised(loss: Loss | None, advantages: Advantages, all_of: Everything) -> Optimised:
    """The statement, from the measurements alone."""
    return Optimised(
        loss=loss.name if loss else None,
        line=loss.line if loss else advantages.line,
        advantages=advantages.name,
        says=tuple(_says(loss, advantages, all_of)),
        formulas=tuple(_formulas(all_of)),
        facts=_facts(all_of),
    )


def _facts(all_of: Everything) -> dict[str, Fact]:
    found: dict[str, Fact] = {"group_size": float(all_of.size)}
    if seen := all_of.pipeline:
        shape = seen.shape
        found |= {
            "direction": seen.sign,
            "objective": shape.name if shape and shape.known else None,
            "residual": shape.residual if shape else None,
            "degrees_from_gradient": seen.graded.degrees if seen.graded else None,
            "scale_along_gradient": seen.graded.scale if seen.graded else 0.0,
        }
        for size, row in seen.weights.items():
            found[f"weight_{size}"] = row
        if shape and shape.known:
            found["factor"] = shape.factor_text
            found["weight_at_half"] = shape.at(all_of.size, 0.5)
    if all_of.direction:
        found["curl"] = all_of.direction.curl
    if all_of.reward:
        found["couples_prompts"] = not all_of.reward.alone
    if all_of.divergence is not None:
        found["pulls_along"], found["pull_factor"] = kl.which(all_of.divergence)
    if all_of.stopping:
        found["degrees_when_stopping"] = (
            compare(all_of.stopping.ascent, all_of.stopping.right).degrees
            if np.linalg.norm(all_of.stopping.ascent) > _ZERO else None
        )  # fmt: skip
        found["by_padding"] = all_of.stopping.by_padding
    if all_of.lengths:
        found["length_weights"] = all_of.lengths.kind
    return found


def _says(loss: Loss | None, advantages: Advantages, all_of: Everything) -> Iterator[str]:
    if loss is not None and advantages.name is None:
        yield "The script has no advantage function to call; r minus the group's mean stands in."
    if loss is None:
        yield "No loss could be called; this is about (1/G)·Σ A·score with its advantages."
    if all_of.pipeline:
        yield _reward(all_of.pipeline, all_of)
        yield from _on_graded(all_of.pipeline, all_of.direction)
    if all_of.reward and not all_of.reward.alone:
        yield "What a prompt weighs depends on the other prompts of its batch."
    if all_of.divergence is not None:
        yield _pull(all_of.divergence, all_of.beta)
    if all_of.in_reward is not None:
        yield _pull(all_of.in_reward, None, " with the penalty in the reward")
    if all_of.stopping is not None:
        yield from _length(all_of.stopping)
    if all_of.flat is not None:
        yield (
            f"Off-policy it stops at: {'; '.join(all_of.flat)}." if all_of.flat
            else "Off-policy nothing stops it: no ratio is without gradient."
        )  # fmt: skip
    if all_of.loop:
        codes = ", ".join(all_of.loop)
        yield f"All this is about its functions; the training loop has errors of its own: {codes}."


_CLIMBS = {
    "expected-reward": "the expected reward",
    "arcsine": "Σ_prompts 2·arcsin√p in the limit G → ∞",
    "log": "Σ_prompts log p in the limit G → ∞",
}


def _reward(seen: PipelineSeen, all_of: Everything) -> str:
    if seen.sign == "none":
        return "The reward has no effect: on-policy the expected step is 0."
    if seen.sign == "mixed":
        return (
            "It ascends the reward of some prompts and descends that of others: the weight of a "
            f"prompt with p = {_rates()} is {_row(seen)}."
        )
    verb = "ascends" if seen.sign == "up" else "DESCENDS"
    shape = seen.shape
    if shape is None or not shape.known:
        residual = f"{shape.residual:.2g}" if shape else "–"
        sign, name = "" if seen.sign == "up" else "−", shape.name if shape else "–"
        return (
            f"With rewards 0 and 1 it {verb} Σ_prompts F(p), F′ = {sign}w, where no known form "
            f"gives w (nearest: {name}, residual {residual}): at p = {_rates()} it is "
            f"{_row(seen)}."
        )
    what = _CLIMBS[shape.name]
    at = _yours(shape, all_of)
    if shape.name == "expected-reward":
        return f"With rewards 0 and 1 it {verb} {what}{_times(shape)}{at}."
    return f"With rewards 0 and 1 it {verb} {what}{_times(shape)}{at}; {_range(shape, all_of)}."


def _rates() -> str:
    return ", ".join(f"{p:g}" for p in PROBABILITIES)


def _row(seen: PipelineSeen) -> str:
    size = max(seen.weights)
    shown = ", ".join(f"{w:.4g}" for w in seen.weights[size])
    return f"{shown} (G = {size})"


def _times(shape: Shape) -> str:
    if shape.factor is None:
        scales = ", ".join(f"{abs(c):.4g} at G = {size}" for size, c in shape.scales.items())
        return f" (times {scales})"
    factor = (shape.factor_text or "1").removeprefix("−")
    return "" if factor == "1" else f", times {factor}"


def _yours(shape: Shape, all_of: Everything) -> str:
    half = shape.at(all_of.size, 0.5)
    if half is None:
        return ""
    whose = f"with your G = {all_of.size}" if all_of.size_known else f"with G = {all_of.size}"
    if shape.name == "expected-reward":
        return f": {whose} the expected step is {_signed(half)}·∇V"
    return f": {whose} a weight of {_signed(half)} at p = .5"


def _signed(x: float) -> str:
    return f"{x:.4g}".replace("-", "−")


def _range(shape: Shape, all_of: Everything) -> str:
    rare = shape.at(all_of.size, 1e-6)
    half = shape.at(all_of.size, 0.5)
    if rare is None or half is None:
        return "its factor on G has no known form"
    return f"rare successes weigh at most {abs(rare / half):.3g} times as much"


def _on_graded(seen: PipelineSeen, direction: DirectionSeen | None) -> Iterator[str]:
    if seen.graded is None:
        return
    degrees = seen.graded.degrees
    toward = degrees if degrees < 90 else 180 - degrees
    side = "∇V" if degrees < 90 else "−∇V"
    if toward < _TURNED:
        yield f"With rewards of more than two values the direction is that of {side} as well."
        return
    linear = seen.shape is not None and seen.shape.known  # the loss only scales the advantages
    curled = linear and direction is not None and direction.curl > 1e-4
    what = ", and is the gradient of no function" if curled else ""
    size = min(seen.weights)
    where = f"{toward:.3g}° from {side}{what} (P4, G = {size})"
    yield f"With rewards of more than two values it is {where}."


def _pull(found: list[kl.Seen], beta: float | None, how_else: str = "") -> str:
    meant, factor = kl.which(found)
    size = f"β = {beta:g}" if beta is not None else "β"
    if meant == "none":
        return f"No divergence acts{how_else}: without an advantage the expected step is 0."
    if meant is None:
        cos = [found[0].against(name)[0] for name in (kl.REVERSE, kl.FORWARD)]
        return (
            f"Its divergence follows no KL gradient: cosine {cos[0]:.3f} with ∇{kl.REVERSE}, "
            f"{cos[1]:.3f} with ∇{kl.FORWARD}."
        )
    how = "pulls to" if factor > 0 else "PUSHES AWAY from"
    times = "" if abs(abs(factor) - 1) < kl.TOLERANCE else f"{abs(factor):.4g}·"
    return f"It {how} the reference{how_else} by {times}{size} times ∇{meant}."


def _length(seen: StoppingSeen) -> Iterator[str]:
    if np.linalg.norm(seen.ascent) < _ZERO:
        return
    degrees = compare(seen.ascent, seen.right).degrees
    toward, side = (degrees, "∇V") if degrees < 90 else (180 - degrees, "−∇V")
    if toward > _TURNED:
        more = ""
        if degrees < 90 and abs(seen.longer_wrong) > 1e-3:
            more = f": wrong completions get {'longer' if seen.longer_wrong > 0 else 'shorter'}"
        yield f"Where the policy ends its own sequences it is {toward:.3g}° from {side}{more}."
    if seen.by_padding > 1e-4:
        yield (
            "It trains padding: empty slots, where token 0 stands, make a part of "
            f"{seen.by_padding:.3g} times that direction's length."
        )


_OBJECTIVE_TEXT = {
    "expected-reward": ("Σ_prompts V(p)", r"\sum_{\text{prompts}} V"),
    "arcsine": ("Σ_prompts 2·arcsin√p  (G → ∞)", r"\sum_{\text{prompts}} 2 \arcsin\sqrt{p}"
                r"\quad (G \to \infty)"),
    "log": ("Σ_prompts log p  (G → ∞)", r"\sum_{\text{prompts}} \log p\quad (G \to \infty)"),
}  # fmt: skip
_WEIGHT = {
    "expected-reward": ("∇V", r"\nabla V"),
    "arcsine": (
        "E√(K(G−K))/(G·p(1−p))·∇p,  K ~ Binomial(G, p)",
        r"\frac{\mathbb{E}\sqrt{K(G-K)}}{G\, p(1-p)}\, \nabla p,\quad "
        r"K \sim \operatorname{Binomial}(G, p)",
    ),
    "log": ("(1 − (1−p)^(G−1))/p·∇p", r"\frac{1-(1-p)^{G-1}}{p}\, \nabla p"),
}


def _formulas(all_of: Everything) -> Iterator[Formula]:
    seen = all_of.pipeline
    if seen and seen.shape and seen.shape.known and seen.sign in ("up", "down"):
        shape, up = seen.shape, seen.sign == "up"
        text, latex = _OBJECTIVE_TEXT[shape.name]
        yield Formula("ascends" if up else "descends", text, latex)
        if shape.factor is not None:
            text, latex = _WEIGHT[shape.name]
            front, front_latex = _front(shape.factor)
            yield Formula(
                "expected step", f"E[step] = {front}{text}", rf"\mathbb{{E}}[\text{{step}}] = "
                rf"{front_latex}{latex}",
            )  # fmt: skip
    elif seen and seen.sign != "none":
        yield Formula(
            "expected step", "E[step] = w(p)·∇p, w measured",
            r"\mathbb{E}[\text{step}] = w(p)\, \nabla p,\quad w \text{ measured}",
        )  # fmt: skip
    if all_of.divergence is not None:
        yield from _pull_formula(all_of.divergence)


def _front(factor: tuple[float, str]) -> tuple[str, str]:
    k, name = factor
    sign = "−" if k < 0 else ""
    size = "" if abs(k) == 1 else f"{abs(k):g}"
    named = "" if name == "1" else name if " " not in name or name[0] in "√(" else f"({name})"
    text = "".join(f"{part}·" for part in (size, named) if part)
    latex = (f"{size}\\, " if size else "") + LATEX[name]
    return sign + text, ("-" if sign else "") + latex


def _pull_formula(found: list[kl.Seen]) -> Iterator[Formula]:
    meant, factor = kl.which(found)
    if meant not in (kl.REVERSE, kl.FORWARD):
        return
    inner = {
        kl.REVERSE: r"\text{KL}(\pi \Vert \pi_{\text{ref}})",
        kl.FORWARD: r"\text{KL}(\pi_{\text{ref}} \Vert \pi)",
    }[meant]
    size = "" if abs(abs(factor) - 1) < kl.TOLERANCE else f"{abs(factor):.4g}"
    sign, sign_text = ("-", "−") if factor > 0 else ("+", "+")
    front = f"{size}\\, " if size else ""
    text = f"{size}·" if size else ""
    yield Formula(
        "and by the reference", f"{sign_text} {text}β·∇{meant}",
        rf"{sign} {front}\beta\, \nabla {inner}",
    )  # fmt: skip
