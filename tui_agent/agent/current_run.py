"""The run of an agent that is in progress, and streamed runs that outlive their readers."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from tui_agent.protocol.errors import AlreadyRunningError
from tui_agent.protocol.messages import Usage

from .agent_stream import StreamedRun
from .command_run import CommandRun
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
        """End the run after this step."""
        if self._run is not None:
            self._run.stop()

    def abort(self, reason: str) -> None:
        """End the run now."""
        if self._run is not None:
            self._run.abort(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call of the run; False if it has ended or is unknown."""
        return self._run is not None and self._run.cancel_call(call_id, reason)

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call more time; return its new limit, or None if it has none or does not run."""
        return self._run.extend_call(call_id, seconds) if self._run is not None else None

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add the usage of a sub-agent to the run's."""
        if self._run is not None:
            self._run.count(usage, cost)

    def overrun(self) -> str | None:
        """Return the budget that the run has used up; None while none is."""
        return self._run.overrun() if self._run is not None else None
