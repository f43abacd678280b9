"""Puts the generators of the documentation on the path, as docs/conf.py does."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
for folder in ("docs/_ext", "docs/examples", "scripts"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))
