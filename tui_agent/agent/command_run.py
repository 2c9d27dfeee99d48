"""A run that is one call of the person's own: no model is asked, and the call goes through the same pipeline as any."""

import time

from tui_agent.execution import ToolScheduler
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.protocol.events import AgentEvent, MessageEnded, MessageStarted, Noticed, RunEnded, RunStarted
from tui_agent.protocol.messages import ToolCall, ToolResultMessage, Usage, UserMessage, new_id, user_message
from tui_agent.protocol.permissions import DECIDED_BY_USER
from tui_agent.protocol.reports import RunReason, ToolCallReport

from .agent_state import AgentState
from .message_delivery import MessageDelivery
from .run_input import as_user_message
from .status import ABORT_REQUESTED
from .stop_tokens import StopTokens

NEVER_RAN = frozenset(
    (
        *("denied_policy", "denied_user", "denied_hook", "denied_guardrail", "invalid", "not_found"),
        *("skipped_user", "skipped_hook", "skipped_steering", "withheld"),
    )
)
"""Statuses of calls that gave nothing a model could learn from."""


class CommandRun:
    """One call that a person made. `execute` it once; `abort` may come at any time."""

    def __init__(self, agent: AgentState, call: ToolCall, said: str, *, shared: bool) -> None:
        """
        Args:
            agent: whose tools, permissions and conversation they are.
            call: what is called.
            said: as the person typed it.
            shared: whether what it gives becomes part of the conversation, for the model to read.
        """
        self.id = new_id("run")
        self._agent = agent
        self._call = call
        self._said = said
        self._shared = shared
        self._stop_tokens = StopTokens.linked_to(agent.config.cancellation)
        self._began = time.monotonic()
        self._report: ToolCallReport | None = None
        self._waited_before = agent.publisher.waits.ms

    async def execute(self) -> ToolResultMessage:
        """Runs the call to its end and returns what it gave; a failure of the tool is a result, not an exception."""
        agent, reason = self._agent, "aborted"
        agent.publisher.move(run_id=self.id)
        started = RunStarted(
            input=self._said, trigger="command", model=agent.provider.model.name, mode=agent.policy.mode
        )
        agent.publisher.publish(started)
        try:
            result = await self._run_call()
            if self._shared:
                await self._share(result)
            reason = "aborted" if self._stop_tokens.now.is_set() else "done"
        finally:
            self._end(reason)
        return result

    def stop(self) -> None:
        """There is no step after this one to keep from."""

    def abort(self, reason: str) -> None:
        """Cancels the call; what it gave so far is kept."""
        if not self._stop_tokens.now.is_set():
            self._agent.publisher.publish(Noticed(code=ABORT_REQUESTED, text=f"The command ends now: {reason}."))
            self._stop_tokens.now.cancel(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancels the call if it is this one."""
        if call_id == self._call.id:
            self.abort(reason)
        return call_id == self._call.id

    def count(self, usage: Usage, cost: float | None) -> None:
        """The agent has counted it; a run of one call has no sums of its own."""

    def overrun(self) -> str | None:
        """A command has no limits."""

    def notify_steering(self) -> None:
        """A message waits until the call is over."""

    async def _run_call(self) -> ToolResultMessage:
        executor = self._agent.executor.publishing_to(_WithoutMessages(self._agent.publisher), agent=DECIDED_BY_USER)
        async with ToolScheduler(executor, cancellation=self._stop_tokens.now) as scheduler:
            scheduler.submit_all((self._call,))
            done = await scheduler.finish()
        self._report = done.reports[0]
        return done.tool_results[0]

    async def _share(self, result: ToolResultMessage) -> None:
        """Makes what it gave part of the conversation, behind a conversation that is whole; what filters had no time
        to look at does not pass."""
        if self._report is not None and self._report.status in NEVER_RAN:
            return
        self._agent.history.repair()
        said = as_user_message(user_message(f"I ran this myself: {self._said}\n\n{result.text}", "command"))
        try:
            message = await MessageDelivery(self._agent, self._stop_tokens.now).apply_input_filters(said, "prompt")
        except OperationCancelledError:
            return
        if isinstance(message, UserMessage):
            self._agent.add_message(message)

    def _end(self, reason: RunReason) -> None:
        self._agent.publisher.move(run_id=self.id)
        self._agent.publisher.publish(
            RunEnded(
                reason=reason,
                error=self._stop_tokens.now.reason if self._stop_tokens.now.is_set() else None,
                tool_calls=1,
                total_ms=(time.monotonic() - self._began) * 1000,
                tool_ms=self._report.latency_ms if self._report else 0.0,
                approval_ms=self._agent.publisher.waits.ms - self._waited_before,
            )
        )


class _WithoutMessages:
    """Tells everything but result messages: no message asked for this call, so none answers it."""

    def __init__(self, bus: Publisher) -> None:
        self._bus = bus

    def publish(self, event: AgentEvent) -> None:
        """Tells one event, or does not."""
        if not isinstance(event, MessageStarted | MessageEnded):
            self._bus.publish(event)
