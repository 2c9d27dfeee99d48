"""The running sub-agents of one agent."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.messages import Usage, UserMessage

from .agent_state import AgentState
from .current_run import CurrentRun
from .loop_config import AgentLoopConfig
from .steering_queue import SteeringQueue


class SubAgent(Protocol):
    """The part of an agent that its parent uses; each command also reaches the sub-agent's own sub-agents."""

    @property
    def origin(self) -> Origin:
        """The origin of its next event, with its agent id."""
        ...

    @property
    def message_queues(self) -> tuple[SteeringQueue, ...]:
        """Its queue, first, and those of its sub-agents."""
        ...

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

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call more time; return its new limit, or None if it has none or does not run."""
        ...

    def abort(self, reason: str = "aborted") -> None:
        """End the run now."""
        ...

    def destroy(self, reason: str = "closed") -> None:
        """End the agent."""
        ...


AgentT = TypeVar("AgentT", bound=SubAgent)


class SubAgents(Generic[AgentT]):
    """The running sub-agents of one agent."""

    def __init__(self, agent: AgentState, run: CurrentRun) -> None:
        """
        Args:
            agent: their parent.
            run: the parent's run, which their usage counts for.
        """
        self._agent = agent
        self._run = run
        self.by_id: dict[str, AgentT] = {}
        """The sub-agents by their agent id, oldest first."""

    def __iter__(self) -> Iterator[AgentT]:
        # A copy: a sub-agent may end meanwhile.
        return iter(tuple(self.by_id.values()))

    def config_for(self, agent_id: str, call_id: str | None) -> AgentLoopConfig:
        """Return the configuration of a sub-agent, with an empty conversation and the parent's parts."""
        agent, config = self._agent, self._agent.config
        return replace(
            config,
            provider=agent.provider,
            tools=tuple(agent.tools),
            bus=agent.publisher.bus,
            policy=agent.policy,
            gate=agent.gate,
            history=(),
            open_calls=(),
            compactions=(),
            waiting=(),
            checkpoint=None,
            update_tools=None,
            run_hooks=None if config.run_hooks is None else config.run_hooks.for_sub_agent(agent_id),
            output=None,
            agent_id=agent_id,
            parent_call_id=call_id,
            depth=config.depth + 1,
            usage=Usage(),
            cost=None,
            on_spend=self.count,
            parent_overrun=self._run.overrun,
            parent_wait_clock=agent.publisher.waits,
        )

    @property
    def message_queues(self) -> tuple[SteeringQueue, ...]:
        """The queues of all sub-agents, at any depth."""
        return tuple(queue for child in self for queue in child.message_queues)

    @contextmanager
    def keep(self, child: AgentT) -> Generator[None]:
        """Keep `child` in `by_id` while the context is open; then queue its unread messages here, and destroy it."""
        agent_id = child.origin.agent_id
        self.by_id[agent_id] = child
        try:
            yield
        finally:
            del self.by_id[agent_id]
            child.message_queues[0].move_to(self._agent.queue)
            child.destroy("done")

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

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give a call of a sub-agent more time; None if none of them runs it under a limit."""
        return next(filter(None, (child.extend_call(call_id, seconds) for child in self)), None)

    def abort(self, reason: str) -> None:
        """Abort the runs of all sub-agents."""
        for child in self:
            child.abort(reason)

    def count(self, usage: Usage, cost: float | None, model: str) -> None:
        """Add the usage of a sub-agent to the parent's and its run's."""
        self._agent.count(usage, cost, model)
        self._run.count(usage, cost)
