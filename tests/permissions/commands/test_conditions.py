"""Conditions, some of which run commands from data."""

import pytest

from tui_agent.permissions.commands.builtins import bracket_reads
from tui_agent.permissions.commands.builtins import test_reads as use_of_test
from tui_agent.permissions.commands.invocation import Reads
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import UNKNOWN, VARIABLE, Sequence, SimpleCommand


def reads_of(text: str) -> Reads | None:
    statement = read_script(text)
    assert isinstance(statement, Sequence)
    [command] = statement.parts
    assert isinstance(command, SimpleCommand)
    words = [word.value.replace(VARIABLE, UNKNOWN) for word in command.words]
    return bracket_reads(words, command) if command.name == "[[" else use_of_test(words, command)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("[ ]", ()),
        ("[ x ]", ()),
        ("test -f a", ("a",)),
        ("[ -d a ]", ("a",)),
        ("[ ! -e a ]", ("a",)),
        ("[ ! x ]", ()),
        ('[ -n "$x" ]', ()),
        ('[ "$x" = y ]', ()),
        ('[ "$x" -eq 1 ]', ()),
        ("[ a -nt b ]", ("a", "b")),
        ("[ -f a -a -d b ]", ("a", "b")),
        ("[ x = y -o -f b ]", ("b",)),
        ("[[ -f a && ! -d b ]]", ("a", "b")),
        ("[[ a -nt b ]]", ("a", "b")),
        ("[[ $x == y* ]]", ()),
        ("[[ $x =~ ^a(b|c)$ ]]", ()),
        ("[[ 1 -lt 2 ]]", ()),
        ("[[ -z $x || -n $y ]]", ()),
    ],
)
def test_read_only_conditions(text: str, paths: tuple[str, ...]) -> None:
    use = reads_of(text)

    assert use is not None
    assert use.paths == paths


@pytest.mark.parametrize(
    "text",
    [
        "[ -v x ]", "test -v 'a[$(b)]'", "[ -R x ]", "[ $x = y ]", "[ $x ]", 'test "$x" "$y"', '[ -f "$x" ]',
        "[ $(a) = b ]", "test a b c d", "[ x -a -v y ]", '[ -f "$x" -a -f b ]', "test -f a -a", "test a = b = c",
        '[ "$x" -nt b ]', "[ a -x b ]", "[ <(a) = b ]", "[[ -v x ]]", "[[ $x -eq 1 ]]", "[[ 1 -lt y ]]", "[[ -f $x ]]",
        "[[ $x -nt a ]]",
    ],
)  # fmt: skip
def test_conditions_that_may_do_more(text: str) -> None:
    assert reads_of(text) is None


def test_words_that_expand_to_several_are_refused() -> None:
    statement = read_script("[ -f x* ]")
    assert isinstance(statement, Sequence)
    command = statement.parts[0]
    assert isinstance(command, SimpleCommand)

    assert use_of_test(["[", "-f", "x1", "x2", "]"], command) is None
