"""One execution of a tool function, independent of the call it serves: it can be stopped, even against its will."""

import asyncio
from dataclasses import dataclass, field

from tui_agent.execution.json_coercion import with_json_details
from tui_agent.execution.untrusted_calls import CLEANUP_SECONDS, Crash, Killable, contained, copy_of, now
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolUpdate
from tui_agent.protocol.tool_result import as_tool_result
from tui_agent.protocol.trial import PendingChanges

from .update_channel import UpdateChannel


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
    """Seconds from the request to stop until the tool is cancelled, and again until it is abandoned."""
    metrics: dict[str, Metric]
    channel: UpdateChannel
    """Channel of its reports."""
    has_effects: bool = False
    """True if it may change something, so that it must not run twice for one call."""
    began_at: float = field(default_factory=now)
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
    _kill_timeout: asyncio.Timeout | None = None

    async def run(self, context: ToolContext) -> None:
        """Run the tool to its end, unless it was stopped before; raise nothing but a real cancellation."""
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
        """Ask the tool to stop: set its token, cancel it after the grace, and abandon it after as much again."""
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
        """Pass on one of the tool's reports; while no call owns the execution, it counts as late."""
        self.channel.report(update)

    def propose(self, changes: PendingChanges) -> None:
        """Receive what the tool changed in a trial; only the first proposal counts."""
        self.proposal = self.proposal or changes

    async def discard_proposal(self) -> None:
        """Discard changes on which no call decides."""
        pending, self.proposal = self.proposal, None
        if pending is not None:
            await contained(pending.discard())

    async def _result(self, context: ToolContext) -> ToolResult:
        return with_json_details(as_tool_result(await self.tool.execute(copy_of(self.arguments), context)))
