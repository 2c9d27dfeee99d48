"""First words that users type although no command has exactly this name: other programs' commands, and misspelt ones.

A word of other programs counts only alone: `tui-agent update the README` is a prompt.
"""

import difflib
import os
from collections.abc import Collection, Sequence

import click

_WORDS = {"help": "--help", "version": "--version", "update": "update-check", "upgrade": "update-check"}
"""Arguments for words that name no command of this program."""

_OPTIONS = ("-h", "--help", "-V", "--version")
"""Options of the program itself, as the first argument."""

_ALONE = ("login",)
"""Commands that count only alone, or before options: with more words they begin a prompt."""

_SIMILARITY = 0.8
"""Least similarity of a misspelt command, from 0 to 1."""
_SIMILARITY_ALONE = 0.75
"""The same for a word without others, which is hardly a prompt."""


def command_of(arguments: Sequence[str], commands: Collection[str], agent: str) -> list[str]:
    """Return the arguments with the command that they mean as the first: for a prompt and options, the agent's own.

    In a terminal, a word that is similar to a command is a question. Blocks.

    Raises:
        UsageError: the first word is similar to a command, and no one can be asked.
        Abort: the input ended, or the user pressed ctrl+c.
    """
    first, *rest = arguments or [""]
    if first == "help" and len(rest) == 1 and (command := rest[0] if rest[0] in commands else _near(rest[0], commands)):
        return [command, "--help"]
    if first in _WORDS and not rest:
        return [_WORDS[first]]
    is_sentence = first in _ALONE and rest and not rest[0].startswith("-")
    if first in _OPTIONS or (first in commands and not is_sentence):
        return list(arguments)
    if not {"-h", "--help"}.isdisjoint(arguments):
        return ["--help"]
    is_known = first in commands or first in _WORDS or first.startswith("-")
    least = _SIMILARITY if rest or os.path.lexists(first) else _SIMILARITY_ALONE
    near = "" if is_known else _near(first, [*commands, *_WORDS], least)
    if not near:
        return [agent, *arguments]
    if not (os.isatty(0) and os.isatty(2)):
        as_words = " ".join(arguments)
        raise click.UsageError(
            f"no command {first!r}; did you mean `tui-agent {near}`? As a prompt: `tui-agent -- {as_words}`"
        )
    question = f"There is no command {first!r}. Did you mean `tui-agent {near}`? Without y, it is sent as a prompt."
    if click.confirm(question, default=False, err=True):
        return command_of([near, *rest], commands, agent)
    return [agent, *arguments]


def as_prompt(arguments: Sequence[str], commands: Collection[str]) -> str:
    """Return the way to send words as a prompt that begin with a command; empty if they are not a sentence."""
    is_sentence = len(arguments) > 2 and arguments[0] in commands and not any(one.startswith("-") for one in arguments)
    return f"; to send this as a prompt: `tui-agent -- {' '.join(arguments)}`" if is_sentence else ""


def _near(word: str, commands: Collection[str], least: float = _SIMILARITY) -> str:
    return next(iter(difflib.get_close_matches(word, list(commands), 1, least)), "")
