"""The parser and its limits."""

import pytest

from tui_agent.permissions.shell.grammar import MAX_BYTES, parse
from tui_agent.permissions.shell.words import UnreadableError


def test_a_command_becomes_a_tree() -> None:
    assert parse(b"git status").type == "program"


@pytest.mark.parametrize(
    "source",
    [b"ls )", b"ls '", b"if ls", b"ls\x00", b"ls\x07", b"ls\r", b"ls\x7f", b"a" * (MAX_BYTES + 1), b"echo $(("],
)
def test_anything_else_is_unreadable(source: bytes) -> None:
    with pytest.raises(UnreadableError):
        parse(source)


def test_a_long_proper_script_is_read() -> None:
    assert not parse(b"git status && ls -la | head -3; " * 500).has_error


@pytest.mark.parametrize("unit", [b"a|", b"a=( ", b"echo x | "])
def test_a_parse_that_takes_too_long_is_given_up(unit: bytes) -> None:
    with pytest.raises(UnreadableError):
        parse(unit * (MAX_BYTES // len(unit)))
