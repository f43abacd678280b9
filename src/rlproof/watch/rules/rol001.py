"""ROL001: the advantages of a dump are not what its rewards make them."""

from __future__ import annotations

from rlproof.faults.model import Severity
from rlproof.watch.rules.leak import Advantages
from rlproof.watch.rules.model import Rule

RULE = Rule(
    code="ROL001",
    name="dump-advantages-of-the-batch",
    severity=Severity.ERROR,
    about="dump",
    summary="advantages in a rollout dump leak across prompts, or have the wrong sign",
    remedy="take mean and std over each group of completions of one prompt",
    start=Advantages,
    needs=(),
    faults=("ADV001", "ADV015"),
)
