"""Configuration of a tool server, which speaks the Model Context Protocol (MCP)."""

import re
import shlex
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

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
