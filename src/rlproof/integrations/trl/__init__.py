"""TRL: its `GRPOTrainer` recorded for `rlproof inspect`, and trained on an objective of ours."""

from rlproof.integrations.trl.objective import ProvenObjective, use_objective
from rlproof.integrations.trl.recording import RecordedSteps, record_steps

__all__ = ["ProvenObjective", "RecordedSteps", "record_steps", "use_objective"]
