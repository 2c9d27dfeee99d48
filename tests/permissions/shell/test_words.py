"""Quote removal, character by character, and text that is not exactly one word."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, VARIABLE, Variable
from tui_agent.permissions.shell.words import Substitution, UnreadableError, check_expanding_text, end_of_word, lex_word


def source_of(text: str) -> str:
    return text.encode("utf-8").decode("latin-1")


def value_of(text: str) -> str:
    source = source_of(text)
    return lex_word(source, 0, len(source), {}).value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("dele\\te", "delete"),
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ("a'b'\"c\"d", "abcd"),
        ("''", ""),
        ('"a\\"b\\$c\\\\d\\`e\\n"', 'a"b$c\\d`e\\n'),
        ('"a\\\nb"', "ab"),
        ("a\\\nb", "ab"),
        ("$'a\\tb\\x41\\101\\u0042\\''", "a\tbAAB'"),
        ("$'\\\\'", "\\"),
        ("a$", "a$"),
        ('"a$"', "a$"),
        ("a$.b", "a$.b"),
        ("é'ü'\\ö", "éüö"),
        ("a#b", "a#b"),
        ("x=1", "x=1"),
    ],
)
def test_quotes_are_removed_as_bash_does(text: str, value: str) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a b",
        "a;b",
        "a|b",
        "a&b",
        "a(b",
        "a)b",
        "a<b",
        "a>b",
        "a\nb",
        "'a",
        '"a',
        "$'a",
        "a\\",
        "`a`",
        '"`a`"',
        "$a",
        "${a}",
        "$(a)",
        '"$a"',
        '"$(a)"',
        '$"a"',
        "$1",
        "$[1]",
        "$'\\d'",
        "$'\\0'",
        "$'\\xff'",
        "$'\\ud800'",
    ],
)
def test_text_the_grammar_did_not_account_for_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        value_of(text)


def test_only_unquoted_characters_are_live() -> None:
    word = lex_word("*'*'\\*{a,b}", 0, 11, {})

    assert word.value == "***{a,b}"
    assert word.live == {0, 3, 5, 7}


def test_offsets_of_live_characters_count_characters() -> None:
    source = source_of("é*")

    assert lex_word(source, 0, len(source), {}).live == {1}


def test_substitutions_become_marks() -> None:
    source = 'a$x"$y"$(ls)<(ls)'
    substitutions = {
        1: Substitution(3, VARIABLE, "x"),
        4: Substitution(6, VARIABLE, "y"),
        7: Substitution(12, UNKNOWN),
        12: Substitution(17, PIPE),
    }

    word = lex_word(source, 0, len(source), substitutions)

    assert word.value == f"a{VARIABLE}{VARIABLE}{UNKNOWN}{PIPE}"
    assert word.variables == (Variable("x", quoted=False), Variable("y", quoted=True))
    assert word.text == source
    assert not word.is_fixed


@pytest.mark.parametrize(
    ("source", "substitutions"),
    [
        ("'$x'", {1: Substitution(3, VARIABLE, "x")}),
        ('"<(a)"', {1: Substitution(5, PIPE)}),
        ("a$x", {1: Substitution(9, VARIABLE, "x")}),
    ],
    ids=["inside single quotes", "process substitution inside quotes", "beyond the word"],
)
def test_a_substitution_where_bash_sees_none_is_unreadable(source: str, substitutions: dict[int, Substitution]) -> None:
    with pytest.raises(UnreadableError):
        lex_word(source, 0, len(source), substitutions)


def test_a_word_ends_at_a_blank_or_an_operator() -> None:
    assert end_of_word("a'b c'd e", 0, 9, {}) == 7
    assert end_of_word("ab;c", 0, 4, {}) == 2
    with pytest.raises(UnreadableError):
        end_of_word("a`b`", 0, 4, {})


def test_an_incomplete_character_is_unreadable() -> None:
    with pytest.raises(UnreadableError):
        lex_word("\xc3", 0, 1, {})


def test_text_of_a_here_document_holds_only_known_substitutions() -> None:
    check_expanding_text("a 'b' \\$c $x", 0, 12, {10: Substitution(12, VARIABLE, "x")})
    for text in ("a $x", "a `b`", "$(c)"):
        with pytest.raises(UnreadableError):
            check_expanding_text(text, 0, len(text), {})
    with pytest.raises(UnreadableError):
        check_expanding_text("ab", 0, 1, {9: Substitution(10, UNKNOWN)})


@given(
    st.lists(st.sampled_from(["a", "é", "'x y'", '"p q"', "\\ ", "\\'", "$'\\t'", '"\\$"', "=", "-", "''"]), min_size=1)
)
def test_it_agrees_with_bash(pieces: list[str]) -> None:
    text = "".join(pieces)

    done = subprocess.run(["bash", "--noprofile", "--norc", "-c", f"printf %s {text}"], capture_output=True, check=True)

    assert value_of(text) == done.stdout.decode("utf-8")
