"""The user's choices for the parts of the screen, which the settings have and the screen applies."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

StatusItem: TypeAlias = Literal[
    "step", "context", "cost", "time", "tokens", "model", "mode", "folder", "branch", "command"
]
"""One fact of the status line: `tokens` are those of the session, `command` is the output of `ui.status_command`."""
TitleItem: TypeAlias = Literal["state", "folder", "model", "mode", "program"]
"""One part of the terminal's title."""

STATUS: tuple[StatusItem, ...] = ("step", "context", "cost", "time")
"""Facts of the status line without a choice."""
TITLE: tuple[TitleItem, ...] = ("state", "folder", "program")
"""Parts of the title without a choice."""


@dataclass(frozen=True, slots=True)
class ScreenChoices:
    """The choices of one user."""

    vim_keys: bool = False
    """True for the modes of vim while typing."""
    status: tuple[StatusItem, ...] = STATUS
    """Facts of the status line after the state, the most important first."""
    title: tuple[TitleItem, ...] = TITLE
    """Parts of the terminal's title, in order."""
