"""`rlproof inspect` for rollout dumps beyond one machine: on Ray Data, and on Spark.

Three stages. Where the rows lie, each becomes eight numbers, so that no text travels; these are
brought together by step; each partition becomes a `Partial`, and `combine` judges them all, where
the function was called. What must hold for the report to be that of one pass is in
`rlproof.watch.partial`. Workers need rlproof and pyarrow installed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rlproof.errors import ConfigError
from rlproof.watch.facts import Facts
from rlproof.watch.inspect import Inspection
from rlproof.watch.partial import Partial, combine, gather, inspect_partition
from rlproof.watch.readers.items import Sample
from rlproof.watch.readers.samples import is_sample, sample

if TYPE_CHECKING:
    import pyarrow as pa
    import pyspark.sql
    import ray.data

__all__ = ["Partial", "combine", "inspect_partition", "inspect_ray", "inspect_spark"]

_ROW = "_rlproof_row"
"""Where Spark's rows get their place in the dump."""
_FIELDS = (("step", "float64"), ("part", "int64"), ("place", "int64"), ("prompt", "int64"),
           ("completion", "int64"), ("length", "int64"), ("reward", "float64"),
           ("advantage", "float64"))  # fmt: skip
_SPARK = ("step double, part long, place long, prompt long, completion long, length long, "
          "reward double, advantage double")  # fmt: skip
_NONE = -1
"""The length of a row that is no completion."""


def inspect_ray(
    dataset: ray.data.Dataset,
    facts: Facts | None = None,
    path: str = "Ray dataset",
    partitions: int = 64,
) -> Inspection:
    """Inspect a rollout dump that is a dataset of Ray, on all machines of its cluster.

    Args:
        dataset: rows as verl or TRL dumps them, such as `ray.data.read_json(path, lines=True)`.
        facts: what the run declares.
        path: a name for the report.
        partitions: into how many parts the steps are brought together; one of them must fit into
            a worker's memory, at some 300 bytes a completion.

    Raises:
        ConfigError: `partitions` is not positive.
    """
    _positive(partitions)
    numbers = dataset.map_batches(
        _compact, batch_format="pyarrow", fn_kwargs={"partitions": partitions}
    )
    grouped = numbers.groupby("part", num_partitions=partitions)
    found = grouped.map_groups(_partial, batch_format="pyarrow")
    return combine(_partials(row["partial"] for row in found.iter_rows()), facts, path)


def inspect_spark(
    frame: pyspark.sql.DataFrame,
    facts: Facts | None = None,
    path: str = "Spark frame",
    partitions: int = 64,
) -> Inspection:
    """Inspect a rollout dump that is a data frame of Spark, classic or Connect.

    Args:
        frame: rows as verl or TRL dumps them, such as `spark.read.json(path)`.
        facts: what the run declares.
        path: a name for the report.
        partitions: see `inspect_ray`.

    Raises:
        ConfigError: `partitions` is not positive.
    """
    _positive(partitions)
    from pyspark.sql import functions

    placed = frame.withColumn(_ROW, functions.monotonically_increasing_id())

    def compact(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _compact(batch, partitions).to_batches()

    def partial(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _encoded(_gathered(batches)).to_batches()

    numbers = placed.mapInArrow(compact, _SPARK).repartition(partitions, "part")
    found = numbers.sortWithinPartitions("step", "place").mapInArrow(partial, "partial binary")
    return combine(_partials(row["partial"] for row in found.toLocalIterator()), facts, path)


def _positive(partitions: int) -> None:
    if partitions < 1:
        raise ConfigError(f"partitions is {partitions}, expected 1 or more")


def _compact(rows: pa.Table | pa.RecordBatch, partitions: int) -> pa.Table:
    """Of each row its step, the partition of that, its place where it has one, and five numbers."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name, _ in _FIELDS}
    for row in rows.to_pylist():
        place = row.pop(_ROW, 0)
        one = sample(row, 0) if is_sample(row) else Sample(0.0, 0, 0, _NONE, None, None, 0)
        step = one.step or 0.0
        values = (step, hash(step) % partitions, place, _signed(one.prompt),
                  _signed(one.completion), one.length, one.reward, one.advantage)  # fmt: skip
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    arrays = [pa.array(columns[name], getattr(pa, kind)()) for name, kind in _FIELDS]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in _FIELDS])


def _signed(digest: int) -> int:
    """The same 64 bits for engines without unsigned numbers."""
    return digest - 2**64 if digest >= 2**63 else digest


def _partial(numbers: pa.Table) -> pa.Table:
    """The `Partial` of a partition, as one row."""
    return _encoded(_gathered([numbers]))


def _gathered(batches: Iterable[pa.Table | pa.RecordBatch]) -> Partial:
    others = 0

    def samples() -> Iterator[Sample]:
        nonlocal others
        for batch in batches:
            for row in batch.to_pylist():
                if row["length"] == _NONE:
                    others += 1
                    continue
                yield Sample(
                    row["step"], row["prompt"] % 2**64, row["completion"] % 2**64, row["length"],
                    row["reward"], row["advantage"], 0,
                )  # fmt: skip

    steps = gather(samples())
    return Partial(steps, others)


def _encoded(partial: Partial) -> pa.Table:
    import pyarrow as pa

    return pa.table({"partial": pa.array([pickle.dumps(partial)], pa.binary())})


def _partials(encoded: Iterable[bytes]) -> Iterator[Partial]:
    """Results of this job's own workers, which is why they are unpickled."""
    for raw in encoded:
        yield pickle.loads(raw)
