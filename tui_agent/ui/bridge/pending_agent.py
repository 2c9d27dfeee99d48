"""Stands in the agent's place until it is there: nothing runs, and what cannot wait for it is refused in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.provider import ModelProvider

if TYPE_CHECKING:
    # It brings the whole agent along, which the first screen does not wait for.
    from tui_agent.agent import ContextBreakdown

NOT_READY = "The session is still being read; try again in a moment."


class PendingAgent:
    """An agent that does nothing. The bridge keeps what is typed and begun until the real one is there."""

    running = False
    waiting_messages: Sequence[UserMessage] = ()
    pending_calls: Sequence[ApprovalRequest] = ()

    def __init__(self, mode: PermissionMode) -> None:
        self.mode = mode
        """The permission mode the real one will begin with."""

    @property
    def policy(self) -> "PendingAgent":
        """Knows the mode."""
        return self

    @property
    def provider(self) -> ModelProvider:
        """None yet."""
        raise TuiAgentError(NOT_READY)

    async def run(self, user_input: str | None, /) -> object:
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    async def run_command(self, tool: str, arguments: JsonObject, said: str, *, shared: bool) -> object:
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    async def compact(self, focus: str) -> bool:
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    def undo_compaction(self) -> None:
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    def context_breakdown(self) -> "ContextBreakdown":
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    def steer(self, text: str, /) -> UserMessage:
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    def follow_up(self, text: str, /) -> UserMessage:
        """Not yet."""
        raise TuiAgentError(NOT_READY)

    def drop_message(self, message_id: str, /) -> UserMessage | None:
        """Nothing waits with it."""

    def steer_child(self, name: str, text: str, /) -> UserMessage | None:
        """There is no sub-agent."""

    def cancel_call(self, call_id: str, reason: str, /) -> bool:
        """No call goes on."""
        return False

    def stop(self) -> None:
        """Nothing runs."""

    def abort(self, reason: str, /) -> None:
        """Nothing runs."""

    def set_mode(self, mode: PermissionMode, by: str) -> None:
        """Notes the mode."""
        self.mode = mode

    def resolve_approval(self, request_id: str, decision: ApprovalDecision, /) -> bool:
        """Nothing is asked."""
        return False
