"""An agent whose input may name skills and command files (`/NAME`), and files to attach (`@PATH`)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from tui_agent.protocol.messages import TextBlock, UserBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.reports import AgentRunReport

from .agent_port import Agent

Message: TypeAlias = Callable[[str], str | UserMessage]
"""Returns the message for a text."""
Attach: TypeAlias = Callable[[str], Awaitable[Sequence[UserBlock]]]
"""Returns the files that are sent with a text.

Raises:
    TuiAgentError: one of them cannot be sent.
"""


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

    def run(self, text: str, message: Message, /) -> Awaitable[AgentRunReport | None]:
        """Run a text that `knows` to its end, with the message that `message` returns for its prompt."""
        ...


class CommandAgent:
    """Passes everything to an agent, with skills and command files expanded, and files of prompts attached."""

    def __init__(self, agent: Agent, commands: TypedCommands | None, attach: Attach) -> None:
        """
        Args:
            agent: the agent.
            commands: skills and command files; None: there are none.
            attach: returns the files that are sent with a prompt.
        """
        self._agent = agent
        self._commands = commands
        self._attach = attach

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

    async def run(self, user_input: str | UserMessage | None, /) -> AgentRunReport | None:
        """Run one input to its end; None if a shell command of a command file was cancelled."""
        if not isinstance(user_input, str):
            return await self._agent.run(user_input)
        files = await self._attach(user_input)

        def message(text: str) -> str | UserMessage:
            return UserMessage(content=(TextBlock(text=text), *files)) if files else text

        if self._commands is not None and self._commands.knows(user_input):
            return await self._commands.run(user_input, message)
        return await self._agent.run(message(user_input))

    def steer(self, text: str, /) -> UserMessage:
        """Queue a steering message for the current run."""
        return self._agent.steer(self._expanded(text))

    def follow_up(self, text: str, /) -> UserMessage:
        """Queue a message for a turn of its own."""
        return self._agent.follow_up(self._expanded(text))

    def _expanded(self, text: str) -> str:
        return text if self._commands is None else self._commands.expanded(text)

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
