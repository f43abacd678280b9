"""The metric dictionary is well formed, and its keys stand where it says."""

import zipfile

import pytest
from tests.conformance.wheels import wheel

from rlproof.watch.vocabulary import load

VOCABULARY = load()
BY_FRAMEWORK = {
    name: [alias for m in VOCABULARY.metrics for alias in m.aliases if alias.framework == name]
    for name in VOCABULARY.read
}
WHEELS = [name for name, read in VOCABULARY.read.items() if read.wheel]


def test_every_alias_is_of_a_framework_that_was_read():
    for metric in VOCABULARY.metrics:
        assert {alias.framework for alias in metric.aliases} <= set(VOCABULARY.read)


def test_a_key_means_one_thing_in_a_framework():
    for name, aliases in BY_FRAMEWORK.items():
        keys = [alias.key for alias in aliases]
        assert len(keys) == len(set(keys)), name


def test_a_metric_has_a_unit_and_somebody_logs_it():
    for metric in VOCABULARY.metrics:
        assert metric.unit
        assert metric.aliases or metric.plain, metric.name


@pytest.mark.conformance
@pytest.mark.parametrize("framework", WHEELS)
def test_keys_stand_in_the_wheel(framework):
    read = VOCABULARY.read[framework]
    with zipfile.ZipFile(wheel(read.wheel, read.version)) as archive:
        names = archive.namelist()
        for alias in BY_FRAMEWORK[framework]:
            found = [n for n in names if n == alias.file or n.endswith(f"/purelib/{alias.file}")]
            assert found, alias.file
            assert (alias.literal or alias.key) in archive.read(found[0]).decode(), alias
