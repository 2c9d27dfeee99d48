"""One attempt to get one answer of the model, with its calls.

Stream events are folded and published as they arrive, and calls that may start early do. In the end either the answer
is kept with a result for each of its calls, or all of it is discarded.
"""

import time
from collections.abc import AsyncIterator, Callable, Coroutine

from tui_agent.execution import ToolExecutionResult, ToolScheduler
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ProviderError
from tui_agent.protocol.events import MessageDelta, MessageDiscarded, MessageStarted
from tui_agent.protocol.messages import AssistantMessage
from tui_agent.protocol.provider import ModelRequest, StreamEvent
from tui_agent.protocol.value_checks import shown_value

from .agent_state import AgentState
from .answer_problems import EmptyAnswerError, full_window, missing_stop_reason
from .response_accumulator import (
    StepState,
    accumulate,
    build_message,
    build_partial,
    finalize_unended_tool_calls,
    read_stream,
)
from .stop_tokens import unless_cancelled

Problem = ProviderError | OperationCancelledError
"""Reason for an incomplete answer."""


class Attempt:
    """One attempt. Call `listen`, then `keep` and `run_calls` or `discard_answer`, and `keep_partial` in any case."""

    def __init__(
        self,
        agent: AgentState,
        scheduler: ToolScheduler,
        token: CancellationToken,
        on_message_over: Callable[["Attempt"], None],
    ) -> None:
        """
        Args:
            agent: the agent.
            scheduler: runs the calls; the caller opens and closes it.
            token: the token of this attempt alone; it ends stream and calls.
            on_message_over: called once, when the answer was kept or discarded.
        """
        self.state = StepState(is_taken=agent.takes_call)
        self.answer: AssistantMessage | None = None
        """The answer that was kept."""
        self.calls = ToolExecutionResult()
        """The results of its calls."""
        self.model_ms = 0.0
        """Milliseconds until the stream ended."""
        self.begun = False
        """True if any part of the answer was published, so that a failure has something to discard."""
        self.provider = agent.provider
        """The model that answers; the user may choose another one meanwhile, for the next request."""
        self._agent = agent
        self._scheduler = scheduler
        self._token = token
        self._on_message_over = on_message_over
        self._submits_early = agent.config.options.stream_tools != "off"
        self._message_is_over = False
        self._calls_are_over = False

    async def listen(self, request: ModelRequest) -> Problem | None:
        """Read the model's stream to its end. The connection is closed when this returns or is cancelled.

        Returns:
            None if the answer is complete and not empty; else the problem.
        """
        began = time.monotonic()
        try:
            await unless_cancelled(self._token, self._drain(request))
        except (ProviderError, OperationCancelledError) as problem:
            return problem
        finally:
            self.model_ms = (time.monotonic() - began) * 1000
        # A connection that closes quietly looks like an end; without a reason it was none.
        if self.state.stop_reason is None:
            return missing_stop_reason()
        if self.state.stop_reason == "model_context_window_exceeded":
            return full_window()
        # A refusal ends the run with a message of its own.
        if not self.state.is_empty or self.state.stop_reason == "refusal":
            return None
        return EmptyAnswerError(self.state.stop_reason, self.state.detail)

    def keep(self) -> AssistantMessage:
        """Append the complete answer to the conversation, submit all of its calls, and return it.

        An answer without text and calls cannot be sent back to the model; it is published as discarded.
        """
        # Some servers never end their calls.
        late = finalize_unended_tool_calls(self.state)
        answer = build_message(self.state)
        # A call without an end may be incomplete even if its arguments happen to be valid: it never starts early.
        self._scheduler.submit_all(late if self._submits_early else answer.tool_calls)
        if self.state.is_empty:
            self._discard("it is empty")
        else:
            self._keep(answer)
        return answer

    def refuse_calls(self, reason: str) -> None:
        """Cancel the calls; `run_calls` then only gives them results."""
        self._token.cancel(reason)

    async def run_calls(self, *, cut: bool = False) -> None:
        """Run the calls that have not started early, and wait for all of them.

        Args:
            cut: True if the answer hit the output limit: its calls may be incomplete and do not run.
        """
        self._calls_are_over = True
        self.calls = await self._scheduler.finish(cut=cut, answer=self.answer)

    async def discard_answer(self, reason: str) -> None:
        """Discard the answer. Calls that have started continue: the next attempt may make the same calls."""
        self._calls_are_over = True
        self._discard(reason)
        await self._scheduler.discard(reason)

    async def keep_partial(self, reason: str) -> None:
        """Keep the usable part of an answer that broke off, and give its calls results.

        Does nothing if the answer was kept and its calls were run, or if it was discarded.
        """
        if not self._message_is_over:
            partial = build_partial(self.state)
            if partial is None:
                self._discard(reason)
            else:
                if not self._submits_early:
                    self._scheduler.submit_all(partial.tool_calls)
                self._keep(partial)
        if not self._calls_are_over:
            self._token.cancel(reason)
            await self.run_calls()

    async def _drain(self, request: ModelRequest) -> None:
        await self._agent.flush_events()
        await read_stream(_expect_stream(self.provider.stream(request)), self._take)

    def _take(self, event: StreamEvent) -> None:
        folded = accumulate(self.state, event)
        if folded is None:
            return
        # The start is published with the first piece, so that an attempt that fails before it leaves no message.
        self._begin()
        if isinstance(folded, MessageDelta):
            self._agent.publisher.publish(folded)
        elif self._submits_early:
            self._scheduler.submit(folded)

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            self._agent.publisher.publish(MessageStarted(message_id=self.state.message_id, role="assistant"))

    def _keep(self, answer: AssistantMessage) -> None:
        self._begin()
        self._message_is_over = True
        self.answer = answer
        self._agent.end_message(answer, latency_ms=self.model_ms)
        self._on_message_over(self)

    def _discard(self, reason: str) -> None:
        self._message_is_over = True
        if self.begun:
            self._agent.publisher.publish(MessageDiscarded(message_id=self.state.message_id, reason=reason))
        self._on_message_over(self)


def _expect_stream(stream: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
    """Return the stream of a provider.

    Raises:
        ProviderError: a provider's `stream` returned something that cannot be read event by event.
    """
    if isinstance(stream, AsyncIterator):  # pyright: ignore[reportUnnecessaryIsInstance] — providers may be untyped
        return stream
    if isinstance(stream, Coroutine):
        stream.close()
    raise ProviderError(
        "The provider's stream cannot be read: stream() must be an `async def` that yields, or a plain function that "
        f"returns an async iterator; it returned {shown_value(stream)}.",
        kind="bad_response",
    )
