"""An objective in words, for people."""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.judge.findings import TargetReport

Point = Mapping[str, str | float]
_RATIOS = {
    "token": "ratio exp(new − old)",
    "detached": "ratio exp(new − stop(new)) = 1",
    "log-prob-ratio": "ratio new/old of log-probs",
    "log-difference": "ratio new − old",
    "inverted": "ratio exp(old − new)",
    "stopped": "ratio without gradient",
}
_LEVELS = {
    "sequence-mean": " per sequence (geometric mean)",
    "sequence-sum": " per sequence (product)",
}


def sentence(target: TargetReport) -> str:
    """One line on what a loss or an advantage function computes; empty if nothing is known."""
    point = target.objective
    if "baseline" in point:
        return _advantages(point)
    if point.get("place") == "reward":
        return f"reward {_signed(point)}, by {point['reduction']}"
    if "surrogate" not in point:
        return ""
    to_ref = point.get("ratio_to") == "reference"
    parts = [
        "ratio exp(new − ref)"
        if to_ref
        else _RATIOS.get(str(point["ratio"]), str(point["ratio"]))
        + _LEVELS.get(str(point.get("level")), ""),
        str(point["surrogate"]) + _bounds(point),
        _divergence(point) + _drift(point),
        str(point.get("aggregation", "unknown aggregation")),
    ]
    named = f" = {target.recipe}" if target.recipe else ""
    return ", ".join(parts) + named


def _signed(point: Point) -> str:
    weight = float(point["divergence_weight"])
    size = "" if abs(weight) == 1 else f"{abs(weight):g}·"
    return f"{'plus' if weight > 0 else 'minus'} {size}β·{point['divergence']}"


def _bounds(point: Point) -> str:
    if "clip_low" not in point:
        return ""
    if point.get("clip_from") == "arguments":
        return " at the range given"
    cap = f", cap {point['cap']:g}" if "cap" in point else ""
    return f" {point['clip_low']:g}/{point['clip_high']:g}{cap}"


def _divergence(point: Point) -> str:
    name = str(point.get("divergence", "unknown divergence"))
    if name == "none" or "divergence_weight" not in point:
        return "no divergence" if name == "none" else name
    weight = float(point["divergence_weight"])
    size = "β" if point.get("beta_from") == "arguments" else ""
    number = "" if abs(weight) == 1 and size else f"{abs(weight):g}"
    own = f" by {point['divergence_aggregation']}" if "divergence_aggregation" in point else ""
    return f"{'−' if weight < 0 else ''}{number}{'·' if number and size else ''}{size}·{name}{own}"


def _drift(point: Point) -> str:
    if "drift" not in point:
        return ""
    return f" plus {point['drift_weight']:g}·{point['drift']} to the old policy"


def _advantages(point: Point) -> str:
    inverted = "inverted: " if point.get("sign") == "inverted" else ""
    factor = f"{point['factor']:g} × " if "factor" in point else ""
    text = f"{inverted}{factor}reward minus {point['baseline']}"
    if point["scale"] != "none":
        text += f", divided by {point['scale']}{_stabiliser(point)}"
    return text


def _stabiliser(point: Point) -> str:
    match point.get("eps_place"):
        case None:
            return ""
        case "sqrt(max(var, eps))":
            return f" (at least {float(point['eps']) ** 0.5:g})"
    return f" (eps {point['eps']:g}, {point['eps_place']})"
