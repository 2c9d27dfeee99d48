"""The limits of a command's text, and its second reading."""

import pytest

from tui_agent.permissions.shell.grammar import MAX_BYTES, check_commands, check_text
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import Sequence, UnreadableError, Unsupported


@pytest.mark.parametrize("text", ["ls\x00", "ls\x07", "ls\r", "ls\x7f", "a" * (MAX_BYTES + 1)])
def test_a_text_that_no_command_has_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        check_text(text)


def test_commands_are_found_at_the_same_places_twice() -> None:
    text = "é=ü; ls é && rm x"
    starts = {text.index("ls"), text.index("rm")}
    check_commands(text, starts)
    for others in (starts - {text.index("rm")}, starts | {0}):
        with pytest.raises(UnreadableError):
            check_commands(text, others)


@pytest.mark.parametrize("text", ["ls )", "ls '", "if ls", "echo $(("])
def test_an_error_of_the_grammar_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        check_commands(text, {0})


def test_a_long_proper_script_is_read() -> None:
    script = read_script("git status && ls -la | head -3; " * 300)
    assert isinstance(script, Sequence)
    assert not any(isinstance(part, Unsupported) for part in script.parts)


@pytest.mark.parametrize("unit", ["a|", "a=( ", "echo x | "])
def test_a_parse_that_takes_too_long_is_given_up(unit: str) -> None:
    text = unit * (MAX_BYTES // len(unit))
    with pytest.raises(UnreadableError):
        check_commands(text, set())
