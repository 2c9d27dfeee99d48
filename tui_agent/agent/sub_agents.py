"""The sub-agents of an agent while they run, and how commands reach them."""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from tui_agent.protocol.messages import UserMessage


class SubAgent(Protocol):
    """The part of an agent that commands to sub-agents use; each also passes them on to its own sub-agents."""

    def steer(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for the next boundary of the run."""
        ...

    def steer_child(self, name: str, message: str | UserMessage) -> UserMessage | None:
        """Steer a sub-agent. Return the queued message, or None if no sub-agent of that name is running."""
        ...

    def drop_message(self, message_id: str) -> UserMessage | None:
        """Remove a message from the queue; None if it is not queued."""
        ...

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call; False if it has ended or is unknown."""
        ...

    def abort(self, reason: str = "aborted") -> None:
        """End the run now."""
        ...


AgentT = TypeVar("AgentT", bound=SubAgent)


class SubAgents(Generic[AgentT]):
    """The running sub-agents of one agent, by their agent id."""

    def __init__(self) -> None:
        self.by_id: dict[str, AgentT] = {}

    def __iter__(self) -> Iterator[AgentT]:
        # A copy: a sub-agent may end meanwhile.
        return iter(tuple(self.by_id.values()))

    def steer(self, name: str, message: str | UserMessage) -> UserMessage | None:
        """Steer the oldest sub-agent whose id, or the part of it before the last `-`, is `name`, at any depth."""
        for agent_id, child in self.by_id.items():
            if name in (agent_id, agent_id.rpartition("-")[0]):
                return child.steer(message)
        return next(filter(None, (child.steer_child(name, message) for child in self)), None)

    def drop_message(self, message_id: str) -> UserMessage | None:
        """Remove a message from the queue of a sub-agent; None if none of them has it."""
        return next(filter(None, (child.drop_message(message_id) for child in self)), None)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel a call of a sub-agent; False if none of them is running it."""
        return any(child.cancel_call(call_id, reason) for child in self)

    def abort(self, reason: str) -> None:
        """Abort the runs of all sub-agents."""
        for child in self:
            child.abort(reason)
