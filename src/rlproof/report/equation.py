"""A point of the space, written out: the objective, then what each of its symbols is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlproof.report.formulas import form, has_form, number

Point = Mapping[str, str | float]
_WITH_BOUNDS = "a, b"


@dataclass(frozen=True, slots=True)
class Line:
    """One equation and what it defines."""

    label: str
    latex: str


def equations(point: Point) -> list[Line]:
    """The equations of a loss, of advantages, of a penalty in the reward or of log-probs.

    A coordinate that is unknown has no line; a point about which nothing is known has none.
    """
    if "baseline" in point:
        return list(_advantages(point))
    if point.get("place") == "reward":
        return list(_reward(point))
    if "surrogate" in point or "aggregation" in point:
        return list(_loss(point))
    if has_form("log_probs", point.get("log_probs")):
        return [Line("log-probability", form("log_probs", str(point["log_probs"])))]
    return []


def _loss(point: Point) -> Iterator[Line]:
    yield Line("loss", _total(point))
    if has_form("aggregation", point.get("aggregation")):
        yield Line("weight of a slot", _weight(point))
    old = r"\reference" if point.get("ratio_to") == "reference" else r"\old"
    surrogate = str(point.get("surrogate"))
    latex = form("surrogate", surrogate, old=old) if has_form("surrogate", surrogate) else ""
    if latex:
        yield Line("surrogate", latex)
    ratio = _ratio(point, old)
    if ratio and (r"\rho" in latex or not latex):
        yield Line("ratio", ratio)
    if _WITH_BOUNDS in latex + ratio or "[a " in latex:
        yield Line("clip bounds", form("clip_convention", _convention(point)))
    if point.get("divergence") != "none" and has_form("divergence", point.get("divergence")):
        yield Line("divergence", form("divergence", str(point["divergence"])))
    if has_form("divergence", point.get("drift")):
        yield Line("penalty on the drift", _drift(str(point["drift"])))
    if constants := ",\\quad ".join(_constants(point)):
        yield Line("constants", constants)


def _convention(point: Point) -> str:
    return str(point.get("clip_convention", "delta"))


def _total(point: Point) -> str:
    inner = f"{_surrogate_term(point)}{_divergence_term(point)}{_drift_term(point)}"
    if point.get("aggregation") == "per-token":
        return rf"L_{{i,t}} = {inner}"
    factor = _factor(point)
    mask = "" if point.get("padding") == "counted" else r"m_{i,t}\, "
    alone = " " not in inner
    sign, body = (
        ("-" * inner.startswith("-"), "s_{i,t}") if alone else ("", rf"\left({inner}\right)")
    )
    return rf"L = {sign}{factor}\sum_{{i,t}} {mask}w_{{i,t}}\, {body}"


def _factor(point: Point) -> str:
    factor = float(point.get("factor", 1.0))
    constant = str(point.get("aggregation", "")).startswith("constant")
    return "" if constant or factor == 1 else number(factor) + r"\, "


def _weight(point: Point) -> str:
    name, latex = str(point["aggregation"]), form("aggregation", str(point["aggregation"]))
    factor = float(point.get("factor", 1.0))
    if name.startswith("constant") and factor:
        return latex + rf",\quad C = {number(float(f'{1 / factor:.5g}'))}"
    return latex


def _surrogate_term(point: Point) -> str:
    sign = "-" if float(point.get("surrogate_weight", -1.0)) < 0 else ""
    return sign + "s_{i,t}"


def _divergence_term(point: Point) -> str:
    if point.get("divergence") == "none":
        return ""
    if "divergence" not in point:
        return r" + \text{(unknown)}"
    weight = float(point.get("divergence_weight", 1.0))
    size = "" if abs(weight) == 1 else number(abs(weight)) + r"\, "
    beta = r"\beta\, " if point.get("beta_from") == "arguments" else ""
    return f" {'-' if weight < 0 else '+'} {size}{beta}d_{{i,t}}"


def _drift_term(point: Point) -> str:
    if "drift" not in point:
        return ""
    weight = float(point["drift_weight"])
    return f" {'-' if weight < 0 else '+'} {number(abs(weight))}\\, q_{{i,t}}"


def _drift(estimator: str) -> str:
    """The estimator with the old policy in the place of the reference."""
    return "q" + form("divergence", estimator, reference=r"\old").removeprefix("d")


def _ratio(point: Point, old: str) -> str:
    level, ratio = point.get("level", "token"), point.get("ratio", "token")
    if level != "token" and has_form("level", level):
        return form("level", str(level), old=old)
    return form("ratio", str(ratio), old=old) if has_form("ratio", ratio) else ""


_CONSTANTS = {
    "clip_low": r"\varepsilon_{\text{low}}",
    "clip_high": r"\varepsilon_{\text{high}}",
    "cap": "c",
    "temperature_positive": r"\tau_{A > 0}",
    "temperature_negative": r"\tau_{A \le 0}",
}


def _constants(point: Point) -> Iterator[str]:
    for axis, symbol in _CONSTANTS.items():
        if axis in point:
            yield f"{symbol} = {number(float(point[axis]))}"


def _advantages(point: Point) -> Iterator[Line]:
    scaled = point.get("scale", "none") != "none"
    sign = "-" if point.get("sign") == "inverted" else ""
    factor = number(float(point["factor"])) + r"\, " if "factor" in point else ""
    above, below = r"r_i - b_i", _divisor(point)
    if point["baseline"] == "none":
        above = "r_i"
    body = rf"\frac{{{above}}}{{{below}}}" if scaled else above
    if not scaled and (sign or factor) and above != "r_i":
        body = rf"\left({above}\right)"
    yield Line("advantage", f"A_i = {sign}{factor}{body}")
    if point["baseline"] != "none" and has_form("baseline", point["baseline"]):
        yield Line("baseline", form("baseline", str(point["baseline"])))
    if scaled and has_form("scale", point["scale"]):
        yield Line("scale", form("scale", str(point["scale"])))
    if scaled and "eps_place" in point:
        yield Line("constants", rf"\varepsilon = {number(float(point['eps']))}")


def _divisor(point: Point) -> str:
    place = point.get("eps_place")
    return form("eps_place", str(place)) if has_form("eps_place", place) else r"\sigma_i"


def _reward(point: Point) -> Iterator[Line]:
    weight = float(point["divergence_weight"])
    size = "" if abs(weight) == 1 else number(abs(weight)) + r"\, "
    sign = "+" if weight > 0 else "-"
    index = "i,t" if point.get("reduction") == "token" else "i"
    reduction = form("reduction", str(point["reduction"]))
    yield Line("reward", rf"r'_{{{index}}} = r_{{{index}}} {sign} {size}\beta\, {reduction}")
    yield Line("divergence", form("divergence", str(point["divergence"])))
