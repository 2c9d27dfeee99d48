"""Executions that begin while the model still talks, and may outlive an answer that breaks off.

When the answer is asked for again, a call that asks for the same takes over what was begun: it runs once and is
answered once. That is only sound for calls that change nothing, and only as long as nothing else changed anything.
"""

from collections.abc import Callable
from types import TracebackType

from tui_agent.execution.digest import call_digest
from tui_agent.execution.joinable_task_group import JoinableTaskGroup
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext

from .tool_execution import ToolExecution

NO_LONGER_NEEDED = "nobody needs it any more"
"""What the tool of an execution is told that nobody took over."""


class EarlyExecutions:
    """Holds the early executions of all attempts at one answer. An async context manager: none outlives it."""

    def __init__(self, cancellation: CancellationToken) -> None:
        """
        Args:
            cancellation: token of the run; set, it stops what was set aside. What a call owns, that call stops.
        """
        self._token = cancellation
        self._task_group = JoinableTaskGroup()
        self._unowned: list[ToolExecution] = []
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
        await self._task_group.__aexit__(kind, error, trace)

    def begin(self, execution: ToolExecution, context: ToolContext) -> None:
        """Runs an execution in a task that does not end with the answer."""
        self._task_group.start(execution.run(context))

    def set_aside(self, execution: ToolExecution) -> None:
        """The answer it was begun for was thrown away: it waits for a call that asks for the same."""
        self._unowned.append(execution)

    def claim(self, name: str, arguments: JsonObject) -> ToolExecution | None:
        """Hands over what was begun for a call of this name with the same canonical arguments, oldest first."""
        if not self._unowned:
            return None
        wanted = call_digest(name, arguments)
        for execution in self._unowned:
            if call_digest(execution.tool.name, execution.asked) == wanted:
                self._unowned.remove(execution)
                return execution
        return None

    def drop_all(self) -> None:
        """Stops what nobody took over: the answer is complete, or there will be none."""
        dropped, self._unowned = self._unowned, []
        for execution in dropped:
            execution.stop(NO_LONGER_NEEDED)

    def _stop_all(self) -> None:
        for execution in self._unowned:
            execution.stop(self._token.reason)
