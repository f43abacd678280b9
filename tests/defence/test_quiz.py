"""The reviewer's questions: their claims and numbers exist and hold; asking works."""

import io

import pytest

from rlproof import quiz
from rlproof.defence.questions import QUESTIONS
from rlproof.defence.quiz import questions
from rlproof.errors import ConfigError
from rlproof.lab.claims.registry import modules


def test_there_are_enough_and_each_rests_on_claims():
    assert 25 <= len(QUESTIONS) <= 32
    assert len({q.text for q in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert question.text.endswith("?")
        assert question.answer.endswith(".")
        assert question.numbers
        assert set(question.claims) <= set(modules())
        assert {known for known, _ in question.numbers} <= set(question.claims)


@pytest.mark.parametrize("asked", [*questions("all")], ids=lambda asked: f"question {asked.place}")
def test_every_number_exists_and_holds(asked):
    for known, number in asked.numbers():
        assert number.holds, (known, number)


@pytest.mark.parametrize("choice", ["0", "99", "-1", "four", ""])
def test_no_such_question(choice):
    with pytest.raises(ConfigError, match="from 1 to"):
        list(questions(choice))


def typed(monkeypatch, text, choice="2"):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    said: list[str] = []
    code = quiz.run(choice, 100, said.append, interactive=True)
    return code, "".join(said)


def test_one_is_asked_answered_and_graded(monkeypatch):
    code, text = typed(monkeypatch, "it is scaled\ny\n")
    assert code == 0
    assert "Is the gradient biased?" in text
    assert "(G − 1)/G" in text
    assert "0.875" in text, "the number of now"
    assert "1 of 1 as in the model answers" in text
    assert text.index("your answer") < text.index("0.875")


def test_a_wrong_answer_does_not_count(monkeypatch):
    assert "0 of 1 as in" in typed(monkeypatch, "no idea\nn\n")[1]


@pytest.mark.parametrize("text", ["q\n", ""])
def test_it_stops_on_request_and_at_the_end_of_input(monkeypatch, text):
    code, said = typed(monkeypatch, text, "all")
    assert code == 0
    assert said.count("your answer") == 1
    assert "0.247271" not in said


def test_without_a_terminal_everything_is_printed():
    said: list[str] = []
    assert quiz.run("13", 80, said.append, interactive=False) == 0
    assert "your answer" not in "".join(said)
    assert "C10" in "".join(said)


def test_a_number_that_misses_is_an_error(monkeypatch):
    from dataclasses import replace

    from rlproof.defence import quiz as computed
    from rlproof.lab.claims.registry import find

    wrong = tuple(replace(n, expected=n.value + 1 if isinstance(n.value, float) else (9.0,))
                  for n in find("A3").numbers())  # fmt: skip
    monkeypatch.setattr(computed, "_computed", lambda known: wrong)
    said: list[str] = []
    assert quiz.run("2", 80, said.append, interactive=False) == 1
    assert "MISS" in "".join(said)
