"""A second bash parser splits commands at the same points."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.support.examples import examples
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import (
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    Sequence,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
)

from .command_grammar import any_commands
from .shfmt_oracle import our_form, parse, their_form

EVERYDAY = Path(__file__).with_name("everyday_commands.txt").read_text("utf-8").rstrip("\n").split("\n%%\n")[1:]


def is_readable(statement: Statement) -> bool:
    """True if we claim to know the commands that run."""
    match statement:
        case Unsupported():
            return not statement.unreadable
        case SimpleCommand():
            return all(is_readable(part) for part in statement.nested)
        case Sequence() | Pipeline() | Branches():
            return all(is_readable(part) for part in statement.parts)
        case Conditional():
            return is_readable(statement.first) and all(is_readable(part) for _, part in statement.rest)
        case Subshell() | Definition():
            return is_readable(statement.body)
        case ForEach():
            return is_readable(statement.body) and all(is_readable(part) for part in statement.nested)


def check(command: str) -> None:
    ours = read_script(command)
    if not is_readable(ours):
        return
    theirs = parse(command)
    if theirs is not None:
        assert our_form(ours) == their_form(command, theirs)


@pytest.mark.parametrize("command", EVERYDAY)
def test_everyday_commands_are_split_alike(command: str) -> None:
    check(command)


@settings(max_examples=examples(400))
@given(command=any_commands)
def test_any_readable_command_is_split_alike(command: str) -> None:
    check(command)
