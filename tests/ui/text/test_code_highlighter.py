"""Highlighted code: every character stays, and the same code looks the same, however it was streamed."""

import re

from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import find_lexer_class_for_filename, get_all_lexers

from tests.support.table import table
from tui_agent.ui.text.code_highlighter import (
    LONGEST_LINE,
    MAX_TOKENS,
    colour_lines,
    language_of,
)

SOURCE = ["import os", "", "", "def name(a: int) -> str:", '    """Doc."""', "    return f'{a}'  # why", ""]


def test_tokens_have_styles() -> None:
    styles = {text.strip(): style for runs in colour_lines("python", SOURCE) for text, style in runs}

    assert styles["import"] == "code-keyword"
    assert styles["name"] == "code-name"
    assert styles["# why"] == "code-comment"
    assert styles['"""Doc."""'] == "code-string"


def test_the_last_line_of_a_diff_has_its_colour() -> None:
    assert colour_lines("diff", ["-old", "+new"]) == [(("-old", "removed"),), (("+new", "added"),)]


def test_unknown_and_missing_languages_are_plain() -> None:
    assert colour_lines("no-such-language", ["a = 1", ""]) == [(("a = 1", ""),), ()]
    assert colour_lines("", ["a"]) == [(("a", ""),)]


@given(
    st.sampled_from(["python", "bash", "json", "c", "html", "diff", "yaml"]),
    st.text("aB1 \"'#<>/*\n{}:-+", max_size=200),
)
def test_colours_change_no_character(language: str, code: str) -> None:
    lines = code.split("\n")

    assert ["".join(text for text, _ in runs) for runs in colour_lines(language, lines)] == lines


@table("lines", [["(" * LONGEST_LINE] * 30, ["("] * 60, ["((" * 100, "", "x = 1"] * 9])
def test_a_piece_of_very_many_tokens_is_coloured_at_its_beginning_only(lines: list[str]) -> None:
    coloured = colour_lines("python", lines)

    assert ["".join(text for text, _ in runs) for runs in coloured] == lines


def test_tokens_beyond_the_most_have_no_colour() -> None:
    line = "1," * (LONGEST_LINE // 2)
    count = MAX_TOKENS // (LONGEST_LINE + 1)

    coloured = colour_lines("python", [line] * (count + 3))

    assert [len(runs) > 1 for runs in coloured] == [True] * count + [False] * 3


def test_text_without_punctuation_is_not_code() -> None:
    words = "a " * 100

    assert colour_lines("java", [words, "int i;"]) == [((words, ""),), (("int i;", ""),)]


def test_the_name_of_a_file_has_the_language_that_pygments_finds() -> None:
    shapes = (shape for _, _, patterns, _ in get_all_lexers(plugins=False) for shape in patterns)
    names = {re.sub(r"\[(.).*?\]", r"\1", shape).replace("*", "a") for shape in shapes}
    names |= {"", "a", "new.txt", "src/a.py", "A.PY", "Makefile.am"}

    def expected(name: str) -> str:
        lexer = find_lexer_class_for_filename(name) if name else None
        return lexer.aliases[0] if lexer is not None and lexer.aliases else ""

    assert [name for name in names if language_of(name) != expected(name)] == []
