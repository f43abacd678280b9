"""Turns with an environment: what is masked, where rows end, that no id changes."""

import pytest

torch = pytest.importorskip("torch")

from rlproof.errors import ConfigError, RolloutError  # noqa: E402
from rlproof.train.rollout.batch import Row, stack  # noqa: E402
from rlproof.train.rollout.turns import Limits, converse  # noqa: E402
from rlproof.train.sampling import Sampling  # noqa: E402

END = 9


class Scripted:
    """An engine that says what is written down: for each call, the ids of its rows."""

    sampling, exact, context = Sampling(max_tokens=4), True, None

    def __init__(self, *turns):
        self.turns, self.asked, self.limits = list(turns), [], []

    def generate(self, prompts, *, limits=None):
        self.asked.append([list(p) for p in prompts])
        self.limits.append(list(limits))
        rows = [
            Row(list(p), ids[:n], [True] * len(ids[:n]), [-0.5] * len(ids[:n]), ids[:n][-1] == END)
            for p, ids, n in zip(prompts, self.turns.pop(0), limits, strict=True)
        ]
        return stack(rows, 0, version=4)


class Words:
    """A tokenizer whose ids are the lengths of words; it never gives back what it decoded."""

    def decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        return "-".join(str(n) for n in ids if n != END)

    def encode(self, text, add_special_tokens):
        assert not add_special_tokens
        return [len(word) for word in text.split()]


def test_what_the_environment_says_is_attended_to_and_masked():
    engine = Scripted([[5, END], [6, END]], [[7, END]])
    batch = converse(
        engine, [[1], [2, 3]], lambda t: [8, 8] if t.row == 0 and not t.number else None, pad=0
    )
    assert batch.tokens.tolist() == [[5, END, 8, 8, 7, END], [6, END, 0, 0, 0, 0]]
    assert batch.mask.tolist() == [[1, 1, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0]]
    assert batch.attend.tolist() == [[1] * 6, [1, 1, 0, 0, 0, 0]]
    assert batch.logps.tolist() == [[-0.5, -0.5, 0, 0, -0.5, -0.5], [-0.5, -0.5, 0, 0, 0, 0]]
    assert batch.finished.tolist() == [True, True]
    assert engine.asked == [[[1], [2, 3]], [[1, 5, END, 8, 8]]]  # ids as they were, and no others
    assert batch.prompts.tolist() == [[0, 1], [2, 3]]
    assert batch.version == 4


def test_what_an_environment_is_told():
    seen = []

    def environment(turn):
        seen.append(turn)
        return "ab cdef" if turn.number == 0 else None

    batch = converse(Scripted([[5, END]], [[7, END]]), [[1]], environment, pad=0, tokenizer=Words())
    assert batch.completions() == [[5, END, 2, 4, 7, END]]
    assert [(t.row, t.number, t.prompt, t.ids, t.text) for t in seen] == [
        (0, 0, (1,), (5, END), "5"), (0, 1, (1,), (7, END), "7"),
    ]  # fmt: skip
    assert seen[1].completion == (5, END, 2, 4, 7, END)


def test_a_turn_without_an_end_token_ends_the_row():
    called = []
    batch = converse(Scripted([[5, 5, 5, 5]]), [[1]], called.append, pad=0)
    assert batch.finished.tolist() == [False]
    assert called == []


def test_turns_are_counted():
    engine = Scripted([[5, END]], [[6, END]])
    batch = converse(engine, [[1]], lambda _: [8], pad=0, limits=Limits(turns=2))
    assert batch.completions() == [[5, END, 8, 6, END]]  # nothing is injected after the last turn
    assert batch.finished.tolist() == [True]


@pytest.mark.parametrize(
    ("tokens", "completion", "finished"),
    [
        (6, [5, END, 8, 8, 7, END], True),  # the second turn has room for two
        (5, [5, END, 8, 8, 7], False),  # for one
        (4, [5, END], False),  # for none: what would be said last is left out
        (1, [5], False),
    ],
)
def test_tokens_are_counted_with_those_of_the_environment(tokens, completion, finished):
    engine = Scripted([[5, END]], [[7, END]])
    limits = Limits(turns=2, tokens=tokens)
    batch = converse(engine, [[1]], lambda _: [8, 8], pad=0, limits=limits)
    assert batch.completions() == [completion]
    assert batch.finished.tolist() == [finished]


def failing(turn):
    raise KeyError("tool")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (failing, "failed in turn 0 of row 1: KeyError: 'tool'"),
        (lambda turn: [], r"gave \[\] in turn 0 of row 1"),
        (lambda turn: 3, "gave 3 in turn 0"),
        (lambda turn: [1.5], r"gave \[1.5\]"),
        (lambda turn: [-1], r"gave \[-1\]"),
        (lambda turn: "text", "a tokenizer for text"),
    ],
)
def test_an_environment_that_fails_is_named(environment, said):
    def second(turn):
        return environment(turn) if turn.row == 1 else None

    with pytest.raises(RolloutError, match=said):
        converse(Scripted([[5, END], [6, END]]), [[1], [2]], second, pad=0)


@pytest.mark.parametrize("wrong", [{"turns": 0}, {"tokens": -1}, {"turns": True}, {"tokens": 2.5}])
def test_wrong_limits_are_named(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Limits(**wrong)


def test_log_probs_of_all_turns_are_those_of_one_forward():
    """≤ 1e-5 nats, over turns of different rows and lengths, as for a single turn."""
    pytest.importorskip("transformers")
    from tests.support.tiny_lm import CONTEXT, tiny_lm, trained_logps

    from rlproof.train.rollout.local import LocalEngine

    model = tiny_lm()
    engine = LocalEngine(model, Sampling(max_tokens=8), eos=range(40), pad=0)

    def environment(turn):
        return [50 + turn.number] * (turn.row + 1) if turn.row < 4 else None

    limits = Limits(turns=3, tokens=36)
    batch = converse(engine, [[5, 6, 7]] * 3 + [[9] * 9] * 2, environment, pad=0, limits=limits)
    injected = (batch.attend - batch.mask).sum(1)
    assert injected[:4].max() >= 2
    assert injected[4] == 0
    assert ((trained_logps(model, batch) - batch.logps) * batch.mask).abs().max() <= 1e-5
    assert ((batch.logps != 0) <= (batch.mask > 0)).all()
    with pytest.raises(RolloutError, match=f"the model has {CONTEXT} positions"):
        converse(engine, [[1] * 30], environment, pad=0, limits=limits)
