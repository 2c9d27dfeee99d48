"""Replacement works like `str.replace` but keeps the file's line endings; its errors help to correct the call."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.text_match import replace_text

TEXT = st.text("ab\n ", max_size=30)
PART = st.text("ab\n ", min_size=1, max_size=4)


@given(text=TEXT, old=PART, new=TEXT)
def test_replacing_everywhere_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    assume(old in text and old != new)

    result = replace_text(text, old, new, everywhere=True)

    assert result.text == text.replace(old, new)
    assert result.count == text.count(old)


@given(text=TEXT, old=PART, new=TEXT)
def test_replacing_the_only_place_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    places = [place for place in range(len(text)) if text.startswith(old, place)]
    assume(old != new)

    if len(places) == 1:
        assert replace_text(text, old, new, everywhere=False).text == text.replace(old, new)
    else:
        with pytest.raises(ToolError, match=f"occurs {len(places)} times" if places else "was not found|leave out"):
            replace_text(text, old, new, everywhere=False)


@given(before=TEXT, old=PART, after=TEXT, new=TEXT)
def test_a_file_with_cr_lf_keeps_cr_lf_throughout(before: str, old: str, after: str, new: str) -> None:
    assume(old != new)
    text = f"{before}\n{old}{after}"
    dos = text.replace("\n", "\r\n")

    assert replace_text(dos, old, new, everywhere=True).text == text.replace(old, new).replace("\n", "\r\n")
    assert replace_text(dos, old.replace("\n", "\r\n"), new, everywhere=True).text == (
        text.replace(old, new).replace("\n", "\r\n")
    )


def test_in_a_mixed_file_each_place_keeps_its_own_endings() -> None:
    text = "a\r\nb\r\nc\nd\ne\n"

    assert replace_text(text, "c\n", "x\ny\n", everywhere=False).text == "a\r\nb\r\nx\ny\nd\ne\n"
    assert replace_text(text, "a\n", "x\ny\n", everywhere=False).text == "x\r\ny\r\nb\r\nc\nd\ne\n"
    assert replace_text(text, "d", "x\ny", everywhere=False).text == "a\r\nb\r\nc\nx\ny\ne\n"


def test_an_edit_that_changes_nothing_is_an_error() -> None:
    with pytest.raises(ToolError, match="are the same"):
        replace_text("a\r\n", "a\r\n", "a\n", everywhere=False)


def error_of(text: str, old: str) -> str:
    with pytest.raises(ToolError) as caught:
        replace_text(text, old, "new", everywhere=False)
    return str(caught.value)


@table(
    ("text", "old", "words"),
    [
        ("x\ny\nx\n", "x", "occurs 2 times, at lines 1, 3; include more"),
        ("x\n" * 15, "x", "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 5 more"),
        ("def f():\n    pass\n", "     1\tdef f():\n     2\t    pass", "remove the line number and the tab"),
        (
            "x\n\tif a:\n\t\tpass\ny\n",
            "\n    if a:\n        pass\n",
            "lines 2 to 3 differ from it only in whitespace (they have U+0009):\n     2\t\tif a:\n     3\t\t\tpass",
        ),
        (
            "alpha = 1\nbeta = 2\nalpha2 = 3\n",
            "alpha = 9\nmore",
            "most similar to its first line:\n     1\talpha = 1\n     3\talpha2 = 3",
        ),
        ("abc\n", "zzzzzz", "nor any line similar to its first line"),
        ("abc\n", "\n\n\n", "nor any line similar to its first line"),
    ],
)
def test_the_error_helps_to_find_the_place(text: str, old: str, words: str) -> None:
    assert words in error_of(text, old)


LOOKALIKES = {
    # name: text, old_string, what is replaced
    "no-break space": ("    return a\u00a0+ b\n", "return a + b", "return a\u00a0+ b"),
    "narrow no-break space asked for": ("at 1 PM\n", "1\u202fPM", "1 PM"),
    "ideographic space": ("a\u3000b", "a b", "a\u3000b"),
    "curly quotes": ("say(“it’s”)\n", 'say("it\'s")', "say(“it’s”)"),
    "straight quotes in the file": ('x = "a"\n', "x = “a”", 'x = "a"'),
    "dashes": ("1 – 2 — 3\n", "1 - 2 - 3", "1 – 2 — 3"),
    "decomposed letters": ("cafe\u0301 = 1\n", "café", "cafe\u0301"),
    "composed letters": ("café = 1\n", "cafe\u0301", "café"),
    "Hangul": ("\u1112\u1161\u11ab", "한", "\u1112\u1161\u11ab"),
    "zero-width space": ("ab\u200bcd\n", "abcd", "ab\u200bcd"),
    "variation selector": ("⚠\ufe0f x\n", "⚠ x", "⚠\ufe0f x"),
    "characters of tags": ("a\U000e0041b\n", "ab", "a\U000e0041b"),
    "filler and direction": ("a\u3164b\u202e\n", "ab", "a\u3164b"),
    "blank of another script": ("a\u2800b\n", "a b", "a\u2800b"),
    "mark at the start": ("a\n\ufeffb = 1", "a\nb", "a\n\ufeffb"),
    "with CR LF": ("x\r\na\u00a0b\r\n", "x\na b", "x\r\na\u00a0b"),
}


def test_the_only_text_that_looks_equal_is_replaced_and_named() -> None:
    wrong: list[str] = []
    for name, (text, old, there) in LOOKALIKES.items():
        try:
            done = replace_text(text, old, "NEW", everywhere=False)
        except ToolError as error:
            wrong.append(f"{name}: {error}")
            continue
        if done.text != text.replace(there, "NEW") or "the file had" not in done.note or "U+" not in done.note:
            wrong.append(f"{name}: {done}")
    assert wrong == []


def test_several_texts_that_look_equal_are_named_by_their_code_points() -> None:
    words = error_of("a\u00a0b\nx\na\u202fb\n", "a b")

    assert "2 places look equal to it" in words
    assert "line 1: U+00A0 NO-BREAK SPACE instead of U+0020 SPACE; line 3: U+202F NARROW NO-BREAK SPACE" in words
    assert replace_text("a\u00a0b a\u00a0b", "a b", "c", everywhere=True).text == "c c"


def test_forms_of_letters_and_letters_of_another_alphabet_are_named() -> None:
    cases = {
        ("p\u0430ss = 1", "pass = 1"): "U+0430 CYRILLIC SMALL LETTER A instead of U+0061 LATIN SMALL LETTER A",
        ("x… y", "x... y"): "U+2026 HORIZONTAL ELLIPSIS",
        ("x... y", "x… y"): "instead of U+2026 HORIZONTAL ELLIPSIS",
        ("de\ufb01ne", "define"): "U+FB01 LATIN SMALL LIGATURE FI",
        ("\uff41\uff42", "ab"): "U+FF41 FULLWIDTH LATIN SMALL LETTER A instead of U+0061",
        ("\u212a", "K"): "U+212A KELVIN SIGN instead of U+004B",
        ("a\u2028b", "a\nb"): "U+2028 LINE SEPARATOR",
    }
    words = {case: error_of(f"{case[0]}\n", case[1]) for case in cases}

    assert {case: said for case, said in words.items() if f"line 1 has {cases[case]}" not in said} == {}
    assert " has " not in error_of("größer = 1\n", "größte = 12")
