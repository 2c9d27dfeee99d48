"""The prelude shows text that is certain, and keeps every byte."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tui_agent.prelude.input_filter import SILENCE_SECONDS
from tui_agent.prelude.typed_input import BREAKS_TO_QUIT, TypedInput, cells

KEYS = (
    "a", "漢", "é", "\x7f", "\r", "\x1b", "[", "A", "\x03", "\x1b[200~one\x03\x03 two\x1b[201~", "\x1b[99;5u",
    "\x1b[97;1:3u", "\x1b]11;rgb:ffff/ffff/ffff\x07", "\x1bP>|x\x1b\\", "\x1b[?62;22c", "\x1b[1114112u",
)  # fmt: skip
PASTED = "\x1b[200~one\x03\x03 two\x1b[201~"


def typed(*parts: str | bytes) -> TypedInput:
    found = TypedInput()
    for part in parts:
        found.feed(part if isinstance(part, bytes) else part.encode())
    return found


@table(
    ("text", "shown"),
    [
        ("hello wörld", "hello wörld"),
        ("漢字 かな 한글", "漢字 かな 한글"),
        ("abc\x7f\x7fd", "ad"),
        ("\x7f\x7fa", "a"),
        ("/help", "/help"),
        ("one\rtwo", "two"),
        ("one\ntwo", "two"),
        ("one\x1b\rtwo", "two"),
        ("one\ttwo\x7f", "…tw"),
        ("one\x1b[Dtwo", "…two"),
        ("one\x1b[D\x7ftwo", "…two"),
        ("one\x1b[201~two", "onetwo"),
        (f"one{PASTED}two", "oneone twotwo"),
        ("one\x1b[200~a\rb\x1b[201~two", "btwo"),
        ("abc\x08d", "abd"),
        ("abc\x15def", "def"),
        ("a\x1b[97;1:3u\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?62;22cb", "ab"),
        ("\u1401QQ", "\u1401QQ"),
        ("it’s “new” — ok…", "it’s “new” — ok…"),
        ("Tiếng Việt có dấu", "Tiếng Việt có dấu"),
        ("漢字。「次」、続\u3000x", "漢字。「次」、続  x"),
        ("שלום سلام ქართ հայ สวัสดี", "שלום سلام ქართ հայ สวัสดี"),
        ("नमस्ते x", "नमस\u094dत\u0947 x"),
        ("می\u200cخ 10\u202f000", "میخ 10 000"),
        ("e\u0301x", "e\u0301x"),
        ("ok 👍 x ☀ 𝒜𝟙 ♫", "ok 👍 x ☀ 𝒜𝟙 ♫"),
        ("🇩🇪🇫🇷x 🇩 🇪", "🇩🇪🇫🇷x · ·"),
        ("👍🏽x ☝🏽 ❤️‍🔥 👩🏽‍💻 👨‍👩‍👧y 1️⃣ 🏴\U000e0067\U000e007f", "👍x ☝ ❤ 👩 👨y 1 🏴"),
        ("🏽x☰", "·x·"),
        ("draft\x03more", "more"),
        ("draft\x1b[99;5umore", "more"),
        ("draft\x1b[27;5;99~more", "more"),
        ("draft\x1b[1089;5umore", "more"),
    ],
)
def test_the_line_of_the_caret_is_shown_while_the_user_types(text: str, shown: str) -> None:
    found = typed(*text)
    found.note_silence(SILENCE_SECONDS)

    assert found.shown == shown


def test_a_full_row_shows_no_more() -> None:
    found = typed("漢字abc")
    assert found.shown_in(6) == "漢字a"
    found.feed(b"\x7f\x7fx")
    assert found.shown_in(8) == "漢字ax"
    assert [typed("🇩🇪👍").shown_in(width) for width in (2, 3, 4, 5)] == ["·", "🇩🇪", "🇩🇪", "🇩🇪👍"]


@table(
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


@table(
    ("text", "words"),
    [
        ("fix it\rand\tthen\rtest", "fix it and then test"),
        ("sent\x1b[13udropped\x03", "sent"),
        ("a\x1b[Ab\x1bxc", "abc"),
        ("\x1b[200~x\x1b]52;c;aGk=\x07\x1b[201~", "x?]52;c;aGk=?"),
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
    found = {chr(code): cells(chr(code)) for code in range(0x20, 0x30000) if chr(code).isprintable()}

    assert [each for each, width in found.items() if width >= 0 and width != cell_len(each)] == []
    assert [cells(each) for each in "\u3164🏽ि☰"] == [-1] * 4
