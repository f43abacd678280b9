"""Losses that no batch of the usual shapes fits, though other shapes show what was meant.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from rlproof.bind.byrow import ByRow
from rlproof.bind.convention import conventions
from rlproof.bind.implementation import Implementation, Spec, UnbindableError
from rlproof.bind.loss import LossImplementation
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Batch, Place
from rlproof.read.landmarks import called, definition, place
from rlproof.read.names import Slot
from rlproof.read.parts import parts
from rlproof.read.targets import Parameter, Script, Target

Fact = tuple[Place, dict[str, Any]]
_MISFIT = re.compile(r"must match the size|broadcast|shape mismatch", re.IGNORECASE)
_ROWS_AND_TOKENS = re.compile(
    r"\(\s*(b|bs|n|g|batch|batch_size|rows)\s*,"
    r"\s*(t|l|s|seq|tokens|length|seq_len|response\w*)\s*\)",
    re.IGNORECASE,
)
_SUMS = {"sum", "mean", "masked_mean", "masked_sum"}
_OBLONG, _SQUARE = (2, 3), (3, 3)


def judge(script: Script, target: Target, sandbox: Sandbox, negative: bool) -> list[Fact]:
    """What the shapes of a loss that could not be called prove.

    Args:
        script: the script.
        target: a loss that no convention fits.
        sandbox: where it is run.
        negative: whether log-probs are given with the opposite sign.
    """
    try:
        return [
            *_two_windows(script, target, sandbox, negative),
            *_rows_for_tokens(script, target, sandbox, negative),
        ]
    except UnbindableError:
        return []


class _Trial(LossImplementation):
    """A loss that is called without looking for a convention first."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox, negative: bool) -> None:
        Implementation.__init__(self, script, target, sandbox)
        self.negative = negative
        self._parts = parts(script.source.tree)
        self.pick = None
        self.by_row = ByRow()
        self.reduced = True


def _rows_for_tokens(
    script: Script, target: Target, sandbox: Sandbox, negative: bool
) -> Iterator[Fact]:
    """It runs only with as many rows as tokens: a number of each row meets one of each token.

    Of a function that may be meant for a single row, that is no fault.
    """
    if target.origin is not None or not (_says_rows(target) or _averages_rows(target)):
        return
    trial = _Trial(script, target, sandbox, negative)
    lines, fits = [], False
    for convention in conventions(script, target):
        trial.convention = convention
        answer, square = trial.raw(_batch(*_OBLONG)), trial.raw(_batch(*_SQUARE))
        if "error" not in answer:
            return
        if _is_misfit(answer):
            lines.append(int(answer["error"].get("line") or 0))
            fits = fits or ("error" not in square and _is_finite(square))
    if fits and lines and min(lines):
        yield _statement(target, min(lines)), {"rows_for_tokens": True}


def _batch(rows: int, tokens: int) -> Batch:
    values = [[-1.0 - 0.1 * t - 0.05 * b for t in range(tokens)] for b in range(rows)]
    mask = [[1] * tokens for _ in range(rows)]
    return Batch(values, values, values, [1.0 - b for b in range(rows)], mask)


def _is_misfit(answer: Spec) -> bool:
    error = answer["error"]
    return error["type"] in ("RuntimeError", "ValueError") and bool(
        _MISFIT.search(str(error["message"]))
    )


def _is_finite(answer: Spec) -> bool:
    return bool(answer["value"] == answer["value"])


def _statement(target: Target, line: int) -> Place:
    """The innermost statement of the function at a line."""
    found = [
        node
        for node in ast.walk(target.node)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return place(target.name, found[-1]) if found else definition(target)


def _says_rows(target: Target) -> bool:
    """Whether the docstring gives something the shape (B, T)."""
    return bool(_ROWS_AND_TOKENS.search(target.doc))


def _averages_rows(target: Target) -> bool:
    """Whether the last mean is one of numbers that were summed along an axis before."""
    written = {
        node.targets[0].id: node.value
        for node in ast.walk(target.node)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    returned = [n.value for n in ast.walk(target.node) if isinstance(n, ast.Return)]
    for call in returned:
        if isinstance(call, ast.UnaryOp):
            call = call.operand
        if not isinstance(call, ast.Call) or called(call) != "mean" or call.keywords:
            continue
        root = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = call.args[0] if call.args else root
        made = written.get(given.id) if isinstance(given, ast.Name) else given
        while isinstance(made, ast.BinOp):
            made = made.left
        if isinstance(made, ast.Call) and called(made) in _SUMS and (made.keywords or made.args):
            return True
    return False


class _Wider(_Trial):
    """A loss whose mask has one slot more than there are log-probs: that of the first token."""

    def _mask(self, parameter: Parameter, batch: Batch) -> list[Any]:
        return [[0, *row] for row in super()._mask(parameter, batch)]


def _two_windows(
    script: Script, target: Target, sandbox: Sandbox, negative: bool
) -> Iterator[Fact]:
    """One mask is cut at its end for the log-ratio and at its start for the loss, or so."""
    cuts = _cuts(target)
    if len({end for end, _ in cuts}) != 2:
        return
    trial = _Wider(script, target, sandbox, negative)
    for convention in conventions(script, target):
        trial.convention = convention
        half = [[-1.0, -1.0]]
        answer = trial.raw(Batch(half, half, half, [1.0], [[1, 1]]))
        if "error" in answer or "gradient" not in answer:
            continue
        first, second = answer["gradient"][0]
        if abs(second) > 1e-9 and abs(first) < 1e-9:
            statement = min((s for end, s in cuts if end == "last"), key=lambda s: s.lineno)
            yield place(target.name, statement), {"two_windows": (first, second)}
        return


def _cuts(target: Target) -> list[tuple[str, ast.stmt]]:
    """`mask[:, :-1]` drops the last slot, `mask[:, 1:]` the first one; with their statements."""
    masks = {p.name for p in target.parameters if p.slot is Slot.MASK}
    found = []
    for statement in target.node.body:
        for node in ast.walk(statement):
            match node:
                case ast.Subscript(
                    value=ast.Name(id=name), slice=ast.Tuple(elts=[_, ast.Slice(lower=a, upper=b)])
                ) if name in masks:
                    if a is None and b is not None and ast.unparse(b) == "-1":
                        found.append(("last", statement))
                    elif b is None and a is not None and ast.unparse(a) == "1":
                        found.append(("first", statement))
    return found
