"""Types of option values."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem


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
