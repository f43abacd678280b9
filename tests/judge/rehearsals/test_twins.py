"""No healthy twin of the corpus, and no question, violates an identity that it can be asked."""

import pytest
from benchmarks.public_faults.reading import every
from tests.support.sampling import rarely

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.outlined import functions as outlined
from rlproof.bind.sandbox import Sandbox
from rlproof.judge.rehearsals.registry import IDENTITIES
from rlproof.probe.rehearsal import Rehearsal
from rlproof.read.driver import driver, functions
from rlproof.read.script import read

ENTRIES = [entry for entry in every() if not entry.is_run]
EACH = {id(identity): (code, identity) for code, identity in reversed(IDENTITIES.items())}


def answers(path):
    """By code and function that is called, what each identity comes to."""
    script = read(str(path))
    tree = script.source.tree
    called = dict.fromkeys(filter(None, (driver(tree, name) for name in functions(tree))))
    with Sandbox(script.source, 60.0, outlined(script)) as sandbox:
        sandbox.load()
        for name in called:
            for code, identity in EACH.values():
                try:
                    options = {"alone": identity.alone, "watch": identity.watch}
                    found = identity.judge(Rehearsal(script, sandbox, name, **options))
                except UnbindableError:
                    continue
                yield code, name, found


@pytest.mark.parametrize("entry", rarely(6, ENTRIES), ids=lambda entry: entry.name)
def test_it_violates_nothing(tmp_path, entry):
    pytest.importorskip("torch")
    path = tmp_path / "twin.py"
    path.write_text(entry.text if entry.is_question else entry.twin, encoding="utf-8")
    assert [(c, n, f.evidence) for c, n, f in answers(path) if f.holds is False] == []
