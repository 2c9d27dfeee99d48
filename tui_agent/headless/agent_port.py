"""Interface of an agent for headless mode; `AgentLoop` implements it."""

from collections.abc import Sequence
from typing import Literal, Protocol

from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.reports import AgentRunReport


class Agent(Protocol):
    """An agent that publishes its events on the bus."""

    @property
    def running(self) -> bool:
        """True during a run, from the moment `run` is awaited."""
        ...

    @property
    def waiting_messages(self) -> Sequence[UserMessage]:
        """Queued messages that were not delivered yet."""
        ...

    @property
    def pending_calls(self) -> Sequence[ApprovalRequest]:
        """Requests for approval without an answer, also of a resumed session."""
        ...

    async def run(self, user_input: str | UserMessage | None, /) -> AgentRunReport | None:
        """Run one input to its end; None to resume the calls that waited when the program ended.

        Returns:
            The report; None if the input was cancelled before the model was asked.
        """
        ...

    def steer(self, text: str, /) -> UserMessage:
        """Queue a steering message for the current run."""
        ...

    def follow_up(self, text: str, /) -> UserMessage:
        """Queue a message for a turn of its own."""
        ...

    def stop(self) -> None:
        """End the run after this step."""
        ...

    def delay_requests(self, seconds: float, /) -> None:
        """Send no request to the model for so many seconds from now."""
        ...

    def abort(self, reason: str, /) -> None:
        """End the run now."""
        ...

    def set_mode(self, mode: PermissionMode, by: str, /) -> None:
        """Change the permission mode."""
        ...

    def resolve_approval(
        self, request_id: str, decision: ApprovalDecision, /, by: Literal["user", "nobody"] = "user"
    ) -> bool:
        """Answer a request for approval, or report that no one can; return False if it is not open."""
        ...
