"""What a thin loss takes, and what its objective is called by `check`."""

from __future__ import annotations

from dataclasses import dataclass

from rlproof.space.advantages import Advantage
from rlproof.space.objective import Divergence, Objective

_GRADIENTS = {
    ("k3", "straight-through-k2"): "k3-straight-through",
    ("k1", "straight-through-k2"): "k1-straight-through",
    ("absolute", "straight-through-k2"): "absolute-straight-through",
    ("k2", "straight-through-k2"): "k2",
    ("k3", "ratio-weighted"): "k3-ratio-weighted",
}
_WITHOUT_RATIO = ("log-prob",)
_WITHOUT_CLIP = ("log-prob", "unclipped", "soft-gate", "gamma-weight")


@dataclass(frozen=True)
class Signature:
    """What a thin loss takes, and the coordinates that `check` should find."""

    parameters: str
    batch: str
    """An assignment of the arguments to a `batch`."""
    expected: dict[str, object]
    takes_clip: bool
    takes_beta: bool


def signature(
    objective: Objective, *, beta: bool = False, on_policy: bool = False, length: int = 16
) -> Signature:
    """The usual arguments of such an objective: what it has no use for is left out.

    Args:
        objective: the point that the options are said to be.
        beta: whether the coefficient of the divergence is an argument.
        on_policy: whether there are no old log-probs.
        length: of the constant that rows are divided by.
    """
    penalised = named(objective.divergence) != "none"
    default = objective.clip.bounds == (0.8, 1.2) and objective.surrogate not in _WITHOUT_CLIP
    compares = objective.surrogate not in _WITHOUT_RATIO or objective.divergence.target == "old"
    takes_clip, takes_beta = default and not on_policy, beta and penalised
    taken = {
        "logps": True,
        "old_logps": compares and not on_policy,
        "ref_logps": penalised,
        "advantages": True,
        "mask": True,
        "clip_eps=0.2": takes_clip,
        "beta=0.04": takes_beta,
    }
    old = "None" if on_policy else "old_logps" if taken["old_logps"] else "logps.detach()"
    sampler = "logps.detach()" if on_policy else old
    ref = "ref_logps" if penalised else "logps.detach()"
    batch = (
        f"batch = SimpleNamespace(new=logps.detach(), old={old}, ref={ref}, mask=mask,\n"
        f"    sampler={sampler}, advantages=advantages, entropy=torch.zeros_like(logps))"
    )
    expected = coordinates(objective, length=length)
    if on_policy:  # nothing to clip, and for k3 all weights by the ratio have the slope of k2
        expected = {"ratio": "detached", **{k: expected[k] for k in ("aggregation", "padding")}}
    elif takes_clip:
        expected |= {"clip_low": 0.2, "clip_high": 0.2, "clip_from": "arguments"}
    elif objective.surrogate not in _WITHOUT_CLIP:
        expected |= bounds(objective)
        if objective.surrogate == "two-sided":  # a cap above a fixed clip range is the same
            expected["surrogate"] = "dual-clip"
    if penalised:
        expected["beta_from"] = "arguments" if takes_beta else "constant"
        expected["divergence_weight"] = 1.0 if takes_beta else objective.divergence.coefficient
    return Signature(", ".join(k for k, v in taken.items() if v), batch, expected, takes_clip,
                     takes_beta)  # fmt: skip


def coordinates(objective: Objective, *, length: int = 16) -> dict[str, object]:
    """The coordinates of a loss, but for clip range and coefficient."""
    found: dict[str, object] = {
        "surrogate": objective.surrogate,
        "aggregation": objective.aggregation,
        "divergence": named(objective.divergence),
        "level": objective.ratio.removesuffix("-token"),
        "padding": "masked",
    }
    own = objective.divergence.aggregation
    if found["divergence"] != "none" and own not in ("same", objective.aggregation):
        found["divergence_aggregation"] = own
    if objective.divergence.place == "loss" and objective.divergence.target == "old":
        found |= {"drift": objective.divergence.estimator}
        found |= {"drift_weight": objective.divergence.coefficient}
    if objective.surrogate in _WITHOUT_RATIO:
        del found["level"]
    if objective.aggregation == "constant-per-sequence":
        found["factor"] = 1 / length
    if objective.surrogate in ("dual-clip", "two-sided"):
        found["cap"] = objective.clip.cap
    if objective.surrogate == "soft-gate":
        found["temperature_positive"] = objective.clip.positive_temperature
        found["temperature_negative"] = objective.clip.negative_temperature
    return found


def named(divergence: Divergence) -> str:
    """The name of a divergence with its gradient."""
    if divergence.place != "loss" or divergence.target != "reference":
        return "none"
    pair = divergence.estimator, divergence.gradient
    return _GRADIENTS.get(pair, divergence.estimator)


def bounds(objective: Objective) -> dict[str, object]:
    """The clip range, where it is a constant of the script."""
    low, high = objective.clip.bounds
    return {"clip_low": 1 - low, "clip_high": high - 1, "clip_from": "constant"}


def advantage(how: Advantage) -> dict[str, object]:
    """The coordinates of advantages."""
    found: dict[str, object] = {"baseline": how.baseline, "scale": how.scale}
    return found if how.scale == "none" else found | {"eps": how.eps, "eps_place": how.eps_place}
