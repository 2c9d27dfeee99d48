"""Files that the user attaches to messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import DocumentBlock, ImageBlock

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
