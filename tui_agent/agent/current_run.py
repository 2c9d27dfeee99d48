"""The run in progress of an agent, the configuration of its sub-agents, and questions to the model beside a run.

A streamed run may outlive its reader. `ask_user` asks a question that belongs to no call; `answer_beside` asks the
model something outside the conversation.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from tui_agent.protocol.errors import AlreadyRunningError, ProviderError
from tui_agent.protocol.facts.page_facts import SideAnswer
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.provider import ModelProvider, ModelRequest, StreamEvent

from .agent_state import AgentState
from .agent_stream import StreamedRun
from .command_run import CommandRun
from .loop_config import AgentLoopConfig
from .response_accumulator import StepState, accumulate, read_stream
from .run import AgentRun

_FINALISER_TURNS = 8
"""Turns of the event loop that finalise async generators which were left, each nested in the next."""

RunT = TypeVar("RunT", bound=AgentRun | CommandRun)


class CurrentRun:
    """At most one run at a time. Commands to the run do nothing while none is in progress."""

    def __init__(self) -> None:
        self._run: AgentRun | CommandRun | None = None
        self.streamed: set[StreamedRun[Any]] = set()
        """Streamed runs whose tasks have not ended."""

    @property
    def is_in_progress(self) -> bool:
        """True while a run or a command of the user is in progress."""
        return self._run is not None

    def refuse(self) -> None:
        """Check that no run is in progress.

        Raises:
            AlreadyRunningError: one is.
        """
        if self._run is not None:
            raise AlreadyRunningError

    async def expect_none(self) -> None:
        """Wait for runs whose readers have left them, so that the next run finds everything complete.

        If a reader is inside an async generator that was left, the event loop drops it only a few turns later, when it
        finalises the generator. While a streamed run is at work, this function waits for these turns.

        Raises:
            AlreadyRunningError: another run is in progress.
        """
        task = asyncio.current_task()
        # Bounded, because a reader that is still reading never leaves.
        for _ in range(_FINALISER_TURNS):
            others = [stream for stream in self.streamed if not stream.runs_in(task)]
            if not others:
                break
            for stream in others:
                await stream.wait_for_cleanup()
            await asyncio.sleep(0)
        self.refuse()

    @contextmanager
    def hold(self, run: RunT) -> Generator[RunT]:
        """Make `run` the one in progress while the context is open."""
        self._run = run
        try:
            yield run
        finally:
            self._run = None

    def notify_steering(self) -> None:
        """Report a queued steering message to the run."""
        if self._run is not None:
            self._run.notify_steering()

    def stop(self) -> None:
        """End the run after this step; does nothing without a run."""
        if self._run is not None:
            self._run.stop()

    def abort(self, reason: str) -> None:
        """Abort the run, without waiting for its end; does nothing without a run."""
        if self._run is not None:
            self._run.abort(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call of the run; False if it has ended or is unknown."""
        return self._run is not None and self._run.cancel_call(call_id, reason)

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call more seconds; return its new limit in seconds from its start.

        None if it has no limit, does not run, or is unknown.
        """
        return self._run.extend_call(call_id, seconds) if self._run is not None else None

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add the usage of a sub-agent to that of the run; `cost` is in dollars, None if the price is unknown."""
        if self._run is not None:
            self._run.count(usage, cost)

    def overrun(self) -> str | None:
        """Return a sentence about the budget that the run has used up; None while none is, or without a run."""
        return self._run.overrun() if self._run is not None else None


def child_config(agent: AgentState, run: CurrentRun, agent_id: str, call_id: str | None) -> AgentLoopConfig:
    """Return the configuration of a sub-agent, with an empty conversation and its parent's parts.

    Args:
        agent: the parent.
        run: the parent's run, which the sub-agent's usage counts for.
        agent_id: the sub-agent's id.
        call_id: the call that starts it; None if none does.
    """
    config = agent.config

    def count(usage: Usage, cost: float | None, model: str) -> None:
        agent.count(usage, cost, model)
        run.count(usage, cost)

    return replace(
        config,
        provider=agent.provider,
        tools=tuple(agent.tools),
        bus=agent.publisher.bus,
        policy=agent.policy,
        gate=agent.gate,
        # A sub-agent has a conversation of its own; everything that would resume its parent's is left out.
        history=(),
        open_calls=(),
        compactions=(),
        waiting=(),
        # Its questions are in its parent's snapshot, which could not restore it.
        checkpoint=None,
        update_tools=None,
        run_hooks=None if config.run_hooks is None else config.run_hooks.for_sub_agent(agent_id),
        output=None,
        agent_id=agent_id,
        parent_call_id=call_id,
        depth=config.depth + 1,
        usage=Usage(),
        cost=None,
        on_spend=count,
        parent_overrun=run.overrun,
        parent_wait_clock=agent.publisher.waits,
    )


async def ask_user(agent: AgentState, request: ApprovalRequest) -> ApprovalDecision:
    """Ask a question through the agent's gate and wait for the answer; see `ApprovalGate.ask`."""
    return (await agent.gate.ask(request, agent.publisher)).decision


async def answer_beside(
    agent: AgentState,
    run: CurrentRun,
    request: ModelRequest,
    provider: ModelProvider | None,
    take: Callable[[StreamEvent], object],
) -> SideAnswer:
    """Ask the model once, without retries, and count the usage for the agent and its run.

    `provider` is the model (None: the agent's); `take` receives the events of the response, also of one that fails.

    Raises:
        ProviderError: the model did not answer, or the budget of the run is used up.
    """
    # Not counted after the fact: a side request could otherwise exceed a budget that the run respects.
    if (overrun := run.overrun()) is not None:
        raise ProviderError(overrun, kind="invalid_request")
    provider = provider or agent.provider
    state = StepState()
    cost: float | None = None

    def note(event: StreamEvent) -> None:
        accumulate(state, event)
        take(event)

    try:
        await read_stream(provider.stream(request), note)
    finally:
        if state.usage != Usage():
            cost = provider.model.cost_of(state.usage)
            agent.count(state.usage, cost, provider.model.name)
            run.count(state.usage, cost)
    if state.stop_reason is None:
        raise ProviderError("the answer was cut off", kind="stream_cut")
    return SideAnswer(state.text, state.model or provider.model.name, state.stop_reason, cost)
