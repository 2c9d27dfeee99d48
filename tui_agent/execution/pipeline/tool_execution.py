"""One execution of a tool: from its call to its answer, in time even against its will (C24, P35)."""

import asyncio
from dataclasses import dataclass, field

from tui_agent.execution.json_coercion import with_json_details
from tui_agent.execution.loop_clock import now
from tui_agent.execution.untrusted_calls import CLEANUP_SECONDS, Crash, Killable, contained, copy_of
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolUpdate
from tui_agent.protocol.tool_result import as_tool_result

from .update_channel import UpdateChannel


@dataclass(slots=True, eq=False)
class ToolExecution:
    """Runs a tool once. Its reports go to the call that owns it, which may change meanwhile (`EarlyExecutions`)."""

    call_id: str
    """The call it was begun for."""
    tool: Tool
    asked: JsonObject
    """Arguments as the model gave them."""
    arguments: JsonObject
    """Arguments in effect."""
    token: CancellationToken
    """What the tool sees."""
    grace: float
    """Seconds between telling it to stop and cancelling it, and again before it is given up."""
    metrics: dict[str, Metric]
    channel: UpdateChannel
    """The way of its reports."""
    began_at: float = field(default_factory=now)
    """Time of the event loop, in seconds."""
    ended_at: float | None = None
    answer: ToolResult | Crash | None = None
    """What the tool gave, or how it failed; None: it had to be cancelled."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    is_stopped: bool = False
    """Whether it was told to stop."""
    _stop_timeout: asyncio.Timeout | None = None
    _kill_timeout: asyncio.Timeout | None = None

    async def run(self, context: ToolContext) -> None:
        """Runs the tool to its end, unless it was stopped before; only a real cancellation passes through."""
        if self.is_stopped:
            self.over.set()
            return
        self._kill_timeout = asyncio.timeout(None)
        try:
            async with asyncio.timeout(None) as self._stop_timeout, self._kill_timeout:
                self.answer = await contained(Killable(self._result(context), self._kill_timeout.expired))
        except TimeoutError:
            pass
        finally:
            self._stop_timeout = self._kill_timeout = None
            self.ended_at = now()
            self.over.set()

    def stop(self, reason: str) -> None:
        """Tells the tool to stop: it sees its token, is cancelled after the grace, and is given up after as much again;
        one that is over is not touched."""
        if self.is_stopped:
            return
        self.is_stopped = True
        self.token.cancel(reason)
        if self._stop_timeout is not None and self._kill_timeout is not None:
            # Tools that it runs itself see the token at the same moment, and are abandoned after two graces.
            patience = 2 * self.grace + CLEANUP_SECONDS if self.tool.ends_calls_of_its_own else self.grace
            self._stop_timeout.reschedule(now() + patience)
            self._kill_timeout.reschedule(now() + patience + self.grace)

    def report(self, update: ToolUpdate) -> None:
        """Takes one of the tool's reports; one that comes while nobody owns the execution is late (C42)."""
        self.channel.report(update)

    async def _result(self, context: ToolContext) -> ToolResult:
        return with_json_details(as_tool_result(await self.tool.execute(copy_of(self.arguments), context)))
