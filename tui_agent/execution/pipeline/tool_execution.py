"""Executions of tool functions, independent of the calls they serve.

Those that start while the model still streams survive a response that breaks off. When the model is asked again, a call
that asks for the same takes over the execution: it runs once and is answered once. While one with effects still runs,
no other call starts. If no call takes it over, a notice reports it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from tui_agent.execution.approval_gate import call_digest
from tui_agent.execution.contained_calls import Crash, asked, contained, copy_of, try_call
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolUpdate
from tui_agent.protocol.tool_result import as_tool_result
from tui_agent.protocol.trial import PendingChanges

from .update_channel import UpdateChannel

NO_LONGER_NEEDED = "no longer needed"
"""Cancellation reason of an execution that no call took over."""

END_SECONDS = 2.0
"""Seconds in which a tool that runs tools itself may end after the last of them."""


@dataclass(slots=True, eq=False)
class ToolExecution:
    """One run of a tool. Its reports go to the call that owns it, which may change (see `EarlyExecutions`)."""

    call_id: str
    """Id of the call it was started for."""
    tool: Tool
    raw_arguments: JsonObject
    """Arguments as the model sent them."""
    arguments: JsonObject
    """Arguments in effect."""
    token: CancellationToken
    """Token that the tool sees."""
    grace: float
    """Seconds from the request to stop until the tool is cancelled."""
    metrics: dict[str, Metric]
    channel: UpdateChannel
    """Channel of its reports."""
    has_effects: bool = False
    """True if it may change something, so that it must not run twice for one call."""
    began_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """Event loop time in seconds."""
    ended_at: float | None = None
    answer: ToolResult | Crash | None = None
    """Result or failure; None: it had to be cancelled, or never ran."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    extra_seconds: float = 0.0
    """Seconds that the user has added to its time limit."""
    proposal: PendingChanges | None = None
    """Changes that it made in a trial, until they are kept, discarded or left for a resumed session."""
    is_stopped: bool = False
    """True if it was asked to stop."""
    _stop_timeout: asyncio.Timeout | None = None

    async def run(self, context: ToolContext) -> None:
        """Run the tool to its end, unless it was stopped before; raise nothing but a real cancellation."""
        # Stopped before its first turn of the event loop: it has done nothing.
        if self.is_stopped:
            self.over.set()
            return
        try:
            async with asyncio.timeout(None) as self._stop_timeout:
                # A copy, because the tool may change its arguments, and the call's report and hooks still use them.
                answer = await asked(self.tool.execute, copy_of(self.arguments), context, timeout=None)
                self.answer = answer if isinstance(answer, ToolResult | Crash) else try_call(as_tool_result, answer)
        except TimeoutError:
            pass
        finally:
            self._stop_timeout = None
            self.ended_at = asyncio.get_running_loop().time()
            self.over.set()

    def stop(self, reason: str) -> None:
        """Ask the tool to stop: set its token, and cancel it after the grace."""
        if self.is_stopped:
            return
        # Before the token, whose callbacks may stop it again.
        self.is_stopped = True
        self.token.cancel(reason)
        if self._stop_timeout is not None:
            # Tools that it runs itself see the token at the same moment, and are cancelled after one grace.
            patience = 2 * self.grace + END_SECONDS if self.tool.ends_calls_of_its_own else self.grace
            self._stop_timeout.reschedule(asyncio.get_running_loop().time() + patience)

    def report(self, update: ToolUpdate) -> None:
        """Pass on one of the tool's reports; while no call owns the execution, it counts as late."""
        self.channel.report(update)

    def propose(self, changes: PendingChanges) -> None:
        """Receive what the tool changed in a trial; only the first proposal counts."""
        # A second layer would be neither shown nor removed.
        self.proposal = self.proposal or changes

    async def discard_proposal(self) -> None:
        """Discard changes on which no call decides."""
        pending, self.proposal = self.proposal, None
        if pending is not None:
            await contained(pending.discard())


class EarlyExecutions:
    """Early executions of all attempts at one response. An async context manager that outlives all of them."""

    def __init__(
        self,
        cancellation: CancellationToken,
        *,
        takes_effects: bool = False,
        on_unclaimed: Callable[[ToolExecution], object] | None = None,
    ) -> None:
        """
        Args:
            cancellation: token of the run; set, it stops executions without an owner. A call stops its own execution.
            takes_effects: True if calls with effects may start early, too.
            on_unclaimed: called with each execution with effects that no call took over, once it has ended.
        """
        self.takes_effects = takes_effects
        """True if calls with effects may start early, too."""
        self._on_unclaimed = on_unclaimed
        self._effects: list[ToolExecution] = []
        """Executions with effects whose response was discarded."""
        self._token = cancellation
        self._task_group = JoinableTaskGroup()
        self._unowned: list[ToolExecution] = []
        self._unclaimed: list[ToolExecution] = []
        self._begun: list[ToolExecution] = []
        self._forget: Callable[[], None] = lambda: None

    async def __aenter__(self) -> "EarlyExecutions":
        await self._task_group.__aenter__()
        self._forget = self._token.on_cancel(self._stop_all)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget()
        self.drop_all()
        try:
            await self._task_group.__aexit__(kind, error, trace)
        finally:
            self._report_unclaimed()
            begun, self._begun = self._begun, []
            for execution in begun:
                await execution.discard_proposal()

    @property
    def has_running_effects(self) -> bool:
        """True while an execution with effects runs whose response was discarded: nothing may run beside it."""
        return any(not execution.over.is_set() for execution in self._effects)

    def begin(self, execution: ToolExecution, context: ToolContext) -> None:
        """Run an execution in a task that does not end with the response."""
        # Kept to discard what it proposes, whether a call takes it over or not.
        self._begun.append(execution)
        self._task_group.start(execution.run(context))

    def set_aside(self, execution: ToolExecution) -> None:
        """Keep an execution whose response was discarded, until a call claims it."""
        self._unowned.append(execution)
        if execution.has_effects and execution not in self._effects:
            self._effects.append(execution)

    def leave_unclaimed(self, execution: ToolExecution) -> None:
        """Keep a stopped execution whose response was discarded: no call takes it over, but the model has to know."""
        if execution.has_effects:
            self._unclaimed.append(execution)
            if execution not in self._effects:
                self._effects.append(execution)

    def claim(self, name: str, arguments: JsonObject, *, only_effects: bool = False) -> ToolExecution | None:
        """Take the oldest execution without an owner for this tool and the same arguments; None if there is none.

        Args:
            name: the tool.
            arguments: the arguments as the model sent them; the order of keys does not matter.
            only_effects: True to leave out executions without effects.
        """
        if not self._unowned:
            return None
        # By meaning, not by text: a repeated answer may order the keys differently.
        wanted = call_digest(name, arguments)
        for execution in self._unowned:
            if only_effects and not execution.has_effects:
                continue
            if call_digest(execution.tool.name, execution.raw_arguments) == wanted:
                self._unowned.remove(execution)
                return execution
        return None

    def drop_all(self) -> None:
        """Stop all executions without an owner, because no call can claim them any more."""
        dropped, self._unowned = self._unowned, []
        for execution in dropped:
            execution.stop(NO_LONGER_NEEDED)
        self._unclaimed += (execution for execution in dropped if execution.has_effects)

    async def settle(self, timeout: float | None = None) -> bool:
        """Drop all executions without an owner, and wait until none with effects runs.

        Returns:
            False if one still runs after `timeout` seconds; None waits for as long as it takes.
        """
        self.drop_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                for execution in self._effects:
                    await execution.over.wait()
        # Nothing may run beside it, so the caller decides whether to wait on or to give up.
        if self.has_running_effects:
            return False
        self._report_unclaimed()
        return True

    def _report_unclaimed(self) -> None:
        unclaimed, self._unclaimed = self._unclaimed, []
        for execution in unclaimed:
            # One that was stopped before it began has no effects.
            # The model would repeat what has happened already.
            if execution.ended_at is not None and self._on_unclaimed is not None:
                self._on_unclaimed(execution)

    def _stop_all(self) -> None:
        for execution in self._unowned:
            execution.stop(self._token.reason)


class JoinableTaskGroup:
    """Task group that can be awaited several times. An async context manager that outlives its tasks."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._closing = False
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> "JoinableTaskGroup":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all tasks. A cancellation cancels them at once; before any other error of the body, stop them."""
        self._closing = True
        # A real cancellation must not wait for tasks that no one will read.
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

    @property
    def is_busy(self) -> bool:
        """True if a task is running."""
        return self._busy > 0

    @property
    def takes_work(self) -> bool:
        """True if a task may still be started: the group is not being left, and no task has failed."""
        return not self._closing

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task; if it raises, all others are cancelled and the group raises its error."""
        if self._busy == 0:
            self._idle.clear()
        self._busy += 1
        self._group.create_task(work).add_done_callback(self._one_is_done)

    async def until_idle(self, timeout: float | None = None) -> bool:
        """Wait until no task runs, at most `timeout` seconds (None: no limit); return False if one still runs."""
        if timeout is None:
            await self._idle.wait()
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._idle.wait()
        return not self.is_busy

    def _one_is_done(self, task: asyncio.Task[None]) -> None:
        broke = not task.cancelled() and task.exception() is not None
        # The group is about to cancel everything, so new work would die at once.
        self._closing = self._closing or broke
        self._busy -= 1
        if self._busy == 0:
            self._idle.set()
