"""The scheduler decides when the calls of one message run: together or one by one, during the stream or after it.

Sequential, Parallel and Batched cut calls into waves: run a wave, commit its results, poll for steering, run the next
wave or skip it. Auto hands every call to the conflict order. Either way each call passes the executor's pipeline and
gets exactly one result, in call order.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from types import TracebackType
from typing import Literal, TypeAlias

from tui_agent.execution.executor import ToolExecutor
from tui_agent.execution.options import Auto
from tui_agent.execution.outcomes import (
    Outcome,
    cancelled,
    interrupted,
    output_limit,
    set_aside,
    sibling_failed,
    skipped,
)
from tui_agent.execution.pipeline.call_state import CallState, PreparedCall
from tui_agent.execution.pipeline.tool_execution import EarlyExecutions, JoinableTaskGroup
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import TRUNCATED, AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from tui_agent.protocol.reports import ToolCallReport
from tui_agent.protocol.tool import ToolResult, Verdict

from .call_batch import Batch, ToolExecutionResult, WaveNumbering
from .concurrency_gate import ConcurrencyGate, SteeringGetter, SteeringPoints, SteeringPoll
from .conflict_order import ConflictOrder

BatchPhase: TypeAlias = Literal["new", "open", "finishing", "finished", "discarding", "discarded"]


class ToolScheduler:
    """Scheduler for the calls of one message. An async context manager that outlives everything it started.

    ```python
    async with ToolScheduler(executor, cancellation=token) as scheduler:
        scheduler.submit(call)  # as often as calls arrive; safe ones start at once
        result = await scheduler.finish()  # or: await scheduler.discard("the stream broke")
    ```
    If `finish` is cancelled, it answers every call, publishes every event and raises the cancellation; `tool_results`
    and `steering_messages` then hold what would otherwise be lost. Without `finish`, leaving the context discards.
    """

    def __init__(
        self,
        executor: ToolExecutor,
        *,
        cancellation: CancellationToken | None = None,
        get_steering: SteeringGetter | None = None,
        step: int = 0,
        attempt: int = 1,
        on_result: Callable[[ToolResultMessage], None] | None = None,
        early: EarlyExecutions | None = None,
        steer_waits: Callable[[], bool] | None = None,
    ) -> None:
        """
        Args:
            executor: runs each call.
            cancellation: token of the run or step; each call gets a child of it.
            get_steering: returns waiting messages; polled by nothing else until `finish` has returned.
            step: number of the step, for tools.
            attempt: number of the attempt at the response that contains the calls, for `tool.started`.
            on_result: receives each result message when it is committed, in call order; must not raise.
            early: runs calls that start before the message is complete. Their executions survive `discard`, for a call
                of the next message that asks for the same. None: `discard` cancels them, and only calls without effects
                start early.
            steer_waits: returns True if a steering message waits; a call with effects then does not start early.

        Raises:
            ConfigurationError: `cancellation` is not a token.
        """
        if not isinstance(cancellation, CancellationToken | None):  # pyright: ignore[reportUnnecessaryIsInstance] — from a library user
            raise ConfigurationError(f"cancellation must be a CancellationToken or None, got {cancellation!r}")
        services = executor.services
        options = services.options
        self._executor = executor
        self._options = options
        self._token = cancellation or CancellationToken()
        self._step = step
        self._attempt = attempt
        self._early = early
        self._batch = Batch(executor, on_result)
        self._ids: set[str] = set()
        self._wave_numbering = None if isinstance(options.strategy, Auto) else WaveNumbering(options.strategy)
        self._poll = SteeringPoll(get_steering, services.publisher, self._token, options.grace)
        self._steering_points = SteeringPoints(
            options,
            self._poll,
            self._batch.states,
            has_waves=self._wave_numbering is not None,
            steer_waits=steer_waits,
        )
        order = ConflictOrder(options.grouping) if self._wave_numbering is None else None
        self._gate = ConcurrencyGate(order, self._steering_points, options.max_concurrency, services.publisher)
        self._phase: BatchPhase = "new"
        self._task_group = JoinableTaskGroup()

    async def __aenter__(self) -> "ToolScheduler":
        await self._task_group.__aenter__()
        self._phase = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._phase not in ("finished", "discarded"):
            self._cancel_all(self._token.reason)
        try:
            await self._task_group.__aexit__(kind, error, trace)
        finally:
            self._close()

    @property
    def tool_results(self) -> tuple[ToolResultMessage, ...]:
        """Result messages committed so far, in call order."""
        return tuple(self._batch.results)

    @property
    def steering_messages(self) -> tuple[UserMessage, ...]:
        """Messages received so far; a caller that is cancelled must return them to its queue."""
        return self._poll.found

    @property
    def busy_ms(self) -> float:
        """Sum of the milliseconds in which the finished calls ran; calls that overlapped count in full."""
        return self._batch.busy_ms

    def submit(self, call: ToolCall) -> None:
        """Add a call while the model still streams. It starts at once if it is valid, allowed without a question and,
        unless `stream_tools` is `allowed`, read-only and safe beside others; other calls wait for `finish`.

        Raises:
            ConfigurationError: a call of this message has the same id; nothing was published about this one.
            RuntimeError: the scheduler was not entered, or `finish` or `discard` was called.
        """
        self._expect_open()
        (state,) = self._received((call,))
        # Judged before it is published, so that the event can say whether the user will be asked.
        verdict = self._executor.early_verdict(state)
        self._add_state(state, verdict)
        if verdict == "allow":
            self._start_early(state)
        if not state.begun:
            # It is judged anew at its turn.
            state.admission.early = None

    def _start_early(self, state: CallState) -> None:
        """Start a call before its message is complete, unless that could run something twice or half."""
        early, call, prepared = self._early, state.received.call, state.prepared
        # First of all: what runs already must not be held back by what follows.
        claimed = early.claim(call.name, call.arguments) if early is not None else None
        if claimed is None:
            if early is not None and early.has_running_effects:
                return
            # A message that is cut before the first argument looks like a call without any.
            may_change = early is not None and early.takes_effects and bool(call.arguments)
            harmless = isinstance(prepared, PreparedCall) and prepared.is_harmless
            if not may_change and not harmless and state.turn.place != "trial":
                return
        state.run.early, state.run.claimed = early, claimed
        self._start(state)

    def _claim_effects(self, early: EarlyExecutions) -> None:
        """Let the calls that could not start early take over effects of a discarded response: they happen once."""
        for state in self._batch.states:
            call = state.received.call
            if not state.begun and not call.cut and isinstance(state.prepared, PreparedCall):
                claimed = early.claim(call.name, call.arguments, only_effects=True)
                # An effect that this call repeats has happened; only its result is still missing.
                if claimed is not None:
                    state.run.early, state.run.claimed = early, claimed

    def submit_all(self, calls: Sequence[ToolCall]) -> None:
        """Add calls of a complete message; none of them starts before `finish`.

        Raises:
            ConfigurationError: two calls of the message have the same id; nothing was published about these calls.
            RuntimeError: as for `submit`.
        """
        self._expect_open()
        for state in self._received(calls):
            self._add_state(state)

    async def finish(self, *, cut: bool = False, answer: AssistantMessage | None = None) -> ToolExecutionResult:
        """Run the submitted calls and wait for all of them.

        Args:
            answer: the complete message, for tools that use it (S3-15).
            cut: True if the message hit the output limit, which its `answer` may say, too: calls that have not ended
                then do not run.

        Returns:
            One result for each call, in call order; without calls, an empty result and no event (S0-2).

        Raises:
            RuntimeError: as for `submit`.
        """
        self._expect_open()
        self._phase = "finishing"
        states = self._batch.states
        for state in states:
            # Only now is the message complete; calls that run early never see it.
            state.answer = answer
        if self._early is not None:
            self._claim_effects(self._early)
            await self._settle(self._early)
        if states:
            cut = cut or (answer is not None and answer.stop_reason in TRUNCATED)
            if cut or any(state.received.call.cut for state in states):
                for state in states:
                    # Half an effect is worse than a whole one, and what has started was complete.
                    if state.prepared.read_only or not (state.started or state.run.repeats_effects):
                        state.stop(output_limit(started=state.started))
            # From here on polls are allowed, because no later call can change what a message means.
            self._gate.close()
            if any(state.approval.is_open for state in states):
                # A message that came while the response streamed could not withdraw a question before.
                self.notify_steering()
            if self._options.admits_first:
                await self._admit_all(states)
            if self._options.start_events == "upfront":
                # All of them before any call runs (S2-4).
                for state in states:
                    self._executor.publish_start(state)
            for wave in self._waves():
                await self._run(wave)
            await self._steering_points.at_the_end()
        if self._token.is_set():
            self._batch.halted = self._batch.halted or "aborted"
        self._phase = "finished"
        self._close()
        return self._batch.result(self._poll.found)

    async def discard(self, reason: str) -> tuple[ToolCallReport, ...]:
        """End all calls without result messages, because their message is discarded. Calls that had started are
        cancelled or, with `early`, kept for the next message.

        Returns:
            One report for each call, in call order.
        """
        self._expect_open()
        self._phase = "discarding"
        for state in self._batch.states:
            # One that has ended or not begun has nothing that a call of the next message could take over.
            keeps = state.run.early is not None and state.phase in ("running", "settling")
            state.set_aside(set_aside(reason) if keeps else cancelled(reason, started=state.started))
        await self._wait_until_idle()
        self._phase = "discarded"
        self._close()
        return self._batch.result(()).reports

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call, running or not; the others continue, and the model reads the reason as its result.

        Returns:
            False if the call has ended, is being stopped already, or is unknown.
        """
        state = self._stoppable(call_id)
        if state is not None:
            state.cancel(reason)
        return state is not None

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call more time.

        Returns:
            Its new time limit in seconds from its start; None: it has no limit, does not run, is being stopped, or is
            unknown.
        """
        state = self._stoppable(call_id)
        return None if state is None else self._executor.extend_time_limit(state, seconds)

    def mark_interrupted(self, call_id: str, text: str) -> bool:
        """Answer a call whose effect is unknown, such as one that an earlier process started before it died.

        It does not run; its status is `interrupted` and `text` is all the model reads. False: it is over, is being
        stopped already, or is unknown.
        """
        state = self._stoppable(call_id)
        if state is not None:
            state.stop(interrupted(text))
        return state is not None

    def answer_call(self, call_id: str, result: ToolResult) -> bool:
        """Give a call the result that its execution had in an earlier process, so that it does not run again.

        Returns:
            False if the call has ended, is being stopped already, or is unknown.
        """
        state = self._stoppable(call_id)
        if state is not None:
            state.stop(Outcome("overridden", result))
        return state is not None

    def resume_changes(self, call_id: str, layer_of: str, discards: str = "") -> None:
        """Decide on the changes of a call that ran in an earlier process, instead of running it again.

        Does nothing for a call that has ended, is being stopped, or is unknown.

        Args:
            call_id: the call.
            layer_of: id of the call under which its layer waits.
            discards: reason to discard the changes without a question; empty: they are decided on.
        """
        state = self._stoppable(call_id)
        if state is not None:
            state.run.resumed_from, state.run.discards = layer_of, discards

    def notify_steering(self) -> None:
        """Report that a message waits, so that modes `before_effects` and `interrupt` poll for it at once.

        May be called at any time; while the calls are being cancelled, the message stays queued.
        """
        is_open = any(state.phase != "over" for state in self._batch.states)
        if self._phase == "finishing" and is_open and self._task_group.takes_work:
            self._task_group.start(self._steering_points.poll_on_message())

    def _stoppable(self, call_id: str) -> CallState | None:
        for state in self._batch.states:
            # The first one to stop a call gives the reason.
            stoppable = state.phase in ("waiting", "running", "settling") and state.stopping is None
            if state.received.call.id == call_id and stoppable:
                return state
        return None

    def _received(self, calls: Sequence[ToolCall]) -> list[CallState]:
        """Return the states of new calls; the first calls of a message are published as a batch."""
        for call in calls:
            # Results are matched by id: the second call would take the first one's.
            if call.id in self._ids:
                raise ConfigurationError(f"duplicate tool call id {call.id!r} in one message")
            self._ids.add(call.id)
        states: list[CallState] = []
        for index, call in enumerate(calls, len(self._batch.states)):
            state = self._executor.receive(
                call,
                index=index,
                step=self._step,
                attempt=self._attempt,
                token=self._token,
                turns=self._gate,
            )
            if self._wave_numbering is not None:
                state.turn.wave = self._wave_numbering.place(alone=state.alone)
            states.append(state)
        if states:
            self._batch.begin(states)
        return states

    def _add_state(self, state: CallState, early: Verdict | None = None) -> None:
        self._batch.states.append(state)
        self._executor.publish_queued(state, early)
        self._gate.add(state, settled="before_tool" not in self._executor.services.hooks.events)

    def _waves(self) -> list[list[CallState]]:
        """Return the calls that start together; with Auto all do, and the conflict order holds them back."""
        if self._wave_numbering is None:
            return [self._batch.states]
        waves = [list(wave) for _, wave in groupby(self._batch.states, key=lambda state: state.turn.wave)]
        self._gate.publish_waits(waves)
        return waves

    async def _admit_all(self, states: Sequence[CallState]) -> None:
        """Have every call judged and approved before any of them runs (S1-3)."""
        async with asyncio.TaskGroup() as group:
            for state in states:
                if not state.begun:
                    group.create_task(self._executor.admit(state))
        for state in states:
            # Rules, mode and files of the moment in which a call runs count, not those of now.
            state.admission.stale = True
            if state.admission.refusal is not None:
                # No other call has to wait for one that never runs.
                self._gate.leave(state)

    async def _run(self, wave: Sequence[CallState]) -> None:
        """Run a wave, commit its results and poll for steering; a message stops the calls of later waves."""
        for state in wave:
            self._start(state)
        await self._wait_until_idle()
        await self._batch.commit(wave)
        if self._wave_numbering is not None:
            await self._steering_points.after_wave(len(wave))

    def _start(self, state: CallState) -> None:
        if not state.begun:
            state.begun = True
            self._task_group.start(self._run_task(state))

    async def _run_task(self, state: CallState) -> None:
        """Run one call in its own task."""
        try:
            await self._executor.execute(state)
        finally:
            if state.run.early is not None and state.run.claimed is not None:
                state.run.early.set_aside(state.run.claimed)
            self._gate.leave(state)
            self._apply_consequences(state)
        async with self._steering_points.after_call(state):
            if state.end_published:
                await self._executor.observe(state)
                # While the model still streams, the message may yet be discarded.
                if self._options.message_events == "completion" and self._phase == "finishing":
                    self._executor.publish_message(state)

    def _apply_consequences(self, state: CallState) -> None:
        """Stop the other calls as far as this one's outcome requires it."""
        if state.finished is None:
            return
        outcome = state.finished.outcome
        # Refusals are left out: a call that never ran has not failed at its work.
        if outcome.status in ("error", "timeout") and self._options.sibling_abort and _aborts_siblings(state):
            for other in self._batch.states:
                other.stop(sibling_failed(state.received.call.name, state.received.call.id, started=other.started))
        if outcome.halts is not None:
            # The first reason is the cause; what follows is mostly its consequence.
            if self._batch.halted is None:
                self._batch.halted, self._batch.halted_why = outcome.halts, outcome.why or outcome.result.text
            for other in self._batch.states:
                if other.phase == "waiting":
                    other.stop(skipped("rejected" if outcome.halts == "stopped" else "failed"))

    async def _settle(self, early: EarlyExecutions) -> None:
        """Wait until no effect of a discarded response runs; in mode `interrupt` poll for steering meanwhile."""
        # A message may stop a call that has taken over such an effect.
        self._steering_points.known.set()
        while not await early.settle(self._pause):
            await self._steering_points.poll()

    async def _wait_until_idle(self) -> None:
        """Wait for every task; in mode `interrupt` poll for steering meanwhile."""
        while not await self._task_group.until_idle(self._pause):
            await self._steering_points.poll()

    @property
    def _pause(self) -> float | None:
        """Seconds between two polls while calls run; None: the mode does not poll then."""
        return self._options.interrupt_interval if self._steering_points.polls_while_running else None

    def _cancel_all(self, reason: str) -> None:
        for state in self._batch.states:
            state.cancel(reason)

    def _close(self) -> None:
        """Answer every call without an answer, commit the results and publish the end of the batch, once."""
        for state in self._batch.states:
            # A task that was cancelled before its first turn of the event loop ends nothing itself.
            if state.finished is None:
                self._executor.end(state, state.stopping or cancelled("", started=state.started))
        if self._phase in ("finishing", "finished"):
            self._batch.commit_now()
        else:
            self._batch.give_up()
        self._batch.end(len(self._poll.found))
        self._gate.end()

    def _expect_open(self) -> None:
        if self._phase == "new":
            raise RuntimeError("enter the scheduler before submitting calls: async with ToolScheduler(…) as scheduler")
        if self._phase != "open":
            raise RuntimeError(f"this scheduler is {self._phase}; each message needs a new one")


def _aborts_siblings(state: CallState) -> bool:
    return state.prepared.tool is not None and state.prepared.tool.aborts_siblings
