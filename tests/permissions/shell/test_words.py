"""Quote removal, character by character, and text that is not exactly one word."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import PIPE, VARIABLE, Sequence, SimpleCommand, UnreadableError, Variable, Word
from tui_agent.permissions.shell.words import WordReader


def first_word(text: str) -> tuple[Word, int]:
    """Return the first word of a text without commands inside, and its end."""
    return WordReader(text, lambda at, closing: (Sequence(()), text.index(closing, at) + 1)).word(0, [])


def value_of(text: str) -> str:
    word, end = first_word(text)
    if end < len(text):
        raise UnreadableError("more than one word")
    return word.value


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
        '$"a"',
        "$'\\d'",
        "$'\\0'",
        "$'\\xff'",
        "$'\\ud800'",
    ],
)
def test_text_that_is_not_one_word_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        value_of(text)


def test_only_unquoted_characters_are_live() -> None:
    word, _ = first_word("*'*'\\*{a,b}é*")

    assert word.value == "***{a,b}é*"
    assert word.live == {0, 3, 5, 7, 9}


def test_expansions_become_marks() -> None:
    word, _ = first_word('a$x"$y"$(ls)<(ls)')

    assert word.value == f"a{VARIABLE}{VARIABLE}{VARIABLE}{PIPE}"
    assert word.variables == (Variable("x", quoted=False), Variable("y", quoted=True), Variable("(7", quoted=False))
    assert word.text == 'a$x"$y"$(ls)<(ls)'
    assert not word.is_fixed


def test_quotes_hide_expansions() -> None:
    assert value_of("'$x'") == "$x"
    assert value_of('"<(a)"') == "<(a)"


def test_a_word_ends_at_a_blank_or_an_operator() -> None:
    assert first_word("a'b c'd e")[1] == 7
    assert first_word("ab;c")[1] == 2


def test_text_of_a_here_document_holds_expansions_but_no_quotes() -> None:
    def commands(body: str) -> int:
        script = read_script(f"cat <<EOF\n{body}\nEOF")
        assert isinstance(script, Sequence)
        assert isinstance(script.parts[0], SimpleCommand)
        return len(script.parts[0].nested)

    assert commands("a 'b' \\$(c) $x ${y}") == 0
    assert commands("it's $(c)") == 1


@given(
    st.lists(st.sampled_from(["a", "é", "'x y'", '"p q"', "\\ ", "\\'", "$'\\t'", '"\\$"', "=", "-", "''"]), min_size=1)
)
def test_it_agrees_with_bash(pieces: list[str]) -> None:
    text = "".join(pieces)

    done = subprocess.run(["bash", "--noprofile", "--norc", "-c", f"printf %s {text}"], capture_output=True, check=True)

    assert value_of(text) == done.stdout.decode("utf-8")
