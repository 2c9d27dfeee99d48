"""Plain read-only commands: what runs without a question where no trial works."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

Operands = Literal["files", "tree", "pattern", "text", "plus", "format", "git", "none"]
"""Meaning of a command's operands, as `safe_commands.toml` explains; `plus` is a text that begins with `+`."""

_NUMBER = re.compile(r"-\d+\Z")
_PATTERN_OPTIONS = frozenset(("-e", "--regexp", "--files"))
"""Options with which the first operand is a path."""
_SETS_VARIABLE = re.compile(r"%[^%a-mo-zA-Z]*[hlqjzLt]*n")
_MAY_RECURSE = frozenset(("ls", "grep", "egrep", "fgrep"))
_RECURSIVE = frozenset(("-r", "-R", "--recursive"))
_FIND_OPERATORS = frozenset(("!", "(", ")"))


@dataclass(frozen=True, slots=True)
class SafeRead:
    """Paths that a read-only command reads."""

    paths: tuple[str, ...] = ()
    is_tree: bool = False
    """True if it reads everything below them, too."""
    is_file: bool = False
    """True if it would follow links below a directory."""
    is_git: bool = False
    """True if it obeys the settings of a repository."""


@dataclass(frozen=True, slots=True)
class SafeCommand:
    """One command of the list."""

    flags: frozenset[str]
    valued: frozenset[str]
    operands: Operands


@cache
def safe_commands() -> dict[str, SafeCommand]:
    """Return the list, by the program and, for git, its subcommand."""
    return read_table(files("tui_agent.permissions.commands").joinpath("safe_commands.toml").read_text("utf-8"))


def read_table(text: str) -> dict[str, SafeCommand]:
    """Parse a list of commands in TOML."""
    found: dict[str, SafeCommand] = {}
    for name, row in tomllib.loads(text).items():
        options = row.get("options", "").split()
        valued = frozenset(option[:-1] for option in options if option.endswith(":"))
        flags = frozenset(option for option in options if not option.endswith(":"))
        found[name] = SafeCommand(flags, valued, cast(Operands, row.get("operands", "none")))
    return found


def safe_read(argv: Sequence[str]) -> SafeRead | None:
    """Return what a command of literal words reads; None if it is not known to only read."""
    name, words = argv[0], list(argv[1:])
    is_git = name == "git"
    if is_git:
        words = words[1:] if words[:1] == ["--no-pager"] else words
        count = 2 if words[:2] in (["stash", "list"], ["worktree", "list"]) else 1
        name, words = " ".join(("git", *words[:count])), words[count:]
    entry = safe_commands().get(name)
    if entry is None:
        return None
    is_long = name == "find"
    parsed = _parse(entry, words, is_long=is_long)
    if parsed is None:
        return None
    options, operands = parsed
    paths = _paths(entry.operands, options, operands, is_find=is_long)
    if paths is None:
        return None
    is_recursive = name == "rg" or (name in _MAY_RECURSE and not _RECURSIVE.isdisjoint(options))
    is_tree = entry.operands == "tree" or is_recursive
    reads_here = not paths and (is_tree or name == "ls")
    return SafeRead(
        (*paths, *(["."] if reads_here else [])), is_tree, name == "diff", is_git and name != "git --version"
    )


def _parse(entry: SafeCommand, words: Sequence[str], *, is_long: bool) -> tuple[list[str], list[str]] | None:
    """Return the options and operands; None if an option is not in the list."""
    options, operands, at = list[str](), list[str](), 0
    while at < len(words):
        word, at = words[at], at + 1
        if word == "--" and not is_long:
            operands += words[at:]
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        known, takes_next = _known_option(entry, word, is_long=is_long)
        if not known or (takes_next and at >= len(words)):
            return None
        options += known
        at += takes_next
    return options, operands


def _known_option(entry: SafeCommand, word: str, *, is_long: bool) -> tuple[list[str], bool]:
    """Return the options in a word, none if one is not in the list, and True if the next word is a value."""
    if word in entry.flags:
        return [word], False
    if word in entry.valued:
        # `--color` has an optional value, which is never the next word.
        return [word], True
    if is_long:
        return [], False
    if word.startswith("--"):
        option, is_joined, _ = word.partition("=")
        return ([option] if is_joined and option in entry.valued else []), False
    if _NUMBER.match(word):
        return (["-#"] if "-#" in entry.flags else []), False
    found: list[str] = []
    for at, letter in enumerate(word[1:], 1):
        option = f"-{letter}"
        found.append(option)
        if option in entry.valued:
            return found, at + 1 == len(word)
        if option not in entry.flags:
            return [], False
    return found, False


def _paths(kind: Operands, options: Sequence[str], operands: list[str], *, is_find: bool) -> list[str] | None:
    """Return the paths among the operands; None if they mean something else."""
    match kind:
        case "none":
            return None if operands else []
        case "text":
            return []
        case "plus":
            return [] if all(word.startswith("+") for word in operands) else None
        case "format":
            return None if any(map(_SETS_VARIABLE.search, operands)) else []
        case "pattern":
            if _PATTERN_OPTIONS.isdisjoint(options):
                return [word for word in operands[1:] if word != "-"] if operands else None
        case "git":
            outside = (word.startswith(("/", "~", ":")) or ".." in word.split("/") for word in operands)
            return None if any(outside) else []
        case _:
            if is_find:
                return [word for word in operands if word not in _FIND_OPERATORS]
    return [word for word in operands if word != "-"]
