"""Types of option values."""

import difflib
import os
import re
from collections.abc import Sequence
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
        from .interactive import theme_names

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
