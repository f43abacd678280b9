"""MET002: an entropy outside its range."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import GaugeSeen, Seen

_SLACK = 1e-4
_CASES = ([1.0, 1.0, 1.0, 1.0], [log(5.0), 0.0, 0.0, 0.0])
_SHOWN = ("(1, 1, 1, 1)", "(ln 5, 0, 0, 0)")


def detect(seen: Seen) -> Iterator[Sighting]:
    """One token: between 0 and ln V, from logits; at least 0, from log-probs."""
    for gauge in seen.gauges:
        if gauge.role == "entropy" and not _says_negative(gauge):
            yield from _of_logits(gauge) if "logits" in gauge.slots else _of_log_probs(gauge)


def _says_negative(gauge: GaugeSeen) -> bool:
    return "negative" in gauge.doc.lower() or bool({"neg"} & set(gauge.function.split("_")))


def _of_logits(gauge: GaugeSeen) -> Iterator[Sighting]:
    values = [_single(gauge, {"logits": [[case]], "mask": [[1]]}) for case in _CASES]
    right = [_entropy(case) for case in _CASES]
    if None in values or _proportional(values, right):
        return
    for shown, got, expected in zip(_SHOWN, values, right, strict=True):
        if got is not None and not -_SLACK <= got <= log(4) + _SLACK:
            yield Sighting(
                gauge.where["result"],
                "the entropy of 4 words is below 0" if got < 0 else
                "the entropy of 4 words is above ln 4",
                Evidence(f"one token, logits {shown}: entropy", rounded(got),
                         rounded(expected)),
            )  # fmt: skip
            return


def _of_log_probs(gauge: GaugeSeen) -> Iterator[Sighting]:
    got = _single(gauge, {"new log-probs": [[log(0.5)]], "mask": [[1]]})
    if got is not None and got < -_SLACK:
        yield Sighting(
            gauge.where["result"],
            "an entropy below 0",
            Evidence("one token of log-prob ln 0.5: entropy", rounded(got), "at least 0"),
        )


def _single(gauge: GaugeSeen, values: dict[str, object]) -> float | None:
    got = gauge.run(values)
    while isinstance(got, list) and len(got) == 1:
        got = got[0]
    return float(got) if isinstance(got, int | float) else None


def _entropy(logits: list[float]) -> float:
    total = sum(map(exp, logits))
    return -sum(exp(x) / total * log(exp(x) / total) for x in logits)


def _proportional(values: list[float | None], right: list[float]) -> bool:
    """The entropy itself in another unit, such as bits or shares of ln V."""
    ratios = [got / expected for got, expected in zip(values, right, strict=True) if got]
    return len(ratios) == 2 and ratios[0] > 0 and abs(ratios[0] - ratios[1]) < 1e-3


FAULT = Fault(
    code="MET002",
    name="entropy-out-of-range",
    severity=Severity.ERROR,
    summary="below 0 or above log V",
    remedy="take -(p * log p).sum(-1), both from the log-softmax of the logits",
    views="CM",
    detect=detect,
)
