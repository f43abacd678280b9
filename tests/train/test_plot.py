"""Scales, dots and panels, drawn small enough to be checked by eye."""

import pytest

from rlproof.train.plot import (
    ASCII,
    BRAILLE,
    Curve,
    area,
    charset_for,
    labels,
    nice_step,
    panel,
    ranges,
    scale_of,
    steps_scale,
    terminal,
)


def curve(*values, **more):
    return Curve("reward", "mean", values, **more)


@pytest.mark.parametrize(
    ("length", "intervals", "step"),
    # The smallest of 1, 2, 2.5, 5, 10 · 10ᵏ that is at least length / intervals.
    [(1, 4, 0.25), (1, 5, 0.2), (3, 2, 2), (60, 5, 20), (1, 1, 1), (0.07, 3, 0.025), (1e6, 1, 1e6)],
)
def test_nice_steps(length, intervals, step):
    assert nice_step(length, intervals) == pytest.approx(step)


@pytest.mark.parametrize(
    ("values", "more", "text"),
    [
        ((0.2, 0.9), {"top": 1.0}, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ((0.0, 0.33), {"percent": True}, ["0%", "10%", "20%", "30%", "40%"]),
        ((-3.0, 5.0), {}, ["-4", "-2", "0", "2", "4", "6"]),
        ((0.0, 0.0), {}, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ((0.0, 3e9), {}, ["0.00e+00", "1.00e+09", "2.00e+09", "3.00e+09"]),
        ((2e-9,), {}, ["0.00e+00", "5.00e-10", "1.00e-09", "1.50e-09", "2.00e-09"]),
    ],
)
def test_an_axis_holds_all_values_between_round_marks(values, more, text):
    one = curve(*values, **more)
    scale = scale_of(one, 4)
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert labels(scale, one.percent) == text


def test_marks_of_steps_are_whole_numbers_within_the_run():
    assert steps_scale(59, 6).ticks == (0, 10, 20, 30, 40, 50)
    assert steps_scale(2, 6).ticks == (0, 1, 2)
    assert steps_scale(0, 6).ticks == (0,)
    assert all(t == int(t) for n in range(200) for t in steps_scale(n, 6).ticks)


def test_a_column_spans_what_the_line_does_in_it():
    # Four columns over three values: 0 → 2 → 0, half a step each.
    assert ranges([0, 2, 0], 4) == [(0, 1), (1, 2), (1, 2), (0, 1)]
    # A peak isn't lost, wherever it stands in its column.
    for place in range(101):
        values = [0.0] * place + [7.0] + [0.0] * (100 - place)
        assert max(high for _, high in ranges(values, 7)) == 7.0
    assert ranges([3.0], 9) == [(3.0, 3.0)]


def test_dots_by_hand():
    # Four columns of 4 dots over 0 → 1: a value v is in row round(3 (1 − v)), so the columns hold
    # the rows (2, 3), (2), (1, 2), (0, 1). Bits: 04 + 40 and 20 make U+2864; 02 + 04 and 08 + 10
    # make U+281E.
    one = curve(0.0, 1.0)
    assert area(one, scale_of(one, 1), 2, 1, BRAILLE) == [chr(0x2864) + chr(0x281E)]
    # Two rows in ASCII, round(1 − v): below, both, above, above.
    assert area(one, scale_of(one, 1), 4, 1, ASCII) == [".:''"]


def test_a_panel():
    assert panel(curve(0.0, 1.0), 16, 3, ASCII) == [
        "reward (mean)",
        "1 +         ..:'",
        "  |   ...:'''",
        "0 +.:''",
        "  +-------------",
        "   0           1",
    ]


@pytest.mark.parametrize("width", [24, 30, 60, 80, 120])
@pytest.mark.parametrize("steps", [1, 2, 60, 5000])
@pytest.mark.parametrize("chars", [ASCII, BRAILLE])
def test_no_line_is_too_long(width, steps, chars):
    values = tuple((n * 7919 % 101) / 100 for n in range(steps))
    three = [Curve(name, "share of tokens", values, percent=True) for name in ("a", "b" * 50, "c")]
    text = terminal(three, width, chars)
    assert max(map(len, text.splitlines())) <= width
    assert text == terminal(three, width, chars)
    if chars is ASCII:
        assert text.isascii()


def test_panels_stand_side_by_side_where_there_is_room():
    three = [Curve(name, "", (0.0, 1.0)) for name in ("first", "second", "third")]
    assert "second  " in terminal(three, 80, BRAILLE)
    beside = [line for line in terminal(three, 80, BRAILLE).splitlines() if "second" in line]
    assert "third" in beside[0]
    assert "third" not in next(
        line for line in terminal(three, 60, BRAILLE).splitlines() if "second" in line
    )


def test_a_charset_that_the_encoding_has():
    assert charset_for("utf-8") is BRAILLE
    assert charset_for("ascii") is charset_for("latin-1") is charset_for(None) is ASCII
    assert charset_for("no-such-encoding") is ASCII
