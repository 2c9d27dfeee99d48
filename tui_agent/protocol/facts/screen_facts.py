"""Data of the screen: its first page, the end of a past session, attachments, and the choices of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import DocumentBlock, ImageBlock

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
    """The choices of one user: fields of `[ui]` in the settings, of the same names, that apply while the app runs."""

    vim_keys: bool = False
    """True for the modes of vim while typing."""
    status: tuple[StatusItem, ...] = STATUS
    """Facts of the status line after the state, the most important first."""
    title: tuple[TitleItem, ...] = TITLE
    """Parts of the terminal's title, in order."""


@dataclass(frozen=True, slots=True)
class SessionOffer:
    """A session that the page offers to resume."""

    session_id: str
    title: str
    age: str


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Content of the page beside the name of the program."""

    sessions: tuple[SessionOffer, ...] = ()
    facts: tuple[str, ...] = ()
    """Facts about the folder, such as `main` and `AGENTS.md`."""
    starters: tuple[str, ...] = ()
    """Prompts to start with."""
    is_first_run: bool = False
    """True if there are neither settings nor sessions: the page explains the modes, and offers themes."""
    key: str = ""
    """Origin of the key, without the key; shown at the first run."""


@dataclass(frozen=True, slots=True)
class HistoryTail:
    """The last events of a resumed session, shown until all of them are read."""

    events: Sequence[Envelope]
    calls_before: int
    """Calls before the first of these events."""
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers of those of them that these events resume, by call id."""


MAX_ATTACHED = 10
"""Attachments of one message."""
MAX_SENT = 28_000_000
"""Characters of all attachments of one message; a request to the API can have 32 MB."""

Attachment: TypeAlias = ImageBlock | DocumentBlock


@dataclass(frozen=True, slots=True)
class PromptAttachment:
    """A file, or a part of it, that the user attaches to a message."""

    block: Attachment
    name: str
    """Name of its file."""
    size: str = ""
    """Extent of an image or a PDF: `640×480`, `12 pages` or `1,234 bytes`."""


def refuse_too_many(attachments: Sequence[Attachment]) -> None:
    """Check that one message can have these attachments.

    Raises:
        TuiAgentError: they are too many or too large.
    """
    if len(attachments) > MAX_ATTACHED:
        raise TuiAgentError(f"A message can have {MAX_ATTACHED} attachments; this one has {len(attachments)}.")
    size = sum(len(block.data) for block in attachments)
    if size > MAX_SENT:
        most = f"{MAX_SENT / 1e6:.0f} MB"
        raise TuiAgentError(f"The attachments of a message can have {most} in all; these have {size / 1e6:.0f} MB.")
