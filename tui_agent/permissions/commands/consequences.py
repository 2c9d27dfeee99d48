"""Consequences of a shell command in a few words, such as `deletes files`, for the user and the model.

They explain a question and decide nothing: a command without a known consequence is not harmless.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tui_agent.permissions.rules.normalized_argv import strip_git_options
from tui_agent.permissions.shell.syntax import names

from .catalogue import INTERPRETERS, SHELLS, canonical_name, table

NETWORK_CODE = "runs code from the network"
OUTSIDE = "outside the workspace"
MAY_CHANGE = "may change files"
"""Words for a command whose consequences are not known."""
_OF_PROJECT = "runs code of the project"
_OF_GIT = "changes the repository"
_SCRIPT = "runs a script"
ORDINARY = frozenset((_OF_PROJECT, _SCRIPT, "changes files", _OF_GIT, MAY_CHANGE))
"""Consequences that most of a session's questions have; all others are dangers."""
_LONGEST_READ = 4_000
"""Characters of a command that are searched for options."""


@dataclass(frozen=True, slots=True)
class _Facts:
    programs: frozenset[str]
    subcommands: frozenset[tuple[str, str]]
    pattern: re.Pattern[str]
    """Pattern for words without git's global options and the program's directory."""
    implies: frozenset[str]
    """Consequences that need no mention beside this one."""


@cache
def _known() -> dict[str, _Facts]:
    """Return all consequences, the worst first."""
    return {
        text: _Facts(
            names(row.get("programs", "")),
            frozenset(
                (program, subcommand)
                for programs, subcommands in row.get("subcommands", ())
                for program in programs.split()
                for subcommand in subcommands.split()
            ),
            re.compile(row.get("pattern", "(?!)")),
            frozenset(row.get("implies", ())),
        )
        for text, row in table("consequences").items()
    }


def consequences_of(words: Sequence[str], *, runs_project: bool = False) -> tuple[str, ...]:
    """Return the known consequences of a simple command, the worst first."""
    return sorted_consequences([*([_OF_PROJECT] if runs_project else []), *_of_words(words)])


def runs_input(words: Sequence[str]) -> bool:
    """True if a command may run the text that it reads or that its words hold."""
    name = canonical_name(words[0]) if words else ""
    return name in SHELLS or name in INTERPRETERS or name in ("eval", "source", ".")


def sorted_consequences(found: Iterable[str]) -> tuple[str, ...]:
    """Return consequences without duplicates and without those that another one implies, the worst first."""
    found = set(found)
    if not found:
        return ()
    implied = {less for one in found for less in _known()[one].implies}
    return tuple(one for one in _known() if one in found - implied)


def severity(consequences: Sequence[str]) -> int:
    """Return the place of the worst consequence among all, from 0; the worse, the smaller."""
    return list(_known()).index(consequences[0]) if consequences else len(_known())


def _of_words(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    name = words[0].rpartition("/")[2]
    rest = strip_git_options(words[1:]) if name == "git" else list(words[1:])
    subcommand = next((word for word in rest if not word.startswith(("-", "+"))), "")
    line = " ".join((name, *rest))[:_LONGEST_READ]
    for text, facts in _known().items():
        if name in facts.programs or (name, subcommand) in facts.subcommands or facts.pattern.match(line):
            yield text
    if name == "git":
        yield _OF_GIT
    elif "/" in words[0] and not words[0].startswith("/"):
        yield _OF_PROJECT
    elif runs_input(words):
        yield _SCRIPT
