"""Self-contained HTML pages: `page(title, sections)` from the blocks of `blocks`.

    >>> from rlproof.report.html import Formula, Section, page
    >>> page("A title", [Section("A heading", [Formula(r"A_i = r_i - b_i")])])[:15]
    '<!DOCTYPE html>'

One offline file, light and dark, printable, usable by keyboard and without JavaScript. Charts
are tables that the page's script draws; formulas are LaTeX made into MathML.
"""

from rlproof.report.html.blocks import (
    Badge,
    Chart,
    Code,
    Details,
    Diff,
    Formula,
    Link,
    Listing,
    Mark,
    NumberTable,
    Prose,
    Section,
    Series,
    Text,
    Tone,
)
from rlproof.report.html.check import render
from rlproof.report.html.mathml import FormulaError
from rlproof.report.html.page import page

__all__ = [
    "Badge",
    "Chart",
    "Code",
    "Details",
    "Diff",
    "Formula",
    "FormulaError",
    "Link",
    "Listing",
    "Mark",
    "NumberTable",
    "Prose",
    "Section",
    "Series",
    "Text",
    "Tone",
    "page",
    "render",
]
