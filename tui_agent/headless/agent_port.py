"""What headless mode needs of an agent; `AgentLoop` is one."""

from collections.abc import Sequence
from typing import Literal, Protocol

from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.reports import AgentRunReport


class Agent(Protocol):
    """An agent that is told to do things and tells what happens on the bus."""

    @property
    def running(self) -> bool:
        """Whether a run is on; true from the moment `run` is awaited."""
        ...

    @property
    def waiting_messages(self) -> Sequence[UserMessage]:
        """Messages that are in no conversation yet."""
        ...

    @property
    def pending_calls(self) -> Sequence[ApprovalRequest]:
        """Calls that wait for a person, here or since the program ended."""
        ...

    async def run(self, user_input: str | None, /) -> AgentRunReport:
        """Handles one input to its end; None: what waited when the program ended."""
        ...

    def steer(self, text: str, /) -> UserMessage:
        """Queues a message for the next boundary of the run."""
        ...

    def follow_up(self, text: str, /) -> UserMessage:
        """Queues a message for when the run would end."""
        ...

    def stop(self) -> None:
        """Ends the run after this step."""
        ...

    def abort(self, reason: str, /) -> None:
        """Ends the run now."""
        ...

    def set_mode(self, mode: PermissionMode, by: str, /) -> None:
        """Another permission mode from here on."""
        ...

    def resolve_approval(
        self, request_id: str, decision: ApprovalDecision, /, by: Literal["user", "nobody"] = "user"
    ) -> bool:
        """Answers a question, or says that nobody can; False where it does not wait."""
        ...
