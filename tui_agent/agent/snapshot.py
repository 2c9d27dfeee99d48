"""The snapshot of an agent, from which another process can restore it (S4-6, S4-76)."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from tui_agent.context.history import HistorySnapshot
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import FrozenModel, JsonObject, Usage, UserMessage
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.reports import AgentRunReport

SNAPSHOT_VERSION = 1


class AgentLoopSnapshot(FrozenModel):
    """Version 1. Plain data: `model_dump_json` writes it, `model_validate_json` reads it."""

    version: Literal[1] = SNAPSHOT_VERSION
    system: str
    """The text of the layer `agentloop.system`."""
    context: str
    """The text of the layer `agentloop.context`."""
    history: HistorySnapshot
    """Messages and every layer; the calls of the last message may be without results."""
    tool_names: tuple[str, ...]
    reports: tuple[AgentRunReport, ...] = ()
    metadata: JsonObject = Field(default_factory=dict)
    created_at: int
    """Creation time of the agent; milliseconds since the epoch."""
    saved_at: int
    pending_tool_calls: tuple[ApprovalRequest, ...] = ()
    """Calls that waited for approval."""
    waiting_messages: tuple[UserMessage, ...] = ()
    """Queued messages, in order."""
    usage: Usage = Usage()
    """All usage so far."""
    cost: float | None = None
    """Dollars; None if no price is known."""


def tool_warnings(before: Iterable[str], now: Iterable[str]) -> tuple[Warned, ...]:
    """Return warnings for tools that were removed or added since the snapshot was taken (S4-78)."""
    known, present = list(before), list(now)
    gone, new = "was removed since this session was saved; calls of it fail", "was added since this session was saved"
    removed = [
        Warned(code="tool_removed", text=f"tool {name} {gone}", context={"tool": name})
        for name in known
        if name not in present
    ]
    added = [
        Warned(code="tool_added", text=f"tool {name} {new}", context={"tool": name})
        for name in present
        if name not in known
    ]
    return (*removed, *added)
