"""What the advantages of records and of dumps are, in one wording."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.advantagefit import AdvantageFit, Made, of_run
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm
from rlproof.watch.seen import StepSeen

ENOUGH = 2
"""Steps with a signal from which a formula is believed."""


def words(made: Made) -> str:
    """`group-mean baseline over sample-std`."""
    how = made.how
    scale = f" over {how.scale}" if how.scale != "none" else ", not scaled"
    whiten = f", whitened by {how.whiten}" if how.whiten != "none" else ""
    factor = "" if abs(made.factor - 1) < 5e-3 else f", times {rounded(made.factor, 3):g}"
    return f"{how.baseline} baseline{scale}{whiten}{factor}"


def _best(fit: AdvantageFit) -> Made | None:
    """The formula with a factor of 1, where there is one."""
    made = fit.made()
    if fit.steps < ENOUGH or not made:
        return None
    return min(made, key=lambda one: (abs(one.factor - 1) > 5e-3, one.of_batch))


def _evidence(fit: AdvantageFit) -> Evidence | None:
    one = fit.example
    if one is None:
        return None
    rewards = ", ".join(f"{r:g}" for r in one.rewards)
    text = (
        f"step {one.step:g}: advantages of a group with rewards [{rewards}]; by its own mean, std"
    )
    return Evidence(text, list(one.got), list(one.expected))


def leaks(fit: AdvantageFit, facts: Facts, first: float | None) -> Iterator[Alarm]:
    """Advantages of the wrong sign, and advantages that depend on other groups."""
    best = _best(fit)
    if best is None:
        return
    found = _evidence(fit)
    if all(made.factor < 0 for made in fit.made()):
        yield Alarm(
            "the advantages are baseline minus reward: what was rewarded is made less likely",
            found, first, fit.steps, fit.steps, Severity.ERROR, ("ADV015",),
        )  # fmt: skip
    elif best.of_batch:
        severity = Severity.ERROR if facts.of_group else Severity.NOTE
        tail = "" if facts.of_group else ", a recipe of its own, or a fault where groups are meant"
        yield Alarm(
            f"a row's advantage depends on other prompts ({words(best)}){tail}",
            found, first, fit.steps, fit.steps, severity, ("ADV001",),
        )  # fmt: skip


def named(fit: AdvantageFit) -> Iterator[str]:
    """Which formula the advantages are made by, or that none is known."""
    best = _best(fit)
    if best is not None:
        yield f"the advantages are: {words(best)}"
    elif fit.steps >= ENOUGH:
        yield "no formula known here makes these advantages of these rewards, which is no fault"


def pushes(fit: AdvantageFit) -> Iterator[Alarm]:
    """Equal rewards with an advantage, where all other groups are measured by themselves."""
    best = _best(fit)
    if best is None or best.of_batch or not fit.pushed:
        return
    step, reward, advantage = fit.pushed[0]
    yield Alarm(
        "a group of equal rewards gets advantages all the same: rounding of its mean, over a std "
        "that is 0 or rounding too",
        Evidence(f"step {step:g}: a group whose rewards are all {reward:.6g}", rounded(advantage),
                 0.0),
        step, len(fit.pushed), fit.equal,
    )  # fmt: skip


class Advantages:
    """The formulas that make the advantages of the rewards, group by group."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.fit = AdvantageFit()
        self.first: float | None = None

    def see(self, step: StepSeen | DumpStep) -> None:
        """One recorded step, or the completions of one step of a dump."""
        self.first = step.step if self.first is None else self.first
        self.fit = of_run(step)

    def alarms(self) -> Iterator[Alarm]:
        """Batch statistics are a fault where groups are declared, else a recipe."""
        yield from leaks(self.fit, self.facts, self.first)

    def said(self) -> Iterator[str]:
        """Which formula it is."""
        yield from named(self.fit)
