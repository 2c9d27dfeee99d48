"""Patterns in the output of substitutions: unquoted, the shell would expand them and list directories."""

import re
from collections.abc import Sequence

from tui_agent.permissions.commands.catalogue import group
from tui_agent.permissions.shell.expansion import OPEN, Bindings, base_name, is_computed_name
from tui_agent.permissions.shell.syntax import (
    UNKNOWN,
    Conditional,
    Pipeline,
    SimpleCommand,
    Statement,
    Subshell,
    Word,
    names,
)
from tui_agent.permissions.shell.syntax import Sequence as Statements

_PLAIN_GIT = names("rev-parse describe ls-files rev-list symbolic-ref merge-base branch diff")
_NAMES_ONLY = names("--name-only --show-current")
_GIVES_PATTERN = re.compile(r"\$\{[#!]?\w+(?::?[-+=]|/)[^}]*[*?\[\\$`'\"{]|\$\{!|\$\{\w+@")
"""A parameter expansion with text that may be a pattern, or with the value of another variable."""
_ECHOES = names("echo printf basename dirname")
_PATTERN = frozenset("*?[\\")


def may_expand_to_anything(words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> bool:
    """True if a word has an unquoted substitution or variable whose value may be a pattern for any directory.

    Args:
        words: the words of a command or of a loop.
        nested: the commands inside them.
        bindings: the known values of the script's variables.
    """
    open_names = [variable.name for word in words for variable in word.variables if not variable.quoted]
    opened = [word for word in words if any(word.value[at] == UNKNOWN for at in word.live)]
    if any(base_name(name) + OPEN in bindings for name in open_names):
        return True
    if any(not word.text or _GIVES_PATTERN.search(word.text) for word in opened):
        return True
    is_open = bool(opened) or any(map(is_computed_name, open_names))
    return is_open and not all(_is_plain(statement) for statement in nested)


def _is_plain(statement: Statement) -> bool:
    """True if a statement prints no pattern."""
    match statement:
        case SimpleCommand():
            return _prints_plain(statement)
        case Pipeline():
            return _is_plain(statement.parts[-1])  # Only the last part's output arrives.
        case Statements():
            return all(_is_plain(part) for part in statement.parts)
        case Conditional():
            return _is_plain(statement.first) and all(_is_plain(part) for _, part in statement.rest)
        case Subshell():
            return _is_plain(statement.body)
        case _:
            return False


def _prints_plain(command: SimpleCommand) -> bool:
    values = [word.value for word in command.words]
    if not values or command.name in group("prints_no_pattern"):
        return "-printf" not in values
    if command.name == "git":
        rest = [value for value in values[1:] if value not in ("--no-pager", "-P")]
        is_named = rest[:1] not in (["branch"], ["diff"]) or not _NAMES_ONLY.isdisjoint(rest)
        return bool(rest) and rest[0] in _PLAIN_GIT and is_named and not any("format" in value for value in rest)
    return command.name in _ECHOES and all(_is_plain_word(word) for word in command.words[1:])


def _is_plain_word(word: Word) -> bool:
    return word.is_fixed and not any(letter in _PATTERN and at not in word.live for at, letter in enumerate(word.value))
