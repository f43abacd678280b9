"""What an advantage function computes: baseline, scale, sign, stabiliser.

Shapes: P groups of G rewards.
"""

from __future__ import annotations

import ast
import re
from itertools import product

import numpy as np

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.faults.model import rounded
from rlproof.faults.seen import AdvantagesSeen, Place, Point
from rlproof.judge.axes import values
from rlproof.judge.groups import group_facts
from rlproof.probe.advantages import GROUP, REWARDS, AdvantagesObservation, Trial, observe
from rlproof.read.anatomy import compared_std, std_statement
from rlproof.read.calls import forgets_groups, is_told_groups
from rlproof.read.landmarks import advantages_landmarks, place
from rlproof.read.names import Slot
from rlproof.read.targets import Target
from rlproof.space.advantages import BASELINES

_GROUPED: dict[str | float, str | float] = {"batch-mean": "group-mean"}
_STABILISED = (
    "population-std", "sample-std", "batch-population-std", "batch-sample-std"
)  # fmt: skip
_BLOWN = 50  # of ten rewards, a std of the whole group can make an advantage 3 at most
_ALIKE = 1.001
_LARGEST_EPS = 1e-2
_OF_BATCH = r"\bbatch|whiten|global"
_TOLERANCE = 2e-3
"""Residual of a fit without stabiliser: an eps of 1e-4 at std 0.4 changes 2.5e-4."""


def judge(function: AdvantagesImplementation) -> AdvantagesSeen:
    """Probe one advantage function and name what it computes."""
    seen = observe(function)
    target = function.target
    forgotten = forgets_groups(function.script, target)
    point = identify(seen)
    whole: dict[str, str | float] = {}
    told = forgotten or is_told_groups(function.script, target)
    if not told and _is_one_group(target):
        whole = identify(seen, len(REWARDS))
        point = whole or _as_group(point)
    where: dict[str, Place] = advantages_landmarks(target)
    std, compared = std_statement(target), compared_std(function.script, target)
    if std is not None:
        where["std"] = place(target.name, std)
    if compared is not None:
        where["std"] = place(*compared)
    facts = {
        "equal_failures": _failures(seen.equal, point),
        "rounded_failures": _failures(seen.rounded, point),
        "residue": _residue(seen.beside),
        "computes_std": compared is not None or (std is not None and _promises_std(target)),
        "single": seen.single,
        "one_group": bool(whole),
        **group_facts(function, seen, point),
    }
    if facts["wrong_axis"]:  # of a single group nothing is left along the wrong axis
        facts["rounded_failures"] = []
    slots = frozenset(str(p.slot) for p in target.parameters if p.slot)
    slots |= {str(Slot.GROUP_SIZE)} if forgotten else set()
    return AdvantagesSeen(target.name, slots, where, point, function.run, facts)


def _is_one_group(target: Target) -> bool:
    """Whether a function without a group parameter, that speaks of one, is given it alone."""
    if target.has(Slot.GROUP_SIZE) or target.has(Slot.GROUP_IDS):
        return False
    held = [p.name.replace("_", " ") for p in target.parameters if p.slot is Slot.RECORDS]
    text = " ".join([target.name.replace("_", " "), *held, target.doc])
    if target.origin:
        of_batch = _OF_BATCH if target.origin.whole else r"whiten|global"
        return not re.search(of_batch, text, re.IGNORECASE)
    speaks = re.search(r"\bgroup|\b(one|same|per|each) prompt", text, re.IGNORECASE)
    return "batch" not in text and bool(speaks)


def _as_group(point: dict[str, str | float]) -> dict[str, str | float]:
    return {
        axis: str(value).removeprefix("batch-") if axis == "scale" else _GROUPED.get(value, value)
        for axis, value in point.items()
    }


def _failures(trials: tuple[Trial, ...], point: Point) -> list[Trial]:
    """Equal rewards that raise or give NaN; where a scale is known, also those far from 0.

    A formula that nobody knows may well give equal rewards something else than 0. Answering
    None is a guard.
    """
    scaled = point.get("scale", "none") != "none"
    return [trial for trial in trials if not _skipped(trial) and _failed(trial, scaled)]


def _residue(trials: tuple[Trial, ...]) -> tuple[Trial, Trial] | None:
    """Where rounding alone makes an advantage many times as large: without it, and with it.

    What a stabiliser bounds, as published estimators do, is the same whatever the rewards are.
    """
    sizes = [max(map(abs, trial.got)) for trial in trials if trial.got is not None]
    if len(sizes) < len(trials):
        return None
    gaps = [trial.rewards[0] - trial.rewards[1] for trial in trials]
    large = _BLOWN * max(sizes[0], 1.0)
    blown = {gap: s / gap for s, gap in zip(sizes, gaps, strict=True) if s > large}
    if len(blown) > 1 and max(blown.values()) < _ALIKE * min(blown.values()):
        return None
    worst = max(range(len(trials)), key=sizes.__getitem__)
    return (trials[0], trials[worst]) if sizes[worst] > _BLOWN * max(sizes[0], 1.0) else None


def _skipped(trial: Trial) -> bool:
    return trial.error is not None and trial.error.kind == "None"


def _failed(trial: Trial, scaled: bool) -> bool:
    return trial.error is not None or (scaled and not trial.sane)


def identify(seen: AdvantagesObservation, size: int = GROUP) -> dict[str, str | float]:
    """Coordinates of the formula, empty where no published one reproduces the values.

    Args:
        seen: what came out.
        size: how many rewards are a group.
    """
    if seen.plain.got is None or seen.changed.got is None:
        return {}
    fits = [
        (fit[0], fit[1], baseline, scale)
        for baseline, scale in product(BASELINES, values("scale"))
        if (fit := _fit(seen, baseline, scale, size))
    ]
    if not fits:
        return {}
    _, factor, baseline, scale = min(fits, key=lambda fit: (round(fit[0], 6), abs(fit[1] - 1)))
    point: dict[str, str | float] = {"baseline": baseline, "scale": scale}
    if factor < 0:
        point["sign"] = "inverted"
    if abs(abs(factor) - 1) > _TOLERANCE:
        point["factor"] = rounded(abs(factor), 4)
    if scale in _STABILISED:
        point |= _stabiliser(seen, baseline, scale)
    return point


def _fit(
    seen: AdvantagesObservation, baseline: str, scale: str, size: int
) -> tuple[float, float] | None:
    """Residual and factor of one formula on both inputs together."""
    models, observed = [], []
    for trial in (seen.plain, seen.changed):
        rewards = np.array(trial.rewards).reshape(-1, size)
        model = (rewards - BASELINES[baseline](rewards)) / values("scale")[scale](rewards)
        models.append(model.ravel())
        observed.append(np.array(trial.got))
    model, got = np.concatenate(models), np.concatenate(observed)
    factor = float(model @ got) / float(model @ model)
    residual = float(np.linalg.norm(factor * model - got)) / max(float(np.linalg.norm(got)), 1e-12)
    return (residual, factor) if residual < _TOLERANCE else None


def _stabiliser(seen: AdvantagesObservation, baseline: str, scale: str) -> dict[str, str | float]:
    """Size and place of eps, from groups (0, d) whose spread is about as small as eps."""
    close = _divisors(seen.close, baseline, scale)
    if len(close) < len(seen.close):
        return {}
    if least := _least(close, _divisors(seen.tiny, baseline, scale)):
        return {"eps": rounded(least**2, 3), "eps_place": "sqrt(max(var, eps))"}
    found = [
        (got - spread, (got**2 - spread**2) ** 0.5 if got > spread else 0) for spread, got in close
    ]
    added, inside = zip(*found, strict=True)
    if max(map(abs, added)) < 1e-12:
        return {"eps": 0.0}
    if abs(added[0] - added[1]) <= 0.02 * abs(added[0]):
        return {"eps": rounded(added[1], 3), "eps_place": "std + eps"}
    if inside[1] and abs(inside[0] - inside[1]) <= 0.02 * inside[1]:
        return {"eps": rounded(inside[1] ** 2, 3), "eps_place": "sqrt(var + eps)"}
    return {}


def _divisors(trials: tuple[Trial, ...], baseline: str, scale: str) -> list[tuple[float, float]]:
    """The std of groups (0, d), and what they were divided by; those without an answer left out."""
    above = 0.5 if baseline in ("group-mean", "batch-mean") else 1.0  # of d, in (d − r̄)
    share = 0.5**0.5 if "sample" in scale else 0.5
    return [
        (trial.rewards[1] * share, trial.rewards[1] * above / trial.got[1])
        for trial in trials
        if trial.got is not None and trial.got[1] > 0
    ]


def _least(close: list[tuple[float, float]], tiny: list[tuple[float, float]]) -> float | None:
    """The least std that is divided by, where a smaller one makes no difference: max(std, eps)."""
    if len(tiny) < 2:
        return None
    (spread, _), (_, least) = tiny[:2]
    if not spread < least < _LARGEST_EPS:
        return None
    alike = all(abs(got - max(s, least)) <= 0.002 * max(s, least) for s, got in (*tiny, *close))
    return least if alike else None


def _promises_std(target: Target) -> bool:
    """Whether the text says that it divides by the std, and no switch can turn that off."""
    switch = any(
        isinstance(p.default, ast.Constant) and isinstance(p.default.value, bool)
        for p in target.parameters
    )
    words = r"divided by|normali[sz]ed|standard deviation|z-score|\bstd\b"
    denies = r"\bnot\b|\bno\b|without|dr\.? ?grpo|only (centred|centered|logged)"
    promises = re.search(words, target.doc, re.IGNORECASE)
    return not switch and bool(promises) and not re.search(denies, target.doc, re.IGNORECASE)
