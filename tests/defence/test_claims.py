"""Which claims are computed, in which order, and what a failure does."""

import pytest

from rlproof.defence import claims, worker
from rlproof.defence.claims import Computed, chapters, chosen, compute
from rlproof.defence.trainer import TrainerDefence, defend_trainer
from rlproof.errors import ConfigError
from rlproof.lab.claims.model import number
from rlproof.lab.claims.registry import find, modules


def test_ids_names_letters_and_lists_are_understood():
    assert chosen(["B4,A9"]) == ["A9", "B4"]
    assert chosen(["a9", "A9"]) == ["A9"]
    assert chosen([find("A9").name]) == ["A9"]
    assert chosen(["D"]) == [known for known in modules() if known[0] == "D"]
    assert chosen() == list(modules())


@pytest.mark.parametrize("name", ["Z9", "A99", ",", "A9,nothing-like-it"])
def test_what_is_no_claim_is_an_error(name):
    with pytest.raises(ConfigError):
        chosen([name])


@pytest.mark.slow
def test_two_processes_give_the_same_as_one():
    ids = chosen(["A1,A3,A6,A12,B2,C1,C3,D5,E10"])
    assert compute(ids, 2) == compute(ids, 1)
    assert [one.claim.id for one in compute(ids, 2)] == ids


def test_a_helper_that_dies_leaves_nothing_out(monkeypatch):
    def dies(*_):
        raise EOFError

    monkeypatch.setattr(worker, "_asked", dies)
    ids = chosen(["A1,A3,A6,C1"])
    assert [bool(numbers) for numbers, _ in worker.share(ids)] == [True] * 4


def test_the_answer_of_the_worker_is_the_claim():
    assert worker.numbers_of("A3") == (find("A3").numbers(), None)


def test_a_claim_that_raises_does_not_hold(monkeypatch):
    def broken(_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(worker, "find", broken)
    assert worker.numbers_of("A3") == ((), "ZeroDivisionError: by zero")
    one = Computed(find("A3"), (), "ZeroDivisionError: by zero")
    assert not one.holds
    assert not TrainerDefence((), (one,)).holds


def test_a_number_that_misses_is_named():
    good, bad = number("a", 1.0, 1.0, 1e-9, "proof"), number("b", 1.0, 2.0, 1e-9, "proof")
    one = Computed(find("A3"), (good, bad))
    assert one.missed == (bad,)
    assert not one.holds
    assert not Computed(find("A3")).holds, "a claim without numbers shows nothing"


def test_lines_follow_the_claims():
    defence = defend_trainer(["C3"])
    assert [one.claim.id for one in defence.computed] == ["C3"]
    assert defence.lines
    assert all("C3" in one.ground.claims for one in defence.lines)


def test_chapters_keep_the_order():
    titles = [title[0] for title, _ in chapters(compute(chosen(["C3,A3"]), 1))]
    assert titles == ["A", "C"]


@pytest.mark.slow
def test_all_claims_hold():
    defence = defend_trainer()
    assert len(defence.computed) >= 80
    assert [one.claim.id for one in defence.computed if not one.holds] == []


def test_few_claims_need_no_second_process():
    assert claims._processes(3) == 1
