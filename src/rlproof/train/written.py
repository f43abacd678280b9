"""What a run writes beside its checkpoints: metrics, records, completions, and what is said.

Shapes: N rows, T slots.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlproof.space.objective import Objective
from rlproof.train.config import TrainConfig
from rlproof.train.data import Prompt
from rlproof.train.distributed import Ranks
from rlproof.train.first_step import facts, judged, record_of, refuse
from rlproof.train.metrics import Jsonl, Logger, cut_to, loggers
from rlproof.train.step import Update
from rlproof.watch.record import Recorder

METRICS, RECORDS, COMPLETIONS = "metrics.jsonl", "steps.rlproof.jsonl", "completions.jsonl"
FIRST = "first-step.rlproof.jsonl"
LOGS = (METRICS, RECORDS, COMPLETIONS)
"""Files that grow; a resumed run cuts them back to where the checkpoint was."""
Say = Callable[[str], None]


class Written:
    """The logs of a run; processes other than the main one write nothing.

    Args:
        config: the run.
        objective: what is trained.
        vocabulary: V.
        ranks: the processes.
        sizes: bytes of the logs at the checkpoint that the run goes on from.
        say: takes lines about what is worth knowing.

    Raises:
        ConfigError: a logger's package is not installed.
    """

    def __init__(
        self,
        config: TrainConfig,
        objective: Objective,
        vocabulary: int,
        ranks: Ranks,
        sizes: Mapping[str, int],
        say: Say,
    ) -> None:
        self.config, self.objective, self.ranks, self.say = config, objective, ranks, say
        self.facts = facts(config, objective, vocabulary)
        self.folder = Path(config.run.folder)
        self.recorder: Recorder | None = None
        self._noted: dict[str, int] = {}
        self._loggers: list[Logger] = []
        every = config.record.every
        if every:
            self.recorder = Recorder(self.folder / RECORDS, every=every)
        if ranks.main:
            for name in LOGS:
                cut_to(self.folder / name, sizes.get(name, 0))
            self._metrics = Jsonl(self.folder / METRICS)
            self._loggers = [self._metrics, *loggers(config, self.folder)]

    def judges(self, step: int) -> bool:
        """Whether this step is the first one, and to be judged."""
        return self.config.record.check_first_step and step == 0

    def wants_entropy(self, step: int) -> bool:
        """Whether entropies of this step are logged or recorded."""
        every = self.config.metrics.entropy
        due = self.recorder is not None and self.recorder.due(step)
        return due or self.judges(step) or (every > 0 and step % every == 0)

    def record(self, step: int, update: Update, number: int) -> None:
        """Record an update where one is due, and judge the first step by it.

        Raises:
            FirstStepError: the first step is to be judged, and has a finding of severity error.
        """
        first = self.judges(step)
        due = self.recorder is not None and self.recorder.due(step)
        if not first and not due:
            return
        given = record_of(self.objective, update, number, self.facts, self.ranks)
        if not self.ranks.main:
            return
        if due and self.recorder is not None:
            self.recorder.record(step=step, **given)
        if first:
            self._judge(step, number, given)

    def _judge(self, step: int, number: int, given: dict[str, Any]) -> None:
        path = self.folder / FIRST
        if number == 0:
            path.unlink(missing_ok=True)
        recorder = Recorder(path, every=1)
        recorder.record(step=step, **given)
        recorder.close()
        for line in refuse(judged(path), path):
            self.say(f"note: first step: {line}")

    def step(self, step: int, values: dict[str, float]) -> None:
        """The metrics of a step, and a word where it is of no use."""
        if not self.ranks.main:
            return
        for logger in self._loggers:
            logger.log(step, values)
        if values["adv_max"] == values["adv_min"] == 0:
            self._note(
                step,
                "all advantages are 0, the rewards of each group are equal; there is nothing to "
                "learn from it",
            )
        if values["truncated_frac"] == 1:
            dropped = self.objective.masks.truncated == "dropped"
            effect = "all are masked out: nothing is learnt" if dropped else "no end is learnt"
            self._note(
                step,
                f"every completion was cut off at {self.config.sampling.max_tokens} tokens, "
                f"{effect}; raise [sampling] max_tokens if completions should end",
            )

    def _note(self, step: int, text: str) -> None:
        """Say it at the first step, the second, the fourth, …: it is in the metrics of each."""
        count = self._noted[text] = self._noted.get(text, 0) + 1
        if count & (count - 1) == 0:
            again = f" (so far at {count} steps)" if count > 1 else ""
            self.say(f"note: step {step}: {text}{again}")

    def completions(
        self, step: int, chosen: Sequence[Prompt], texts: Sequence[Any], rewards_N: Sequence[float]
    ) -> None:
        """Some completions of a step, as a rollout dump that `rlproof inspect` reads."""
        count = self.config.metrics.completions
        if not count or not self.ranks.main:
            return
        with (self.folder / COMPLETIONS).open("a", encoding="utf-8") as file:
            rows = zip(chosen[:count], texts, rewards_N, strict=False)
            for prompt, text, reward in rows:
                line = {"step": step, "prompt": prompt.said, "completion": text, "reward": reward}
                file.write(json.dumps(line) + "\n")

    def sizes(self) -> dict[str, int]:
        """Bytes of each log, after everything was written to the disk."""
        self._metrics.sync()
        if self.recorder is not None:
            self.recorder.close()  # it opens again by itself
        found = {name: self.folder / name for name in LOGS}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in found.items()}

    def close(self) -> None:
        """Write everything out."""
        for logger in self._loggers:
            logger.close()
        if self.recorder is not None:
            self.recorder.close()
