"""Places and edits in the client's units; expected numbers are counted by hand."""

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from hypothesis import example, given
from hypothesis import strategies as st
from pygls.workspace import PositionCodec

from rlproof.judge.findings import Replacement
from rlproof.lsp.text import Text
from tests.support.editor import applied

UTF16 = PositionCodec("utf-16").client_num_units
UTF8 = PositionCodec("utf-8").client_num_units


def spot(place):
    return place.line, place.character


def test_a_pair_of_surrogates_is_two_units():
    text = Text("a😀b\n  β = '😀'  \n", UTF16)
    assert [spot(text.position(1, n)) for n in range(4)] == [(0, 0), (0, 1), (0, 3), (0, 4)]
    span = text.span(2, 2)  # white space at both ends is left out: `β = '😀'` has 8 units
    assert (spot(span.start), spot(span.end)) == ((1, 2), (1, 2 + 8))


def test_bytes_where_client_and_server_agree_on_them():
    span = Text("  β = '😀'\n", UTF8).span(1, 1)  # 2 + 3 + 1 + 4 + 1 bytes
    assert (spot(span.start), spot(span.end)) == ((0, 2), (0, 2 + 11))


def test_a_mark_at_the_start_is_a_character_of_the_client_only():
    text = Text("\ufeffx = 1\n", UTF16)
    span = text.span(1, 1)
    assert (spot(span.start), spot(span.end)) == ((0, 1), (0, 6))


def test_lines_beyond_the_text_are_its_end():
    text = Text("x = 1\ny", UTF16)
    assert spot(text.position(9, 0)) == (1, 1)
    assert spot(text.span(9, 9).end)[0] == 1


def test_only_newlines_end_a_line():
    """A form feed ends none for an editor, though `str.splitlines` takes it for an end."""
    text = Text("a\x0cb\u2028c\nd\re\r\nf", UTF16)
    assert text.lines == ["a\x0cb\u2028c", "d", "e", "f"]


def test_a_replacement_has_the_newlines_of_the_document():
    text = Text("a\r\nb\r\n", UTF16)
    edit = text.edit(Replacement(2, 1, 2, 2, "c\nd"))
    assert edit.new_text == "c\r\nd"
    assert applied(text.whole, [edit]) == "a\r\nc\r\nd\r\n"


LINES = st.lists(st.sampled_from(["a", "b", "😀", "", "x = 1"]), max_size=8)
TEXTS = st.builds(lambda lines, end: end.join(lines), LINES, st.sampled_from(["\n", "\r\n"]))


@given(TEXTS, TEXTS)
@example("", "a")
@example("a", "")
@example("a", "a\n")
@example("a\n", "a")
def test_edits_make_the_other_text(before, after):
    assert applied(before, list(Text(before, UTF16).edits_to(after))) == after
