"""Messages with which the chat asks the app for what is not on its screen, such as a session or a theme."""

from dataclasses import dataclass, field
from typing import Literal

from textual.message import Message
from textual.screen import Screen

from tui_agent.protocol.messages import ImageBlock


@dataclass
class SessionRequested(Message):
    """The user wants another session on the screen."""

    kind: Literal["resume", "clear", "fork", "demo"]
    """`resume`: a saved one; `clear`: a new one; `fork`: a copy of this one; `demo`: one with the offline model."""
    argument: str = ""
    """For `resume` an id or words, empty for the list of sessions; for `fork` a number of messages."""


@dataclass
class ReplayRequested(Message):
    """The user wants to watch a session."""

    name: str
    """Id or file of the session; empty for the present one."""


@dataclass
class ThemeRequested(Message):
    """The user chose a theme."""

    name: str


@dataclass
class PictureRequested(Message):
    """The user opens a picture."""

    image: ImageBlock = field(repr=False)
    page: Screen[None]
    """Shows the small form, for a terminal that cannot draw the picture."""
