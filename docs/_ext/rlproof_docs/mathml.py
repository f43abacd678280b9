"""Formulas as MathML, by the same code as in the HTML reports: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes

from rlproof.report.html.mathml import mathml


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula inside a line."""
    translator.body.append(str(mathml(node.astext(), display=False)))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="formula">{mathml(node.astext())}</div>\n')
    raise nodes.SkipNode
