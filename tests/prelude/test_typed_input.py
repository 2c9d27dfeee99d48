"""The prelude shows text that is certain, and keeps every byte."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_agent.prelude.typed_input import _NARROW, _WIDE, BREAKS_TO_QUIT, TypedInput, cells

KEYS = ("a", "漢", "é", "\x7f", "\r", "\x1b", "[", "A", "\x03", "\x1b[200~one\x03\x03 two\x1b[201~", "\x1b[99;5u")
PASTED = "\x1b[200~one\x03\x03 two\x1b[201~"


def typed(*parts: str | bytes) -> TypedInput:
    found = TypedInput()
    for part in parts:
        found.feed(part if isinstance(part, bytes) else part.encode())
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hello wörld", "hello wörld"),
        ("漢字 かな 한글", "漢字 かな 한글"),
        ("abc\x7f\x7fd", "ad"),
        ("\x7f\x7fa", "a"),
        ("/help", "/help"),
        ("one\rtwo", "one"),
        ("one\ntwo", "one"),
        ("one\ttwo\x7f", "one"),
        ("one\x1b[Dtwo", "one"),
        ("one\x1b[201~two", "one"),
        (f"one{PASTED}two", "one"),
        ("e\u0301x", "e"),
        ("ok 👍 x", "ok "),
        ("draft\x03more", ""),
        ("draft\x1b[99;5umore", ""),
        ("draft\x1b[27;5;99~more", ""),
    ],
)
def test_text_is_shown_until_a_key_whose_effect_only_the_app_knows(text: str, shown: str) -> None:
    assert typed(text).shown == shown


def test_a_character_that_comes_in_two_reads_is_shown_whole() -> None:
    whole = "漢".encode()

    assert typed(whole[:1], whole[1:]).shown == "漢"
    assert typed(b"a\xff", b"b").shown == "a"


def test_a_full_row_shows_no_more() -> None:
    found = typed("漢字abc")
    found.fit(6)
    found.feed(b"\x7f\x7fx")

    assert found.shown == "漢字a"


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("\x03\x03", 2),
        ("a\x03b\x03", 1),
        ("\x03\x1b[99;5u", 2),
        ("\x1b[27;5;99~\x1b[27;5;99~", 2),
        ("\x1b\x03\x03", 2),
        ("\x1b[200~\x03\x03", 0),
        (PASTED, 0),
        (f"{PASTED}\x03", 1),
        ("\x03\x1b[A\x03", 1),
    ],
)
def test_ctrl_c_counts_in_a_row_and_outside_of_pastes(text: str, breaks: int) -> None:
    assert BREAKS_TO_QUIT == 2
    assert typed(text).breaks == breaks


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fix it\rand\tthen\rtest", "fix it and then test"),
        ("sent\rdropped\x03", "sent"),
        ("a\x1b[Ab\x1bxc", "abc"),
        ("\x1b[200~x\x1b]52;c;aGk=\x07\x1b[201~", "x]52;c;aGk=?"),
        ("\x1b[A\x1bOB", ""),
    ],
)
def test_unsent_text_is_named_without_sequences(text: str, words: str) -> None:
    assert typed(text).words == words


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(KEYS), max_size=8),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_it_does_not_matter_how_input_is_cut_into_reads(keys: list[str], cuts: list[int]) -> None:
    data = "".join(keys).encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = [data[begin:end] for begin, end in pairwise(places)]

    cut, whole = typed(*parts), typed(data)

    assert b"".join(part for part, _ in cut.reads) == data
    assert (cut.shown, cut.breaks, cut.words, cut.size) == (whole.shown, whole.breaks, whole.words, len(data))


def test_only_silence_that_was_seen_ends_an_escape() -> None:
    found = TypedInput()
    found.note_silence(0.05)
    found.feed(b"\x1b")
    found.note_silence(0.05)
    found.note_silence(0.05)
    found.feed(b"x")

    assert found.reads == [(b"\x1b", 0.1), (b"x", 0.0)]


def test_every_character_that_is_shown_is_as_wide_as_in_the_app() -> None:
    shown = [chr(code) for first, last in (*_NARROW, *_WIDE) for code in range(first, last + 1) if cells(chr(code))]

    assert [each for each in shown if cells(each) != cell_len(each)] == []
    assert [cells(each) for each in "\x00\x7f\xad\u0300\u200b\u202e\ue000"] == [0] * 7
