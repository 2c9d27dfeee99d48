"""Questions about code and their answers: what the tool `lookup` asks of language servers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

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
