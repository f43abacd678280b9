"""TRL: steps of a `GRPOTrainer` recorded for `rlproof inspect`."""

from rlproof.integrations.trl.recording import RecordedSteps, record_steps

__all__ = ["RecordedSteps", "record_steps"]
