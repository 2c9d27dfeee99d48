"""Brace expansion, compared with bash's own."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.permissions.shell.expansion import MAX_WORDS, expand_braces
from tui_agent.permissions.shell.syntax import UNKNOWN, VARIABLE, Sequence, Variable, Word
from tui_agent.permissions.shell.words import WordReader


def expanded(text: str) -> list[str]:
    return [word.value for word in expand_braces(WordReader(text, lambda at, _: (Sequence(()), at)).word(0, [])[0])]


def by_bash(text: str) -> list[str]:
    script = f"printf '%s\\n' {text}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-f", "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "{a,b}",
        "x{a,b}y",
        "{a{b,c}}",
        "{a,b{c,d}",
        "{1..5}",
        "{01..10..3}",
        "{a..e..2}",
        "{5..1}",
        "{a,b}{c,d}",
        "{a,{b,c},d}z",
        "'{a,b}'",
        "{a\\,b,c}",
        "a{b",
        "{}",
        "{a}",
        "{1..0x}",
        "{rm,-rf,x}",
        "{-3..3..2}",
        "{1..03}",
        "{{a,b},c}",
        "}{a,b}",
        "{a,b}}",
        "{a..}",
        "{001..3}",
        "{a,b",
        '{"a,b",c}',
        "{-01..3}",
        "a,b",
        "{a,b}{",
        "{c..a}",
    ],
)
def test_it_agrees_with_bash(text: str) -> None:
    assert expanded(text) == by_bash(text)


@given(st.lists(st.sampled_from(["{", "}", ",", "a", "bc", "1", "..", "'{'", "\\,"]), min_size=1, max_size=10))
def test_it_agrees_with_bash_on_any_braces(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = expanded(text)

    assert found == [UNKNOWN] or found == by_bash(text)


@pytest.mark.parametrize("text", ["{1..100000}", "{a,b}" * 9, "{" * 65, "{" * 64 + "," * 60_000 + "}"])
def test_too_many_words_are_unknown(text: str) -> None:
    assert expanded(text) == [UNKNOWN]


def test_too_many_words_keep_a_known_prefix_and_suffix() -> None:
    assert expanded("/proc/{1..100000}/environ") == [f"/proc/{UNKNOWN}/environ"]


def test_a_word_that_may_vanish_is_unknown() -> None:
    assert expanded("{,x}") == [UNKNOWN, "x"]
    assert expanded("{x,}") == ["x", UNKNOWN]
    assert MAX_WORDS >= 100


def test_words_keep_their_live_characters_and_variables() -> None:
    names = (Variable("x", quoted=True), Variable("y", quoted=False))
    word = Word(f"{{a{VARIABLE}*,{VARIABLE}'}}", frozenset({0, 3, 4, 7}), names)

    first, second = expand_braces(word)

    assert first == Word(f"a{VARIABLE}*", frozenset({2}), names[:1])
    assert second == Word(f"{VARIABLE}'", frozenset(), names[1:])


@pytest.mark.parametrize("digits", [30, 5_000])
def test_a_range_of_long_numbers_is_unknown(digits: int) -> None:
    assert expanded(f"x{{1..{'0' * digits}{'3' * 99}}}y") == [f"x{UNKNOWN}y"]


def test_a_brace_bomb_is_not_expanded() -> None:
    assert expanded("{1..9}" * 60) == [UNKNOWN]
