"""Configuration of a language server, and the questions about code that it answers."""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field

from .messages import FrozenModel


def _words(value: object) -> object:
    """Split a command line that is written as one text."""
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _patterns(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class LanguageServer(FrozenModel):
    """One `[lsp.NAME]`: a program that speaks the Language Server Protocol on its standard input and output."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    command: Annotated[tuple[str, ...], BeforeValidator(_words), Field(min_length=1)]
    """Program and its arguments, as a list or as one text."""
    files: Annotated[tuple[str, ...], BeforeValidator(_patterns), Field(min_length=1)]
    """Patterns of the files that it is for, such as `*.py`; with a `/`, of their paths below `root`."""
    root: str = "."
    """Directory of the server, relative to the workspace; files elsewhere are not for it."""

    @property
    def shown(self) -> str:
        """The command line, as written."""
        return shlex.join(self.command)


LookupKind = Literal["definition", "references", "symbols", "hover"]


@dataclass(frozen=True, slots=True)
class CodePosition:
    """A place in a text; both numbers count from 1, `column` in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A place in a file."""

    path: Path
    position: CodePosition
    words: str = ""
    """Kind and name of a symbol, such as `function add`; empty for other places."""


@dataclass(frozen=True, slots=True)
class LookupAnswer:
    """Answer to one question."""

    places: Sequence[CodePlace] = ()
    text: str = ""
    """Description, for `hover`."""


LookUp: TypeAlias = Callable[[LookupKind, Path | None, CodePosition | None, str], Awaitable[LookupAnswer]]
"""Answers a question of a kind about the name at a position of a file, or about the symbols of a file, or without one
about those of the workspace whose names match a text. Raises `ToolError` if no server can answer it."""
