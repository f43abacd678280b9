"""Dumps on Ray and on Spark, both for real and on this machine: the report of one pass."""

import os
import sys
from dataclasses import fields

import pytest
from tests.support.dumps import rows, write

from rlproof.errors import ConfigError
from rlproof.integrations.partitions import inspect_ray, inspect_spark
from rlproof.watch.command import inspect_path
from rlproof.watch.facts import facts_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FACTS = facts_of({"objective": "grpo"})
FAULTS = ["batch", "repeated"]


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("ray.data", reason="Ray Data is not installed")
    paths = os.pathsep.join(filter(None, sys.path))  # the workers import what this process does
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": paths}})  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        session = (
            sql.SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .getOrCreate()
        )
    except Exception as error:
        pytest.skip(f"Spark does not start here: {error}")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(params=FAULTS)
def dump(request, tmp_path):
    """Two files, so that there is more than one block."""
    entries = rows(70, request.param)
    half = len(entries) // 2 - 7  # within a step
    folder = tmp_path / "dump"
    folder.mkdir()
    write(folder / "1.jsonl", entries[:half])
    write(folder / "2.jsonl", entries[half:])
    return folder


def same(one, other):
    for field in fields(one):
        if field.name not in ("path", "kind"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name


def test_on_ray(ray, dump):
    one = inspect_path(str(dump), ("objective=grpo",))
    data = ray.data.read_json(str(dump), lines=True, file_extensions=None)
    same(one, inspect_ray(data, FACTS, partitions=5))


def test_on_spark(spark, dump):
    one = inspect_path(str(dump), ("objective=grpo",))
    same(one, inspect_spark(spark.read.json(str(dump)), FACTS, partitions=5))


def test_rows_that_are_no_completions_on_ray(ray):
    shown = inspect_ray(ray.data.from_items([{"loss": 0.5}, {"loss": 0.25}]))
    assert shown.exit_code == 5
    assert shown.skipped[-1][0] == "2 rows"


def test_no_partitions():
    for inspect in (inspect_ray, inspect_spark):
        with pytest.raises(ConfigError, match="partitions is 0"):
            inspect(None, partitions=0)
