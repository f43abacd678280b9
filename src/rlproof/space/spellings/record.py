"""One spelling of a published point, and which releases were read for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CHECKS = ("executed", "wheel", "git tag")


@dataclass(frozen=True, slots=True)
class Spelling:
    """Options of one framework that compute a published point, and since when.

    The point is met up to three things: the eps beside a standard deviation (1e-9 to 1e-4), a
    clamp of log-ratios at ±10 or ±20, and n or n − 1 in a whitening over all tokens of a batch.
    """

    framework: str
    options: str
    """Every option that matters and is not the default in all of these releases."""
    since: str
    """The first release that computes the point so; with `≤` before it: the oldest that was
    read, and an older one may too."""
    until: str | None = None
    """The last such release; None: still so in the newest that was read."""
    note: str = ""
    """Exceptions, traps and what other releases or options compute."""
    checked: str = "wheel"
    """`wheel` or `git tag`: the releases on both sides of each bound were read. `executed`: the
    function that changed was run as well, from the releases' own source."""


NEWEST_READ: Mapping[str, str] = {
    "TRL": "1.16.0",
    "Liger Kernel": "0.8.5",
    "verl": "0.9.1",
    "OpenRLHF": "0.11.2",
    "SkyRL": "skyrl 0.4.0",
    "AReaL": "1.0.4",
    "ms-swift": "4.6.0",
    "Oat": "0.2.4",
    "Unsloth": "2026.10.9",
    "NeMo-RL": "v0.7.0",
    "slime": "v0.3.1",
    "ROLL": "v0.3.0",
    "tunix": "v0.1.7",
    "prime-rl": "v0.8.1.dev67",
    "open-instruct": "v0.3.0",
    "tinker": "0.38.0",
}
"""The newest release of each framework that was read. Unsloth's is that of unsloth_zoo, tinker's
that of its client. Of NeMo-RL, slime, ROLL, open-instruct and tunix a snapshot after that tag was
read too, of August 2026."""
