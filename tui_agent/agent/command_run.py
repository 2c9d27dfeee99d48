"""A run of one call that the user made: the model is not asked, and the call passes the same pipeline as any other.

What the user typed is not judged: it runs as in a terminal, unless a hook or guardrail ends it.
"""

import time

from tui_agent.execution import ToolScheduler
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.protocol.events import AgentEvent, MessageEnded, MessageStarted, Noticed, RunEnded, RunStarted
from tui_agent.protocol.messages import ToolCall, ToolResultMessage, Usage, UserMessage, new_id, user_message
from tui_agent.protocol.permissions import DECIDED_BY_USER
from tui_agent.protocol.reports import RunReason, ToolCallReport

from .agent_state import AgentState
from .run_input import MessageDelivery, as_user_message
from .stop_tokens import ABORT_REQUESTED, StopTokens

NEVER_RAN = frozenset(
    (
        *("denied_policy", "denied_user", "denied_hook", "denied_guardrail", "invalid", "not_found"),
        *("skipped_user", "skipped_hook", "skipped_steering", "withheld"),
    )
)
"""Statuses of calls that did not run, so that the model has nothing to learn from them."""


class CommandRun:
    """One call that the user made. Call `execute` once; `abort` may be called at any time."""

    def __init__(self, agent: AgentState, call: ToolCall, said: str, *, shared: bool, typed: bool = False) -> None:
        """
        Args:
            agent: the agent with the tools, permissions and conversation.
            call: the call.
            said: the command as the user typed it.
            shared: True if the result becomes part of the conversation, for the model to read.
            typed: True if the user typed exactly this call, which then needs no permission.
        """
        self.id = new_id("run")
        self._agent = agent
        self._call = call
        self._said = said
        self._shared = shared
        self._typed = typed
        self._stop_tokens = StopTokens.linked_to(agent.config.cancellation)
        self._began = time.monotonic()
        self._report: ToolCallReport | None = None
        self._scheduler: ToolScheduler | None = None
        self._waited_before = agent.publisher.waits.ms

    async def execute(self) -> ToolResultMessage:
        """Run the call to its end and return its result; a failure of the tool is a result, not an exception."""
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
        """Do nothing: no step follows a command."""

    def abort(self, reason: str) -> None:
        """Cancel the call; its output so far is kept."""
        if not self._stop_tokens.now.is_set():
            self._agent.publisher.publish(Noticed(code=ABORT_REQUESTED, text=f"The command ends now: {reason}."))
            self._stop_tokens.now.cancel(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel the call if it has this id; False otherwise."""
        if call_id == self._call.id:
            self.abort(reason)
        return call_id == self._call.id

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give the call more time if it has this id; return its new limit, or None if it has none or does not run."""
        return self._scheduler.extend_call(call_id, seconds) if self._scheduler is not None else None

    def count(self, usage: Usage, cost: float | None) -> None:
        """Do nothing: the agent counts the usage, and a run of one call has no sums of its own."""

    def overrun(self) -> str | None:
        """Return None: a command has no limits."""

    def notify_steering(self) -> None:
        """Do nothing: messages stay queued until the call ends."""

    async def _run_call(self) -> ToolResultMessage:
        bus = _WithoutMessages(self._agent.publisher)
        # The effects are published before the end of the call, because no step follows that would wait for them.
        executor = self._agent.executor.publishing_to(bus, agent=DECIDED_BY_USER, judges=not self._typed)
        async with ToolScheduler(executor, cancellation=self._stop_tokens.now) as scheduler:
            self._scheduler = scheduler
            scheduler.submit_all((self._call,))
            done = await scheduler.finish()
        self._report = done.reports[0]
        return done.tool_results[0]

    async def _share(self, result: ToolResultMessage) -> None:
        """Append the result to the repaired conversation; a message that filters had no time to check is dropped."""
        # The model would take the refusal for a fact about the project.
        if self._report is not None and self._report.status in NEVER_RAN:
            return
        # The last run may have left a call without a result, behind which no message may stand.
        self._agent.history.repair()
        said = as_user_message(user_message(f"I ran this myself: {self._said}\n\n{result.text}", "command"))
        try:
            message = await MessageDelivery(self._agent, self._stop_tokens.now).apply_input_filters(said, "prompt")
        # Unchecked text must not reach the model; the user sees the output all the same.
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
    """Publishes all events but result messages: no message asked for this call, so none answers it."""

    def __init__(self, bus: Publisher) -> None:
        self._bus = bus

    def publish(self, event: AgentEvent) -> None:
        """Publish an event unless it belongs to a message."""
        if not isinstance(event, MessageStarted | MessageEnded):
            self._bus.publish(event)
