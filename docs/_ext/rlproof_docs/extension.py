"""The sphinx extension that docs/conf.py loads."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from rlproof_docs import (
    claims,
    cli,
    compute,
    directives,
    faults,
    mathml,
    metrics,
    recipes,
    rules,
    settings,
    write,
)

_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the generators, the directives and the formulas."""
    app.add_directive("run", directives.Run)
    app.add_directive("repair", directives.Repair)
    app.add_html_math_renderer("mathml", (mathml.inline, None), (mathml.block, None))
    app.connect("builder-inited", _generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _generate(app: Sphinx) -> None:
    """Write all generated pages, before sphinx looks for pages."""
    root = Path(app.srcdir)
    numbers = compute.numbers(root / "_generated" / "numbers.pickle")
    for line in claims.failing(numbers):
        _LOG.warning(line)
    found = chain(
        faults.pages(),
        recipes.pages(),
        claims.pages(numbers),
        cli.pages(),
        metrics.pages(),
        rules.pages(),
        settings.pages(),
    )
    _LOG.info("generated pages: %d", write.write(root, found))
