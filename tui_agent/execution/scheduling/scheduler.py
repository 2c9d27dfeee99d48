"""WHEN calls run: together or one by one, and while the model still talks or after it.

Sequential, Parallel and Batched cut calls into waves: run a wave, commit its results, poll for steering, run the next
or skip what is left. Auto hands every call to the conflict order. Either way each call goes through the same pipeline
of the executor, and each gets exactly one result, in call order.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import groupby
from types import TracebackType
from typing import Literal, TypeAlias

from tui_agent.execution.execution_services import Engine
from tui_agent.execution.executor import ToolExecutor
from tui_agent.execution.joinable_task_group import JoinableTaskGroup
from tui_agent.execution.outcomes import (
    Outcome,
    cancelled,
    interrupted,
    output_limit,
    set_aside,
    sibling_failed,
    skipped,
)
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.execution.pipeline.early_executions import EarlyExecutions
from tui_agent.execution.pipeline.receive_call import early_verdict, publish_queued, receive
from tui_agent.execution.pipeline.run_tool import publish_start
from tui_agent.execution.strategy import Auto, WaveNumbering
from tui_agent.execution.untrusted_calls import copy_of
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import TRUNCATED, AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from tui_agent.protocol.reports import ToolCallReport
from tui_agent.protocol.tool import ToolResult, Verdict

from .call_batch import Batch, ToolExecutionResult
from .concurrency_gate import ConcurrencyGate
from .conflict_order import ConflictOrder
from .steering_points import SteeringPoints
from .steering_poll import SteeringGetter, SteeringPoll

BatchPhase: TypeAlias = Literal["new", "open", "taking", "finishing", "finished", "discarding", "discarded"]


class ToolScheduler:
    """The calls of one message. An async context manager: nothing it began outlives it.

    ```python
    async with ToolScheduler(executor, cancellation=token) as scheduler:
        scheduler.submit(call)  # as often as calls come; safe ones begin at once
        result = await scheduler.finish()  # or: await scheduler.discard("the stream broke")
    ```
    Cancelled in `finish`, it answers every call, tells every event, and lets the cancellation go on; `tool_results`
    and `steering_messages` then hold what would otherwise be lost. Left without `finish`, it discards.
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
    ) -> None:
        """
        Args:
            executor: runs each call.
            cancellation: token of the run or step; each call gets a child of it.
            get_steering: hands over waiting messages; polled here and nowhere else until `finish` returned (C8).
            step: number of the step, for tools.
            attempt: number of the attempt at the answer in which the calls stand, for `tool.started`.
            on_result: takes each result message as it is committed, in call order; must not raise.
            early: where calls run that begin before the message is complete; what began there outlives `discard`, and
                is taken over by a call of the next message that asks for the same. None: discarded calls are cancelled.

        Raises:
            ConfigurationError: `cancellation` is no token.
        """
        if not isinstance(cancellation, CancellationToken | None):  # pyright: ignore[reportUnnecessaryIsInstance] — from a library user
            raise ConfigurationError(f"cancellation must be a CancellationToken or None, got {cancellation!r}")
        engine = executor.engine
        strategy = engine.options.strategy
        self._executor = executor
        self._engine = engine
        self._options = engine.options
        self._token = cancellation or CancellationToken()
        self._step = step
        self._attempt = attempt
        self._early = early
        self._batch = Batch(executor, on_result)
        self._ids: set[str] = set()
        self._wave_numbering = None if isinstance(strategy, Auto) else WaveNumbering(strategy)
        self._poll = SteeringPoll(get_steering, engine.publisher, self._token, engine.options.grace)
        self._steering_points = SteeringPoints(
            engine.options, self._poll, self._batch.states, has_waves=self._wave_numbering is not None
        )
        order = ConflictOrder(engine.options.grouping) if self._wave_numbering is None else None
        self._gate = ConcurrencyGate(order, self._steering_points, engine.options.max_concurrency, engine.publisher)
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
        """Messages taken over so far; whoever is cancelled must give them back to their queue (P22)."""
        return self._poll.found

    @property
    def busy_ms(self) -> float:
        """Milliseconds of execution of the calls that are over, together."""
        return self._batch.busy_ms

    @property
    def late_updates(self) -> int:
        """Reports that came after their call's end and were dropped (C42)."""
        return sum(state.channel.late for state in self._batch.states if state.channel is not None)

    def submit(self, call: ToolCall) -> None:
        """Takes a call while the model still talks; under `stream_tools=safe_only` it begins at once if it is valid,
        read-only, safe beside others and allowed without a question (C28). All others wait for `finish`.

        Raises:
            ConfigurationError: a call of this message has the same id; nothing was told of this one.
        """
        with self._submitting():
            (state,) = self._received((call,))
            verdict = early_verdict(self._engine, state)
            self._add_state(state, verdict)
        if verdict == "allow":
            state.early = self._early
            state.claimed = self._early.claim(call.name, call.arguments) if self._early else None
            self._start(state)

    def submit_all(self, calls: Sequence[ToolCall]) -> None:
        """Takes all calls of a message that is complete; none begins before `finish`.

        Raises:
            ConfigurationError: two calls of the message have the same id; nothing was told of these.
        """
        with self._submitting():
            for state in self._received(calls):
                self._add_state(state)

    async def finish(self, *, cut: bool = False, answer: AssistantMessage | None = None) -> ToolExecutionResult:
        """Runs what was submitted and waits for all of it.

        Args:
            answer: the complete message, for tools that want to know it (S3-15).
            cut: the message hit the output limit, as one does whose `answer` says so: whatever has not ended by now
                does not run (C29).

        Returns:
            One result for each call, in call order; an empty result, and no event, where there was no call (S0-2).
        """
        self._expect_open()
        self._phase = "finishing"
        states = self._batch.states
        # A copy: it is the conversation's, and tools see it.
        answer = copy_of(answer)
        for state in states:
            state.answer = answer
        if self._early is not None:
            self._early.drop_all()
        if states:
            cut = cut or (answer is not None and answer.stop_reason in TRUNCATED)
            if cut or any(state.call.cut for state in states):
                for state in states:
                    state.stop(output_limit(started=state.started))
            self._gate.close()
            if self._options.admits_first:
                await self._admit_all(states)
            if self._options.start_events == "upfront":
                _publish_starts(self._engine, states)
            for wave in self._waves():
                await self._run(wave)
            await self._steering_points.at_the_end()
        if self._token.is_set():
            self._batch.halted = self._batch.halted or "aborted"
        self._phase = "finished"
        self._close()
        return self._batch.result(self._poll.found)

    async def discard(self, reason: str) -> tuple[ToolCallReport, ...]:
        """Ends what was submitted, because its message is thrown away; there are no result messages. What had begun is
        cancelled, or kept with `early` for the message that comes next.

        Returns:
            One report for each call, in call order.
        """
        self._expect_open()
        self._phase = "discarding"
        for state in self._batch.states:
            keeps = state.early is not None and state.phase == "running"
            state.set_aside(set_aside(reason) if keeps else cancelled(reason, started=state.started))
        await self._wait_until_idle()
        self._phase = "discarded"
        self._close()
        return self._batch.result(()).reports

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Takes one call back; the others go on, and the model is told the reason. False: it is over, or unknown."""
        state = self._stoppable(call_id)
        if state is not None:
            state.cancel(reason)
        return state is not None

    def mark_interrupted(self, call_id: str, text: str) -> bool:
        """Answers a call of which nobody can say what it did, such as one that a process began before it died (P82).

        It does not run; its status is `interrupted` and `text` is all the model is told. False: it is over, or unknown.
        """
        state = self._stoppable(call_id)
        if state is not None:
            state.stop(interrupted(text))
        return state is not None

    def answer_call(self, call_id: str, result: ToolResult) -> bool:
        """Answers a call that ran in an earlier process with what it gave then; it does not run again. False: it is
        over, or unknown."""
        state = self._stoppable(call_id)
        if state is not None:
            state.stop(Outcome("overridden", result))
        return state is not None

    def notify_steering(self) -> None:
        """A message waits: modes `before_effects` and `interrupt` poll for it now instead of at the next boundary.

        May be called at any time: while the calls are being cancelled nobody looks, and the message waits on.
        """
        if self._phase == "finishing" and self._task_group.is_busy and self._task_group.takes_work:
            self._task_group.start(self._steering_points.poll_on_message())

    def _stoppable(self, call_id: str) -> CallState | None:
        for state in self._batch.states:
            if state.call.id == call_id and state.phase in ("waiting", "running") and state.stopping is None:
                return state
        return None

    @contextmanager
    def _submitting(self) -> Generator[None]:
        """Keeps whoever is asked about a call, such as a predicate of its tool, from submitting another in between."""
        self._expect_open()
        self._phase = "taking"
        try:
            yield
        finally:
            self._phase = "open"

    def _received(self, calls: Sequence[ToolCall]) -> list[CallState]:
        """The calls with their places; the first of a message are told as a batch."""
        for call in calls:
            if call.id in self._ids:
                raise ConfigurationError(f"two calls of one message have the id {call.id!r}; a result names its call")
            self._ids.add(call.id)
        states: list[CallState] = []
        for index, call in enumerate(calls, len(self._batch.states)):
            state = receive(self._engine, call, index=index, step=self._step, token=self._token, turns=self._gate)
            state.attempt = self._attempt
            if self._wave_numbering is not None:
                state.group = self._wave_numbering.place(alone=state.alone)
            states.append(state)
        if states:
            self._batch.begin(states)
        return states

    def _add_state(self, state: CallState, early: Verdict | None = None) -> None:
        self._batch.states.append(state)
        publish_queued(self._engine, state, early)
        self._gate.add(state, settled=not self._engine.hooks.has("before_tool"))

    def _waves(self) -> list[list[CallState]]:
        """Calls that are let go together; Auto lets all go at once, and the conflict order says who waits for whom."""
        if self._wave_numbering is None:
            return [self._batch.states]
        waves = [list(wave) for _, wave in groupby(self._batch.states, key=lambda state: state.group)]
        self._gate.publish_waits(waves)
        return waves

    async def _admit_all(self, states: Sequence[CallState]) -> None:
        """Has every call judged, and asked about, before the next one runs (S1-3)."""
        async with asyncio.TaskGroup() as group:
            for state in states:
                if not state.begun:
                    group.create_task(self._executor.admit(state))
        for state in states:
            # Rules, mode and files are those of the moment in which it runs.
            state.stale = True
            if state.refusal is not None:
                # Nobody waits for what is known never to run.
                self._gate.leave(state)

    async def _run(self, wave: Sequence[CallState]) -> None:
        """Runs a wave, commits its results and looks for steering; found, it leaves later waves nothing but skips."""
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
        """A call's own task."""
        try:
            await self._executor.execute(state)
        finally:
            if state.early is not None and state.claimed is not None:
                state.early.set_aside(state.claimed)
            self._gate.leave(state)
            self._apply_consequences(state)
        async with self._steering_points.after_call(state):
            if state.end_published:
                await self._executor.observe(state)
                # A call that ended while the model still talks is answered once its message is sure to stay.
                if self._options.message_events == "completion" and self._phase == "finishing":
                    self._executor.publish_message(state)

    def _apply_consequences(self, state: CallState) -> None:
        """What one call's end means for the others (C26, C27, C44)."""
        outcome = state.outcome
        if outcome is None:
            return
        if outcome.status in ("error", "timeout") and self._options.sibling_abort and _aborts_siblings(state):
            for other in self._batch.states:
                other.stop(sibling_failed(started=other.started))
        if outcome.halts is not None:
            if self._batch.halted is None:
                self._batch.halted, self._batch.halted_why = outcome.halts, outcome.why or outcome.result.text
            for other in self._batch.states:
                if other.phase == "waiting":
                    other.stop(skipped("rejected" if outcome.halts == "stopped" else "failed"))

    async def _wait_until_idle(self) -> None:
        """Waits for every task; in mode `interrupt` it looks for steering meanwhile."""
        pause = self._options.interrupt_interval if self._steering_points.polls_while_running else None
        while not await self._task_group.until_idle(pause):
            await self._steering_points.poll()

    def _cancel_all(self, reason: str) -> None:
        for state in self._batch.states:
            state.cancel(reason)

    def _close(self) -> None:
        """Answers what has no answer yet, commits what is to be committed, and tells the end of the batch; once."""
        for state in self._batch.states:
            if state.ended is None:
                self._executor.end(state, state.stopping or cancelled("", started=state.started))
        if self._phase in ("finishing", "finished"):
            self._batch.commit_now()
        else:
            self._batch.give_up()
        self._batch.end(len(self._poll.found))
        self._gate.end()

    def _expect_open(self) -> None:
        if self._phase == "new":
            raise RuntimeError("a scheduler is entered before it takes calls: async with ToolScheduler(…) as scheduler")
        if self._phase == "taking":
            raise RuntimeError("a call is submitted while another is taken in; whoever is asked about one submits none")
        if self._phase != "open":
            raise RuntimeError(f"this message's calls are {self._phase}; a new message needs a new scheduler")


def _publish_starts(engine: Engine, states: Iterable[CallState]) -> None:
    """Tells all starts before any call runs (S2-4). One that may take over what began before tells it itself."""
    for state in states:
        if state.ended is None and state.claimed is None:
            publish_start(engine, state)


def _aborts_siblings(state: CallState) -> bool:
    return state.tool is not None and state.tool.aborts_siblings
