"""What can be seen of an agent from outside, at any time."""

import asyncio
from collections.abc import Iterable

from tui_agent.context.history import ConversationHistory
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalRequest, PermissionChecker
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.reports import AgentRunReport

from .agent_state import AgentState
from .agent_stream import StreamedRun
from .command_run import CommandRun
from .loop_config import AgentLoopConfig, expect_provider
from .run import AgentRun
from .snapshot import OpenCall

_FINALISER_TURNS = 8
"""Turns of the event loop that finalise async generators which were left, each nested in the next."""


class AgentView:
    """One agent, to be looked at."""

    def __init__(self, agent: AgentState, open_calls: Iterable[OpenCall]) -> None:
        """
        Args:
            agent: its parts and its memory.
            open_calls: calls that waited for a person in an earlier life.
        """
        self._agent = agent
        self._run: AgentRun | CommandRun | None = None
        self._open_calls: dict[str, OpenCall] = {call.call_id: call for call in open_calls}
        self._streams: set[StreamedRun] = set()

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self._run is not None

    @property
    def history(self) -> ConversationHistory:
        """The conversation; its id is the agent's (S4-33). Its `registry` takes layers from anyone (S4-83)."""
        return self._agent.history

    @property
    def policy(self) -> PermissionChecker:
        """What judges its calls."""
        return self._agent.policy

    @property
    def gate(self) -> ApprovalGate:
        """The gate at which calls wait for the user's answer."""
        return self._agent.gate

    @property
    def provider(self) -> ModelProvider:
        """The model it asks; another one is asked from the next request on."""
        return self._agent.provider

    @provider.setter
    def provider(self, provider: ModelProvider) -> None:
        expect_provider("AgentLoop.provider", provider)
        self._agent.provider = provider

    @property
    def config(self) -> AgentLoopConfig:
        """What it is made of; limits that are changed in it (`max_steps`, `budget`, `max_tokens`) hold from the next
        step on."""
        return self._agent.config

    @property
    def bus(self) -> EventBus:
        """Where everything is told."""
        return self._agent.publisher.bus

    @property
    def reports(self) -> tuple[AgentRunReport, ...]:
        """One report a run, oldest first (S4-43)."""
        return tuple(self._agent.reports)

    @property
    def waiting_messages(self) -> tuple[UserMessage, ...]:
        """Steering and follow-ups that are not part of the conversation yet, in the order they will be."""
        return self._agent.queue.waiting

    @property
    def origin(self) -> Origin:
        """Where it is now: its agent id, its depth, and the run and step it is in."""
        return self._agent.publisher.origin

    @property
    def pending_calls(self) -> tuple[ApprovalRequest, ...]:
        """Calls that wait for a person, here or since the snapshot this agent was restored from."""
        waiting = (call.request for call in self._open_calls.values() if call.request is not None)
        return (*waiting, *self._agent.gate.pending)

    async def _wait_for_abandoned_streams(self) -> None:
        """Wait for runs whose readers have left them, so that the next run finds everything whole.

        If a reader is inside an async generator that was left, the event loop drops it only a few turns later, when it
        finalises the generator. While a streamed run is at work, this method waits for these turns.
        """
        task = asyncio.current_task()
        for _ in range(_FINALISER_TURNS):
            others = [stream for stream in self._streams if not stream.runs_in(task)]
            if not others:
                return
            for stream in others:
                await stream.wait_for_cleanup()
            await asyncio.sleep(0)
