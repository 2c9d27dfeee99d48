"""Sanitised text: no character controls the terminal, hides, or looks like another one."""

import re
import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tui_agent.protocol.visible_text import EMOJI_PARTS, SILENT, TYPOGRAPHY, WRITING, escape_of, is_invisible
from tui_agent.ui.app.base_app import plain
from tui_agent.ui.text.sanitiser import (
    LONG_BLANK,
    TAB_SIGN,
    foreign_scripts,
    one_line,
    sanitise,
    sanitise_for_copies,
    settle,
    visible,
    visible_summary,
    with_escapes,
)

AWKWARD = (
    "\\\n\t \r\x1b[]PX^_;?m\x07\x9b\x9c\x9d\u202e\u200b\u200d\ufe0f\u00a0\u2028\ufeff\U000e0041\ue000\u0301éеa0xuUn{}"
    "日👍\ud800⇥↪\u1100\u1161"
)
awkward_text = st.text(st.sampled_from(AWKWARD) | st.characters(), max_size=60)
backslash_text = st.text(st.sampled_from("\\\\\\ nxuU{}0123456789abcdef\n\t\x1b\u202e⇥"), max_size=30)


@table(
    ("text", "shown"),
    [
        ("plain [bold]text[/] $5", "plain [bold]text[/] $5"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bPq#0;2\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"),
        ("a\x1b]0;never ended\nb", "a\nb"),
        ("say \u00e2\u20ac\u0153hi\u00e2\u20ac\x9d and the rest", "say \u00e2\u20ac\u0153hi\u00e2\u20ac and the rest"),
        ("\x1b[31;1mred\x1b[0m \x1b[2J\x1b[?25lx", "red x"),
        ("\x9b31mred", "red"),
        ("a\x1bcb\x1b(0c\x1b7d", "abcd"),
        ("bell\x07 del\x7f back\x08 nul\x00", "bell del back nul"),
        ("one\r\ntwo\rthree\x0bfour\x0cfive\x85six", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("safe\u202efdp.exe", "safe\\u202efdp.exe"),
        ("a\u200bb\ufeffc\u2066d\u00ade", "ab\\ufeffc\\u2066de"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\ue000 \U000e0041 \ud83d \U000e0100 \u0378", "\\ue000 \\U000e0041 \\ud83d  \\u0378"),
        ("a\u2003b\u1680c\u3164d", "a b\\u1680c\\u3164d"),
        ("prix\u00a0: 5\u202f€ 日\u3000本", "prix : 5 € 日  本"),
        ("⚠\ufe0f ok 👨\u200d👩\u200d👧", "⚠ ok 👨👩👧"),
        ("a\u200db", "a\\u200db"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_sanitise_drops_control_sequences_and_shows_hidden_characters(text: str, shown: str) -> None:
    assert sanitise(text) == shown


@table(
    ("sequence", "shown"),
    [
        ("👩\u200d💻", "👩💻"),
        ("👍🏽", "👍"),
        ("🤦🏼\u200d♂\ufe0f", "🤦♂"),
        ("🧑🏿\u200d🤝\u200d🧑🏻", "🧑🤝🧑"),
        ("🇩🇪 🇫", "DE F"),
        ("a🏽🏽", "a\\U0001f3fd"),
    ],
)
def test_an_emoji_sequence_has_the_same_width_in_every_terminal(sequence: str, shown: str) -> None:
    assert sanitise(sequence) == shown


@given(st.text(st.sampled_from("👍👩❤🏳🌈♂🏽🏿🇩🇪\u200d\ufe0fa1 #*")))
def test_no_neighbour_changes_the_width_of_a_character(text: str) -> None:
    for shown in (sanitise(text), visible(text)):
        assert not EMOJI_PARTS.intersection(shown)
        assert cell_len(shown) == sum(map(cell_len, shown))


@given(awkward_text, awkward_text)
def test_sanitised_text_holds_no_control_or_format_character_whatever_its_neighbours(first: str, second: str) -> None:
    first = first.rstrip("\r")
    shown = sanitise(first)

    categories = {unicodedata.category(character) for character in shown if character != "\n"}
    assert categories.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    assert {character for character in shown if unicodedata.category(character) == "Zs"} <= {" "}
    assert sanitise(shown) == shown
    assert sanitise(f"{first}\n{second}") == f"{shown}\n{sanitise(second)}"


@pytest.mark.slow
def test_every_character_that_hides_is_an_escape_where_one_decides_and_never_itself_where_one_reads() -> None:
    """Codes without a character and private ones are alike: some of each will do."""
    for character in map(chr, range(sys.maxunicode + 1)):
        alike = unicodedata.category(character) in ("Cn", "Co", "Cs") and ord(character) % 97
        if not is_invisible(character) or alike or character == "\n":
            continue
        read, decided, edited = (show(f"a{character}b") for show in (sanitise, visible, with_escapes))

        assert decided == (f"a{TAB_SIGN}   b" if character == "\t" else f"a{escape_of(character)}b")
        dropped = unicodedata.category(character) == "Cc"
        kept = dict.fromkeys(SILENT, "") | TYPOGRAPHY | WRITING
        assert read == f"a{kept.get(character, escape_of(character))}b" or (dropped and character not in read)
        assert sanitise_for_copies(f"a{character}b") == (f"a{character}b" if character in SILENT else read)
        assert edited == (f"a{character}b" if character == "\t" or character in TYPOGRAPHY else decided)


@pytest.mark.slow
def test_whatever_the_last_look_takes_away_is_in_the_table() -> None:
    assert [one for one in map(chr, range(sys.maxunicode + 1)) if plain(one) != one and not is_invisible(one)] == []


@table(
    ("text", "shown"),
    [
        ("git commit -m 'x'", "git commit -m 'x'"),
        (r"sed 's/\./\n/' \ud", r"sed 's/\./\n/' \ud"),
        ("ls ", "ls\\x20"),
        ("ls   \nb", "ls\\x20{3}\nb"),
        ("ls\n", "ls\\n"),
        ("ls\n\n\n", "ls\\n{3}"),
        ("a" + " " * 80 + "b", "a\\x20{80}b"),
        ("a" + " " * (LONG_BLANK - 1) + "b", "a" + " " * (LONG_BLANK - 1) + "b"),
        ("a\tb", "a⇥   b"),
        ("\x1b[2K\u202e\u200b", "\\x1b[2K\\u202e\\u200b"),
        ("\\u202e", "\\\\u202e"),
        ("\\\u202e", "\\\\\\u202e"),
        ("echo \\n", "echo \\\\n"),
        ("p\u0430ypal", "p\\u0430ypal"),
        ("\u0441\u043e\u0440\u0443", "\u0441\u043e\u0440\u0443"),
        ("caf\u00e9", "caf\u00e9"),
        ("cafe\u0301", "cafe\\u0301"),
        ("a\u037eb \u2010f", "a\\u037eb \\u2010f"),
        ("q\u0301\u0301\u0301\u0301\u0301", "q\u0301\u0301\u0301\u0301\\u0301"),
        ("\u0301 \u0301\n\u0301", "\\u0301 \\u0301\n\\u0301"),
        ("\\\u0301", "\\\u0301"),
        ("\\\n\u0301", "\\\n\\u0301"),
        ("\u1100\u1161", "\u1100\\u1161"),
        ("a↪⇥", "a\\u21aa\\u21e5"),
    ],
)
def test_visible_shows_everything_and_leaves_plain_text_alone(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(awkward_text | backslash_text)
def test_visible_text_can_be_read_back_so_no_two_texts_look_the_same(text: str) -> None:
    shown = visible(text)

    assert read_back(shown) == text
    assert sanitise(shown).replace("\n", "") == shown.replace("\n", "")


@pytest.mark.slow
@given(awkward_text)
def test_a_long_text_is_shown_as_its_lines_are(text: str) -> None:
    body = text.strip("\n") + "x"
    long = f"{body}\n" + "日x\n" * 2_000 + "x"

    assert visible(long).startswith(visible(f"{body}\n日x"))


@table("shape", ["\n" * 300_000, " " * 300_000 + "x", "\\" * 300_000, "\x1b]" * 150_000, "\x1b[" * 9])
def test_long_and_hostile_text_takes_no_more_than_linear_time(shape: str) -> None:
    started = time.process_time()

    sanitise(shape)
    visible(shape)

    assert time.process_time() - started < 5


@given(awkward_text, st.integers(-2, 30))
def test_one_line_never_exceeds_its_width(text: str, width: int) -> None:
    row = one_line(text, width)

    assert cell_len(row) <= max(0, width)
    assert "\n" not in row


@table(
    ("text", "width", "row"),
    [
        ("short", 10, "short"),
        ("two\nlines  here", 20, "two lines here"),
        ("abcdefghij", 6, "abcde…"),
        ("日本語日本語", 6, "日本…"),
        ("日本語", 6, "日本語"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("word and more", 6, "word…"),
    ],
)
def test_one_line_is_cut_by_cells(text: str, width: int, row: str) -> None:
    assert one_line(text, width) == row


def test_settle_keeps_the_last_state_of_each_line() -> None:
    assert settle("10 %\r50 %\r100 %\ndone\r\nend") == "100 %\ndone\nend"
    assert settle("as it is\n") == "as it is\n"


def test_foreign_scripts_are_named() -> None:
    assert foreign_scripts("plain caf\u00e9") == ()
    assert foreign_scripts("ascii") == ()
    assert foreign_scripts("\u0441\u043e\u0440\u0443 \u03b1 日") == ("Cjk", "Cyrillic", "Greek")


ESCAPE = re.compile(r"x20\{(\d+)\}|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})")
LITERAL = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|n(\{\d+\})?\Z")


def read_back(shown: str) -> str:
    """Return the text that `visible` was called with."""
    ends = ""
    marker = re.search(r"(\\+)n(?:\{(\d+)\})?\Z", shown)
    if marker and len(marker[1]) % 2:
        ends = "\n" * int(marker[2] or 1)
        shown = shown[: marker.start()] + marker[1][:-1]
    text, place = "", 0
    while place < len(shown):
        run = re.compile(r"\\*").match(shown, place)
        assert run
        place = run.end()
        count = len(run[0])
        escape, literal = ESCAPE.match(shown, place), LITERAL.match(shown, place)
        if count % 2 and escape:
            text += "\\" * (count // 2)
            text += " " * int(escape[1]) if escape[1] else chr(int(escape[2] or escape[3] or escape[4], 16))
            place = escape.end()
        elif count and (literal or (place == len(shown) and ends)):
            text += "\\" * (count // 2)
            text += literal[0] if literal else ""
            place = literal.end() if literal else place
        else:
            text += "\\" * count
            if shown.startswith("⇥   ", place):
                text, place = text + "\t", place + 4
            elif place < len(shown):
                text, place = text + shown[place], place + 1
    return text + ends


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("a.py (+1 −1)", "a.py (+1 −1)"),
        ("a.py (+120 −3 everywhere)", "a.py (+120 −3 everywhere)"),
        ("a−b.py", "a\\u2212b.py"),
        ("\u202ea.py (+1 −1)", "\\u202ea.py (+1 −1)"),
    ],
)
def test_counts_in_the_summary_of_a_call_keep_their_minus(summary: str, shown: str) -> None:
    assert visible_summary(summary) == shown
