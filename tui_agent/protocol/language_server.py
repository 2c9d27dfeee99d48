"""Configuration of a language server."""

import shlex
from typing import Annotated

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
