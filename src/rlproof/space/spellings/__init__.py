"""How frameworks spell the published points, release by release.

A name in a framework says little: what `dapo` divides by, or whether a standard deviation
divides at all, differs between releases of one library. Rows are in the modules of this package,
by subject; `scripts/recipes.py` writes them to docs/recipes.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.space.spellings import advantages, losses, mismatch, rows, surrogates
from rlproof.space.spellings.record import CHECKS, NEWEST_READ, Spelling

__all__ = ["CHECKS", "NEWEST_READ", "NO_SPELLING", "SPELLINGS", "Spelling", "spellings_of"]

SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    **losses.SPELLINGS,
    **surrogates.SPELLINGS,
    **rows.SPELLINGS,
    **advantages.SPELLINGS,
    **mismatch.SPELLINGS,
}
"""The spellings of each published point, by its name in `rlproof.space.published`."""

NO_SPELLING: Mapping[str, str] = {
    "gpg": "verl's adv_estimator='gpg' (0.5.0 on) scales by N / (rows with a reward other than 0) "
    "of the whole batch. The point counts rows whose centred reward is not 0: the two differ "
    "wherever a group has only equal rewards that are not 0, or a 0 beside other rewards.",
    "topr": "ROLL's pg_variant='topr' (v0.1.3 on for RLVR, v0.2.0 for agents) takes the ratio of a "
    "token, or the mean of a segment, where the paper has that of the whole completion; its side "
    "is that of the raw score, a score of 0 counted as negative; and A stands in the place of the "
    "reward. use_topr_neg_loss_coef (to v0.1.3) added a term of this kind to the PPO loss.",
}
"""Published points that no framework that was read computes, and what comes nearest."""


def spellings_of(name: str) -> tuple[Spelling, ...]:
    """The spellings of a published point; none where no framework computes it.

    Raises:
        KeyError: the name has neither spellings nor a reason for having none.
    """
    if name in NO_SPELLING:
        return ()
    return SPELLINGS[name]
