"""Kinds of option values; a misspelt one is answered with the nearest right one."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import click


class OneOf(click.ParamType[str]):
    """One word of a few."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        """What is allowed."""
        self.name = "|".join(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, or a usage error that names the nearest."""
        text = str(value)
        if text not in self.words:
            near = difflib.get_close_matches(text, self.words, n=1, cutoff=0.4)
            self.fail(f"{text!r} is not {self.name}" + (f" (did you mean {near[0]}?)" if near else ""), param, ctx)
        return text

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """How help shows it."""
        return self.name


class StrategyName(OneOf):
    """`auto`, `sequential`, `parallel` or `batched:N`."""

    def __init__(self) -> None:
        super().__init__(("auto", "sequential", "parallel", "batched:N"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The strategy's name; `batched:0` is refused."""
        text = str(value)
        if re.fullmatch(r"batched:[1-9][0-9]{0,8}", text):
            return text
        if text == "batched:N" or text.startswith("batched:"):
            self.fail(f"{text!r}: a whole number from 1 was expected, as in batched:2", param, ctx)
        return super().convert(value, param, ctx)
