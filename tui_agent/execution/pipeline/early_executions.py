"""Executions that start while the model still streams, and that survive a response that breaks off.

When the model is asked again, a call that asks for the same takes over the execution: it runs once and is answered
once. While one with effects still runs, no other call starts. If no call takes it over, a notice reports it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType

from tui_agent.execution.digest import call_digest
from tui_agent.execution.joinable_task_group import JoinableTaskGroup
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext

from .tool_execution import ToolExecution

NO_LONGER_NEEDED = "no longer needed"
"""Cancellation reason of an execution that no call took over."""


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
        self._forget: Callable[[], None] | None = None

    async def __aenter__(self) -> "EarlyExecutions":
        await self._task_group.__aenter__()
        self._forget = self._token.on_cancel(self._stop_all)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._forget is not None:
            self._forget()
            self._forget = None
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
        """Return the oldest execution without an owner for this tool with the same canonical arguments, if any."""
        if not self._unowned:
            return None
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
            False if one still runs after `timeout` seconds.
        """
        self.drop_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                for execution in self._effects:
                    await execution.over.wait()
        if self.has_running_effects:
            return False
        self._report_unclaimed()
        return True

    def _report_unclaimed(self) -> None:
        unclaimed, self._unclaimed = self._unclaimed, []
        for execution in unclaimed:
            # One that was stopped before it began has no effects.
            if execution.ended_at is not None and self._on_unclaimed is not None:
                self._on_unclaimed(execution)

    def _stop_all(self) -> None:
        for execution in self._unowned:
            execution.stop(self._token.reason)
