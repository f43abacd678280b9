"""Sphinx: `sphinx-build -W -n docs build/docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE / "examples"), str(HERE.parent / "scripts")]

import rlproof  # noqa: E402

project = "rlproof"
author = "the rlproof authors"
project_copyright = "the rlproof authors, MIT licence"
version = release = rlproof.__version__

extensions = ["myst_parser", "rlproof_docs.extension"]
exclude_patterns = ["_generated", "_ext", "examples", "data", "schema"]
myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_dmath_double_inline = False
highlight_language = "text"
nitpicky = True
smartquotes = False  # a prime is no quotation mark

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"rlproof {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["schema"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "tango"
