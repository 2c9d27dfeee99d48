"""An agent whose input may name skills and command files (`/NAME`)."""

from collections.abc import Awaitable, Sequence
from typing import Literal, Protocol

from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.reports import AgentRunReport

from .agent_port import Agent


class TypedCommands(Protocol):
    """Skills and command files as the user types them."""

    def knows(self, text: str, /) -> bool:
        """True if a text runs a command file or loads a skill."""
        ...

    def expanded(self, text: str, /) -> str:
        """Return the message for a text that needs no run of its own; other texts as they are.

        Raises:
            ConfigurationError: it needs a run of its own.
        """
        ...

    def run(self, text: str, /) -> Awaitable[AgentRunReport | None]:
        """Run a text that `knows` to its end."""
        ...


class CommandAgent:
    """Passes everything to an agent, with skills and command files expanded."""

    def __init__(self, agent: Agent, commands: TypedCommands) -> None:
        self._agent = agent
        self._commands = commands

    @property
    def running(self) -> bool:
        """True during a run."""
        return self._agent.running

    @property
    def waiting_messages(self) -> Sequence[UserMessage]:
        """Queued messages that were not delivered yet."""
        return self._agent.waiting_messages

    @property
    def pending_calls(self) -> Sequence[ApprovalRequest]:
        """Requests for approval without an answer."""
        return self._agent.pending_calls

    async def run(self, user_input: str | None, /) -> AgentRunReport | None:
        """Run one input to its end; None if a shell command of a command file was cancelled."""
        if user_input is not None and self._commands.knows(user_input):
            return await self._commands.run(user_input)
        return await self._agent.run(user_input)

    def steer(self, text: str, /) -> UserMessage:
        """Queue a steering message for the current run."""
        return self._agent.steer(self._commands.expanded(text))

    def follow_up(self, text: str, /) -> UserMessage:
        """Queue a message for a turn of its own."""
        return self._agent.follow_up(self._commands.expanded(text))

    def stop(self) -> None:
        """End the run after this step."""
        self._agent.stop()

    def delay_requests(self, seconds: float, /) -> None:
        """Send no request to the model for so many seconds from now."""
        self._agent.delay_requests(seconds)

    def abort(self, reason: str, /) -> None:
        """End the run now."""
        self._agent.abort(reason)

    def set_mode(self, mode: PermissionMode, by: str, /) -> None:
        """Change the permission mode."""
        self._agent.set_mode(mode, by)

    def resolve_approval(
        self, request_id: str, decision: ApprovalDecision, /, by: Literal["user", "nobody"] = "user"
    ) -> bool:
        """Answer a request for approval, or report that no one can; return False if it is not open."""
        return self._agent.resolve_approval(request_id, decision, by=by)
