"""One table defines the escaped characters, and all output uses it (safety promise 17)."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.examples import sample
from tests.support.table import table
from tui_agent.cli.process import controlling_terminal
from tui_agent.protocol.visible_text import (
    SEQUENCE,
    TYPOGRAPHY,
    escape_of,
    escaped,
    escaped_json,
    is_invisible,
    split_sequences,
    without_sequences,
)

FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
SELECTORS = [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
HIDING = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
HEART, FAMILY, KEYCAP = "\u2764\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "1\ufe0f\u20e3"
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
awkward_text = st.text(
    st.sampled_from(
        "\\\n\t \r\x1b\x9b\x00\u202e\u200b\u200c\u200d\ufe0f\ufe0e\u034f\u3164\u00a0\u2800\U000e0041\ud800❤👩"
    )
    | st.characters(exclude_categories=()),
    max_size=60,
)


def every_character() -> Iterator[str]:
    return map(chr, range(sys.maxunicode + 1))


def must_be_shown(character: str) -> bool:
    """True if the safety promise names the character; a second implementation, independent of the table."""
    category = unicodedata.category(character)
    hides = category in HIDING or (category == "Zs" and character != " ")
    return hides or character in FILLERS or ord(character) in SELECTORS


@pytest.mark.slow
def test_the_table_has_exactly_the_hidden_characters() -> None:
    assert [one for one in every_character() if is_invisible(one) != must_be_shown(one)] == []


@pytest.mark.slow
def test_every_character_of_the_table_is_escaped_in_text_and_in_json() -> None:
    for characters in batches(filter(must_be_shown, every_character())):
        text = "".join(f"a{one}b" for one in characters)
        as_text, as_json = escaped(text), escaped_json(text)

        kept = {one for one in characters if one in "\n\t" or one in TYPOGRAPHY}
        assert as_text == "".join(f"a{one if one in kept else escape_of(one)}b" for one in characters)
        assert as_json == (
            text if text[1] in "\n\t" else "".join(f"a{json.dumps(one)[1:-1]}b" for one in characters)
        ) or (text[1] == "\x7f" or ord(text[1]) < 0x20)
        assert set(characters).isdisjoint(as_json) or characters in ("\n", "\t")


def batches(characters: Iterable[str]) -> Iterator[str]:
    """Yield private and unassigned characters 256 at a time, since there are a million, and each other one alone."""
    many: list[str] = []
    for one in characters:
        if unicodedata.category(one) in ("Cn", "Co"):
            many.append(one)
        else:
            yield one
    yield from sample(["".join(many[start : start + 256]) for start in range(0, len(many), 256)], 8)


@pytest.mark.slow
def test_no_other_character_is_changed() -> None:
    text = "".join(one for one in every_character() if not must_be_shown(one))

    assert escaped(text) == text
    assert escaped_json(text) == text


@table("text", [HEART, FAMILY, KEYCAP, PERSIAN, "👍🏽", "prix\u00a0: 5\u202f€ 日\u3000本", "ü 漢字 🙂\n\tin"])
def test_emoji_joined_words_and_typography_stay(text: str) -> None:
    assert escaped(text) == text


@table(
    ("text", "shown"),
    [
        ("a\ufe0f", "a\\ufe0f"),
        (f"{HEART}\ufe0f", f"{HEART}\\ufe0f"),
        ("\u2764\U000e0100", "\u2764\\U000e0100"),
        ("👩\u200d", "👩\\u200d"),
        ("👩\u200d\u200d👩", "👩\\u200d\\u200d👩"),
        ("a\u200cb", "a\\u200cb"),
        ("\u2800\ufe0f", "\u2800\\ufe0f"),
        ("\U0001f3f4\U000e0067", "\U0001f3f4\\U000e0067"),
        ("a\x1b[2Jb\x9bc\r\nd\re\u202ef\ud83dg", "a\\x1b[2Jb\\x9bc\nd\\re\\u202ef\\ud83dg".replace("\\r", "\\x0d")),
    ],
)
def test_joiners_outside_a_sequence_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(awkward_text)
@example(f"{HEART}{FAMILY}\U0001f0c0\ufe0f")
def test_escaped_text_has_no_hidden_character(text: str) -> None:
    shown = escaped(text)

    rest = split_sequences(shown)
    assert [one for one in rest if must_be_shown(one) and one not in "\n\t" and one not in TYPOGRAPHY] == []
    assert escaped(shown) == shown


@given(awkward_text)
def test_escaped_json_keeps_its_meaning(text: str) -> None:
    line = escaped_json(json.dumps([text], ensure_ascii=False))

    assert json.loads(line) == [text]
    assert not any(map(must_be_shown, line))


@table("character", ["\x1b", "\x9b", "\u202e", "\ufe01", "\u034f", "\u3164", "\U000e0041", "\ud800"])
def test_commands_print_escapes(character: str, capsys: pytest.CaptureFixture[str]) -> None:
    for say in (controlling_terminal.say, controlling_terminal.say_error):
        say(f"a{character}b")
        assert "".join(capsys.readouterr()) == f"a{escape_of(character)}b\n"
    controlling_terminal.say_json({"a": f"{character} ü"})
    assert capsys.readouterr().out == f'{{"a": "{json.dumps(character)[1:-1]} ü"}}\n'


@table(
    ("text", "left"),
    [
        (
            "\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1bPq\x1b\\\x1b(Bx",
            "red link x",
        ),
        ("a\x1b]0;never ended\nb", "a0;never ended\nb"),
        ("a\x1b[31", "a31"),
        ("a\x1bPnever\x1b[0m ended", "anever ended"),
        ("a\x1b", "a\x1b"),
        # Typographic quotes that were encoded twice.
        ("say \u20ac\x9d and the rest \x9c", "say \u20ac\x9d and the rest \x9c"),
        ("\x9b31mred\x90", "\x9b31mred\x90"),
    ],
)
def test_a_text_loses_its_control_sequences_and_nothing_else(text: str, left: str) -> None:
    assert without_sequences(text) == left


@table("shape", ["\x1b]", "\x9d", "\x1b[", "\x1bP\x9d", "\x9dx"])
def test_many_unended_sequences_take_linear_time(shape: str) -> None:
    text = shape * 100_000

    without_sequences(text)
    SEQUENCE.sub("", text)
