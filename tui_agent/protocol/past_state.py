"""State of an earlier process that a resumed agent continues: its open calls, and its compactions."""

from dataclasses import dataclass
from typing import Literal

from .messages import Message, ToolResultMessage, UserMessage
from .permissions import ApprovalDecision, ApprovalRequest
from .tool import ToolResult

Fate = Literal["not_started", "in_trial", "outcome_unknown", "finished"]
"""The known state of a call whose run broke off; `in_trial`: it started in a trial, and none of its changes
were kept."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of the last answer that had no result when its process ended."""

    call_id: str
    fate: Fate
    result: ToolResult | None = None
    """Its result if it had finished."""
    request: ApprovalRequest | None = None
    """Its approval request if it waited for the user."""
    answer: ApprovalDecision | None = None
    """Answer of the user about its changes, which the program no longer carried out."""
    layer_of: str = ""
    """Id of the call under which its layer waits; empty if none does."""


@dataclass(frozen=True, slots=True)
class PastCompaction:
    """A compaction of an earlier process with the messages it removed, so that it can still be undone."""

    strategy: str
    removed: tuple[Message, ...]
    replacement: UserMessage | None
    cut: tuple[tuple[ToolResultMessage, ToolResultMessage], ...]
    """Results that were shortened: before and after."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Estimated tokens of the conversation; 0 if they are not known."""
    length: int = 0
    """Number of messages right after it."""
