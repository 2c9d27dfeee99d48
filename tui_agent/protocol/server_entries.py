"""Settings of tool servers (Model Context Protocol) and of language servers, and questions that the latter answer."""

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from .messages import FrozenModel

SERVER_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
"""Names of servers. Without `__`, so that the parts of `mcp__SERVER__TOOL` are certain."""

_STRICT = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ToolFilter(FrozenModel):
    """Names of the tools that a server may offer; `*` stands for any characters."""

    model_config = _STRICT

    allow: tuple[str, ...] | None = None
    """Patterns of the tools to use; None: all."""
    deny: tuple[str, ...] = ()
    """Patterns of the tools to leave out."""

    def permits(self, tool: str) -> bool:
        """True if a tool of this name is used."""
        allowed = self.allow is None or any(fnmatchcase(tool, pattern) for pattern in self.allow)
        return allowed and not any(fnmatchcase(tool, pattern) for pattern in self.deny)


class ToolServer(FrozenModel):
    """One `[mcp.NAME]`: a program to start or a URL to connect to.

    `${VAR}` and `${VAR:-default}` in texts stand for variables of the environment.
    """

    model_config = _STRICT

    command: str | None = Field(default=None, min_length=1)
    """Program to start, which speaks on its standard input and output."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Variables of the program. It inherits the environment without secrets."""
    cwd: str | None = None
    """Directory of the program, relative to the workspace; if not set, the workspace."""
    url: str | None = Field(default=None, min_length=1)
    """Endpoint of a server that speaks streamable HTTP."""
    transport: Literal["http", "sse"] = "http"
    """`sse` for a server at `url` that speaks the older transport; if it does not, streamable HTTP is tried."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """Headers of each HTTP request."""
    bearer_token_env: str | None = None
    """Variable of the environment with a bearer token."""
    timeout: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Seconds of one call."""
    startup_timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds until the server must be ready, else it is started again with twice the time; the first request waits no
    longer."""
    tools: ToolFilter = ToolFilter()
    """Tools to use."""
    sampling: bool = False
    """True if the server may ask the model, after the user agreed to each request; only in the user's settings."""
    enabled: bool = True
    """False to keep the entry without starting the server."""

    @model_validator(mode="after")
    def _has_one_transport(self) -> "ToolServer":
        if (self.command is None) == (self.url is None):
            raise ValueError("a server needs either `command` or `url`")
        return self

    @property
    def shown(self) -> str:
        """The command line or the URL, as written."""
        return self.url if self.url is not None else shlex.join((self.command or "", *self.args))


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


@dataclass(frozen=True, slots=True)
class LaunchedProgram:
    """One start of a server."""

    argv: tuple[str, ...]
    """Command line, with walls and marks."""
    environment: Mapping[str, str]
    descriptors: tuple[int, ...]
    started: Callable[[int], object]
    """Called with the id of the first process."""
    end: Callable[[int | None], object]
    """Ends everything that still runs, and removes what the start needed; called with the id of the first process, None
    if it could not be started. Blocks."""
