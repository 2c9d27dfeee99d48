"""State of an earlier process that a resumed agent continues: its open calls, and its compactions."""

from dataclasses import dataclass
from typing import Literal

from .messages import Message, ToolResultMessage, UserMessage
from .permissions import ApprovalRequest
from .tool import ToolResult

Fate = Literal["not_started", "outcome_unknown", "finished"]
"""The known state of a call whose run broke off."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of the last answer that had no result when its process ended."""

    call_id: str
    fate: Fate
    result: ToolResult | None = None
    """Its result if it had finished."""
    request: ApprovalRequest | None = None
    """Its approval request if it waited for the user."""


@dataclass(frozen=True, slots=True)
class PastCompaction:
    """A compaction of an earlier process with the messages it removed, so that it can still be undone."""

    strategy: str
    removed: tuple[Message, ...]
    replacement: UserMessage | None
    cut: tuple[tuple[ToolResultMessage, ToolResultMessage], ...]
    """Results that were shortened: before and after."""
