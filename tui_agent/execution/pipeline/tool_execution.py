"""One execution of a tool function, independent of the call it serves."""

import asyncio
from dataclasses import dataclass, field

from tui_agent.execution.contained_calls import Crash, asked, contained, copy_of, try_call
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.reports import Metric
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolUpdate
from tui_agent.protocol.tool_result import as_tool_result
from tui_agent.protocol.trial import PendingChanges

from .update_channel import UpdateChannel

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
        self.proposal = self.proposal or changes

    async def discard_proposal(self) -> None:
        """Discard changes on which no call decides."""
        pending, self.proposal = self.proposal, None
        if pending is not None:
            await contained(pending.discard())
