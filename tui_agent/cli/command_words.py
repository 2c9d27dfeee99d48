"""Values of options with their completion, and the error for a first word that is not a command.

A word of other programs counts only alone: `tui-agent update the README` is a prompt.
"""

import difflib
import os
import re
from collections.abc import Collection, Sequence
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from tui_agent.settings import Locations


class OneOf(click.ParamType[str]):
    """One of a few values; the error for any other names the closest one."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = tuple(values)
        """All valid values."""
        self.name = "|".join(values)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value, or fail with a usage error."""
        text = str(value)
        if text not in self.values:
            near = difflib.get_close_matches(text, self.values, n=1, cutoff=0.4)
            self.fail(f"{text!r} is not {self.name}" + (f" (did you mean {near[0]}?)" if near else ""), param, ctx)
        return text

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the values as help shows them."""
        return self.name

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Return the values that begin with the text, for a shell."""
        return [CompletionItem(value) for value in self.values if value.startswith(incomplete)]


class StrategyName(OneOf):
    """`auto`, `sequential`, `parallel` or `batched:N`."""

    def __init__(self) -> None:
        super().__init__(("auto", "sequential", "parallel", "batched:N"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the strategy's name; fail with a usage error, also for `batched:0`."""
        text = str(value)
        if re.fullmatch(r"batched:[1-9][0-9]{0,8}", text):
            return text
        if text == "batched:N" or text.startswith("batched:"):
            self.fail(f"{text!r}: a whole number from 1 was expected, as in batched:2", param, ctx)
        return super().convert(value, param, ctx)


_MOST_SESSIONS = 30
"""Most sessions that a completion offers."""


class SessionId(click.ParamType[str]):
    """The id of a stored session, or its beginning."""

    name = "ID"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Return the newest sessions whose ids begin with the text, with their titles."""
        from tui_agent.protocol.visible_text import escaped
        from tui_agent.session import SessionStore

        found = [
            summary
            for summary in SessionStore(Locations.of_user().sessions_dir).list()
            if summary.id.startswith(incomplete)
        ]
        return [
            CompletionItem(summary.id, help=escaped(summary.title)[:60] or None) for summary in found[:_MOST_SESSIONS]
        ]


class ModelName(click.ParamType[str]):
    """The name of a model."""

    name = "NAME"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Return the models of the settings, and the known ones of the API, whose names begin with the text."""
        from tui_agent.protocol.errors import ConfigurationError
        from tui_agent.settings import load_settings
        from tui_agent.workbench.configuration.model_list import configured_models

        try:
            settings = load_settings(Locations.of_user(), environment=os.environ).settings
        except ConfigurationError:
            return []
        names = (fact.name for fact in configured_models(settings))
        return [CompletionItem(name) for name in names if name.startswith(incomplete) and name.isprintable()]


class ThemeName(click.ParamType[str]):
    """The name of a theme."""

    name = "NAME"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Return the themes whose names begin with the text: the user's and those of the package."""
        from .screen_entry import theme_names

        return [CompletionItem(name) for name in theme_names() if name.startswith(incomplete)]


class _JoinedValues(ShellComplete):
    """Completes the value in `--option=value`: zsh and fish see one word, bash sees three."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the completions of the word, with the option if the shell counts it to the word."""
        option, sign, value = incomplete.partition("=")
        if not (sign and option.startswith("--")):
            return super().get_completions(args[:-1] if args[-1:] == ["="] else args, incomplete)
        found = super().get_completions([*args, option], value)
        return [
            CompletionItem(f"{option}={item.value}", help=item.help) if item.type == "plain" else item for item in found
        ]


@add_completion_class
class BashWords(_JoinedValues, BashComplete):
    """Completion in bash."""


@add_completion_class
class ZshWords(_JoinedValues, ZshComplete):
    """Completion in zsh."""


@add_completion_class
class FishWords(_JoinedValues, FishComplete):
    """Completion in fish."""


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
    # A file of that name, or further words, make a prompt more likely.
    least = _SIMILARITY if rest or os.path.lexists(first) else _SIMILARITY_ALONE
    near = "" if is_known else _near(first, [*commands, *_WORDS], least)
    if not near:
        return [agent, *arguments]
    # A program that runs this one could not answer, and must not pay for a prompt by mistake.
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
