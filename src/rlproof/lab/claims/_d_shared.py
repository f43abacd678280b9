"""What the claims on aggregation share: objectives that differ in their slot weights alone."""

from __future__ import annotations

from rlproof.lab.estimators import moments
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Objective

FIVE = Scope(length=5.0)
"""L_max of every task here."""
CENTRED = Advantage(scale="none")
NORMALISED = Advantage(scale="population-std", eps=0.0)


def objective(aggregation: str, advantage: Advantage = CENTRED) -> Objective:
    """Group-mean advantages under one aggregation, on-policy."""
    return Objective(aggregation, advantage=advantage, aggregation=aggregation)


def ascent(
    aggregation: str,
    task: Task | tuple[Task, ...],
    group_size: int,
    advantage: Advantage = CENTRED,
) -> Floats:
    """E[ĝ]; a constant aggregation divides by 5."""
    scope = FIVE if aggregation.startswith("constant") else None
    return moments(objective(aggregation, advantage), task, group_size, scope=scope).mean
