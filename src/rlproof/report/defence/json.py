"""The defence as JSON, schema 1: the same bytes for the same measurements.

Numbers that were measured on the script's functions have nine digits: below that lies the
rounding of finite differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import rlproof
from rlproof.defence.claims import Computed
from rlproof.defence.model import (
    Compared,
    Formula,
    Objection,
    Optimised,
    Part,
    ScriptDefence,
    Table,
)  # fmt: skip
from rlproof.defence.trainer import TrainerDefence
from rlproof.report.json import SCHEMA, exact

_DIGITS = 9
_NOISE = 1e-9


def trainer(defence: TrainerDefence) -> str:
    """The lines of the tiny trainer and the claims, with every number."""
    return _document(
        {
            "target": "rlproof.tiny",
            "holds": defence.holds,
            "lines": [
                {
                    "function": one.ground.function,
                    "line": one.line,
                    "end_line": one.end_line,
                    "code": one.ground.code,
                    "claims": list(one.ground.claims),
                    "why": one.ground.why,
                }
                for one in defence.lines
            ],
            "claims": [_claim(one) for one in defence.computed],
        }
    )


def script(defence: ScriptDefence, claims: Sequence[Computed], _lines: Sequence[str] = ()) -> str:
    """Everything about a script."""
    report = defence.report
    return _document(
        {
            "target": report.path.encode(errors="backslashreplace").decode(),
            "optimises": [_optimised(one) for one in defence.optimised],
            "measurements": [_part(part) for part in defence.parts],
            "recipes": [_compared(one) for one in defence.compared],
            "objections": [_objection(one) for one in defence.objections],
            "claims": [
                {"id": one.claim.id, "name": one.claim.name, "title": one.claim.title}
                for one in claims
            ],
            "skipped": [{"check": s.check, "reason": s.reason} for s in defence.skipped],
        }
    )


def _document(content: Mapping[str, Any]) -> str:
    import msgspec

    document = {"schema": SCHEMA, "version": rlproof.__version__, **content}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _claim(one: Computed) -> dict[str, Any]:
    claim = one.claim
    return {
        "id": claim.id,
        "name": claim.name,
        "title": claim.title,
        "holds": one.holds,
        "error": one.error,
        "statement": claim.statement,
        "conditions": claim.conditions,
        "proof": claim.proof,
        "refutes": claim.refutes,
        "sources": [{"text": s.text, "verified": str(s.verified)} for s in claim.sources],
        "numbers": [
            {
                "name": n.name,
                "value": exact(n.value),
                "expected": exact(n.expected),
                "tolerance": n.tolerance,
                "origin": n.origin,
                "ok": n.holds,
            }
            for n in one.numbers
        ],
    }


def _optimised(one: Optimised) -> dict[str, Any]:
    return {
        "loss": one.loss,
        "line": one.line,
        "advantages": one.advantages,
        "says": list(one.says),
        "formulas": [_formula(f) for f in one.formulas],
        "facts": _measured(dict(one.facts)),
    }


def _formula(formula: Formula) -> dict[str, str]:
    return {"label": formula.label, "text": formula.text, "latex": formula.latex}


def _part(part: Part) -> dict[str, Any]:
    return {
        "key": part.key,
        "title": part.title,
        "function": part.function,
        "line": part.line,
        "claims": list(part.claims),
        "says": list(part.says),
        "facts": _measured(dict(part.facts)),
        "tables": [_table(one) for one in part.tables],
    }


def _table(one: Table) -> dict[str, Any]:
    return {
        "caption": one.caption,
        "columns": list(one.columns),
        "rows": [_measured(list(row)) for row in one.rows],
    }


def _compared(one: Compared) -> dict[str, Any]:
    return {
        "recipe": one.recipe,
        "source": one.source,
        "declared": one.declared,
        "says": one.says,
        "table": _table(one.table),
    }


def _objection(one: Objection) -> dict[str, Any]:
    finding = one.finding
    return {
        "code": finding.code,
        "name": finding.fault.name,
        "severity": str(finding.severity),
        "line": finding.place.line,
        "function": finding.place.function,
        "message": finding.message,
        "claims": list(one.claims),
    }


def _measured(value: Any) -> Any:
    """Without the noise of finite differences."""
    if isinstance(value, dict):
        return {key: _measured(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_measured(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return 0.0 if abs(value) < _NOISE else float(f"{value:.{_DIGITS}g}")
    return exact(value)
