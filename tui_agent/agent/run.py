"""One run: one user input handled to its end. Read `execute` from top to bottom."""

import itertools
import sys
from collections.abc import Mapping, Sequence

from tui_agent.context import SYSTEM_LAYER, UNANSWERED, write_layer
from tui_agent.execution import ToolExecutionResult, ToolScheduler
from tui_agent.execution.contained_calls import Crash, asked
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.protocol.events import Failed, Noticed, RunEnded, RunStarted, Warned
from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    Usage,
    UserMessage,
    new_id,
    user_message,
)
from tui_agent.protocol.past_session import OpenCall
from tui_agent.protocol.reports import INVALID_OUTPUT, AgentRunReport
from tui_agent.protocol.tool_result import FINAL_TEXT

from .agent_state import OWNER, AgentState
from .message_delivery import MessageDelivery
from .model_fallback import ModelFallback
from .run_hooks import MAX_CONTINUATIONS, ask_run_hooks
from .run_input import CONTINUE_TEXT, Trigger, text_of
from .run_limits import RunLimits
from .run_report import Ending, RunTally
from .status import ABORT_REQUESTED, STOP_REQUESTED
from .stop_tokens import StopTokens, unless_cancelled
from .turn import Turn, TurnPosition


class AgentRun:
    """One run of one agent. Call `execute` once; `stop` and `abort` may be called at any time."""

    def __init__(
        self,
        agent: AgentState,
        messages: Sequence[Message],
        trigger: Trigger,
        *,
        open_calls: Mapping[str, OpenCall],
        cancellation: CancellationToken | None = None,
        run_id: str | None = None,
    ) -> None:
        """
        Args:
            agent: the agent.
            messages: the input; none: continue the conversation.
            trigger: the reason of the run.
            open_calls: the known facts about calls without results at the end of the conversation; they come first.
            cancellation: a caller's token for this run alone, in addition to the agent's own.
            run_id: the run's id; None: a new one.
        """
        self.id = run_id or new_id("run")
        self._agent = agent
        self._publish = agent.publisher.publish
        self._messages = messages
        self._trigger: Trigger = trigger
        self._open_calls = open_calls
        self._stop_tokens = StopTokens.linked_to(agent.config.cancellation, cancellation)
        self._tally = RunTally(self.id, agent.provider.model.name, text_of(messages), agent.publisher.waits)
        self._taken_up: ToolScheduler | None = None
        self._turn: Turn | None = None
        self._next = TurnPosition(0, trigger, "initial")
        self._ending: Ending | None = None
        self._fallback = ModelFallback(agent)
        self._delivery = MessageDelivery(agent, self._stop_tokens.now)
        self._limits = RunLimits(agent, self._tally)
        self._is_repaired = False
        self._continuations = 0

    async def execute(self) -> AgentRunReport:
        """Handle the input to its end and return the report; a failure of the model is an ending, not an exception.

        Cancelling the task ends the run like an abort, and the cancellation is raised again.
        """
        self._begin()
        try:
            self._ending = await self._resume_calls() or await self._add_input() or await self._refresh_system()
            while self._ending is None:
                self._stop_tokens.soon.raise_if_set()
                turn = self._turn = Turn(self._agent, self._tally, self._next, self._stop_tokens, self._fallback)
                self._agent.publisher.move(run_id=self.id, turn=self._next.index, step=self._next.index)
                await turn.take()
                self._ending = turn.ending or await self._ending_after(turn)
        except OperationCancelledError:
            self._ending = self._stop_ending()
        finally:
            try:
                await self._agent.effects_published()
            finally:
                self._end()
        return self._agent.reports[-1]

    # --- interrupting -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run after this step; its response and its calls are completed."""
        if not self._stop_tokens.soon.is_set():
            self._publish(Noticed(code=STOP_REQUESTED, text="The run ends after this step."))
            self._stop_tokens.soon.cancel("stopped")

    def abort(self, reason: str) -> None:
        """End the run now: the stream is closed, the calls are cancelled, and each of them gets a result."""
        if not self._stop_tokens.now.is_set():
            self._publish(Noticed(code=ABORT_REQUESTED, text=f"The run ends now: {reason}."))
            self._stop_tokens.now.cancel(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call; the run continues. False if the call has ended or is unknown."""
        return self._active_scheduler is not None and self._active_scheduler.cancel_call(call_id, reason)

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call more time.

        Returns:
            Its new limit in seconds from its start; None: it has no limit, or does not run.
        """
        scheduler = self._active_scheduler
        return scheduler.extend_call(call_id, seconds) if scheduler is not None else None

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add the usage of a sub-agent to that of this run."""
        self._tally.spend(usage, cost)

    def overrun(self) -> str | None:
        """Return the budget that is used up, of this run or of a parent's; None while none is."""
        return self._limits.overrun()

    def notify_steering(self) -> None:
        """Report a queued steering message, so that calls that have not started can be skipped at once."""
        if self._active_scheduler is not None:
            self._active_scheduler.notify_steering()

    @property
    def _active_scheduler(self) -> ToolScheduler | None:
        """The scheduler of the calls in progress."""
        return self._turn.scheduler if self._turn is not None else self._taken_up

    # --- the beginning ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._agent.publisher.move(run_id=self.id)
        self._publish(
            RunStarted(
                input=self._tally.user_message,
                trigger=self._trigger,
                model=self._tally.model,
                mode=self._agent.policy.mode,
            )
        )

    async def _resume_calls(self) -> Ending | None:
        """Give the calls that were open when the process ended their results, in order.

        A call that had not started is judged again and run, unless there is new input. A finished call gets its stored
        result. A call with an unknown outcome is not repeated, because it may have had its effect already.
        """
        history, known, queue = self._agent.history, self._open_calls, self._agent.queue
        if not known:
            return None
        waited_before = {message.id for message in queue.waiting}

        async def take_steers() -> tuple[UserMessage, ...]:
            # Messages from before this run follow the calls that it resumes; the calls yield only to a new one.
            new = [message for message in queue.waiting if message.id not in waited_before]
            is_steered = any(message.kind == "steer" for message in new)
            return queue.take_steers() if is_steered and not now.is_set() else ()

        def add_result(result: ToolResultMessage) -> None:
            history.append(result)

        calls, executor, now = history.open_calls, self._agent.executor, self._stop_tokens.now
        async with ToolScheduler(
            executor, cancellation=now, get_steering=take_steers, on_result=add_result
        ) as scheduler:
            self._taken_up = scheduler
            scheduler.submit_all(calls)
            for call in calls:
                open_call = known.get(call.id)
                if open_call is not None and open_call.result is not None:
                    scheduler.answer_call(call.id, open_call.result)
                elif open_call is not None and (
                    open_call.layer_of or (open_call.fate == "in_trial" and open_call.request)
                ):
                    self._resume_changes(scheduler, open_call)
                elif open_call is None or open_call.fate != "not_started" or self._messages:
                    scheduler.mark_interrupted(call.id, UNANSWERED)
            done = await scheduler.finish()
        self._tally.add_resumed_calls(done.reports)
        return self._ended_by(done)

    def _resume_changes(self, scheduler: ToolScheduler, call: OpenCall) -> None:
        """Let the changes of a call be decided on: by the answer of the user, by a new question, or, because the user
        sent a message instead, not at all."""
        discards = "the user sent a message instead of an answer" if self._messages and call.answer is None else ""
        scheduler.resume_changes(call.call_id, call.layer_of or call.call_id, discards)
        if call.answer is not None and call.request is not None:
            self._agent.gate.prefeed(call.call_id, call.answer, call.request.digest)

    async def _add_input(self) -> Ending | None:
        """Append queued messages, then the input, to the repaired conversation."""
        self._repair("the last run of this conversation broke off")
        queue = self._agent.queue
        messages = [await self._delivery.checked(message, "prompt") for message in self._messages]
        refusal = next((message for message in messages if isinstance(message, str)), None)
        if refusal is not None:
            return Ending("input_rejected", text=f"The message was not sent: {refusal}")
        queue.take_steers()
        await self._delivery.deliver("at the start")
        for message in itertools.chain.from_iterable(one for one in messages if not isinstance(one, str)):
            self._agent.add_message(message)
        last = self._agent.history.messages()[-1:]
        if not last or isinstance(last[0], AssistantMessage):
            queue.take_follow_up()
            if not await self._delivery.deliver("at the start"):
                self._agent.add_message(user_message(CONTINUE_TEXT, "notice"))
        self._repair("its input is not a complete conversation")
        return None

    async def _refresh_system(self) -> Ending | None:
        """Call a system text that is a function; the layer changes only if the text did (S4-36)."""
        system = self._agent.config.system
        if isinstance(system, str):
            return None
        text = await unless_cancelled(self._stop_tokens.now, asked(system, timeout=None))
        if isinstance(text, Crash):
            error = f"The system prompt function failed: {text.text}. Nothing was sent; the message was kept."
            return Ending("error", error=error)
        write_layer(self._agent.history.registry, SYSTEM_LAYER, str(text), OWNER)
        return None

    # --- between turns ------------------------------------------------------------------------------------------------

    async def _ending_after(self, turn: Turn) -> Ending | None:
        """Return why the run ends after this turn; None: `_next` is the turn that follows."""
        answer, calls = turn.answer, turn.calls
        ending = self._ended_by(calls)
        if ending is not None:
            return ending
        continues = bool(calls.tool_results) or (answer is not None and answer.stop_reason == "pause_turn")
        if not continues:
            # They may leave a notice for the model.
            await self._agent.effects_published()
        if not continues and not self._agent.queue.waiting:
            return await self._finish(turn)
        ending = self._limits.reached(turn, self._next.index + 1)
        if ending is not None:
            return ending
        trigger = await self._deliver_waiting_messages(turn, continues=continues)
        if not trigger:
            return await self._finish(turn)
        self._next = TurnPosition(self._next.index + 1, trigger, "tool_followup" if continues else "initial")
        return None

    async def _finish(self, turn: Turn) -> Ending | None:
        """Return why the run is over after its final answer; None: one more turn follows, for its format or a hook."""
        output, text = self._agent.config.output, turn.answer.text if turn.answer else ""
        problem = output.problem(text) if output is not None else None
        if output is None or problem is None:
            return await self._ask_before_end(turn, text)
        if self._is_repaired:
            error = f"The final answer does not fit {output.name}, not even after a repair:\n{problem}"
            return Ending("error", error=error, error_kind=INVALID_OUTPUT)
        ending = self._limits.reached(turn, self._next.index + 1)
        if ending is None:
            self._is_repaired = True
            self._agent.add_message(user_message(output.repair_text(problem), "notice"))
            self._next = TurnPosition(self._next.index + 1, "repair", "initial")
        return ending

    async def _ask_before_end(self, turn: Turn, text: str) -> Ending | None:
        """Return why the run is over; None: a hook or a new message of the user continues it."""
        hooks, index = self._agent.config.run_hooks, self._next.index + 1
        if hooks is None:
            return Ending("done")
        is_continued = self._continuations > 0
        objection = await ask_run_hooks(
            self._publish, hooks.before_end, text, is_continued, token=self._stop_tokens.now
        )
        if self._stop_tokens.soon.is_set():
            return Ending("done")
        if objection is not None and self._continuations >= MAX_CONTINUATIONS:
            warning = f"Hooks continued this run {MAX_CONTINUATIONS} times; it does not continue for them again."
            self._publish(Warned(code="hook_limit", text=warning))
            objection = None
        if objection is None and not self._agent.queue.waiting:
            return Ending("done")
        if (ending := self._limits.reached(turn, index)) is not None:
            return ending
        trigger = "hook"
        if objection is None:
            trigger = await self._deliver_waiting_messages(turn, continues=False)
        else:
            self._continuations += 1
            self._agent.add_message(user_message(objection, "notice"))
        if not trigger:
            return Ending("done")
        self._next = TurnPosition(index, trigger, "initial")
        return None

    def _ended_by(self, calls: ToolExecutionResult) -> Ending | None:
        """Return why the run ends after these calls: it was stopped, or a call demands it."""
        if self._stop_tokens.soon.is_set():
            return self._stop_ending()
        if calls.halted == "guardrail":
            return Ending("guardrail", text=calls.halted_why)
        if calls.halted is not None:
            return Ending(calls.halted, error=calls.halted_why)
        if not calls.terminate:
            return None
        texts = [(result.details or {}).get(FINAL_TEXT, "") for result in calls.tool_results]
        return Ending("done", text=next((str(text) for text in texts if text), ""))

    async def _deliver_waiting_messages(self, turn: Turn, *, continues: bool) -> str:
        """Deliver steering messages after the results, and follow-ups where the run would end.

        Returns:
            The trigger of the next turn; empty if there is none, because filters refused every message.
        """
        queue, boundary = self._agent.queue, f"after step {self._next.index + 1}"
        self._limits.nudge()
        queue.take_steers()
        if await self._delivery.deliver(boundary):
            return "steer"
        while not continues and queue.take_follow_up():
            if await self._delivery.deliver(boundary):
                return "follow_up"
        if not continues:
            return ""
        if turn.calls.tool_results:
            return "tools"
        # Many models refuse a conversation that ends with their own answer, though a paused one may be continued so.
        self._agent.add_message(user_message(CONTINUE_TEXT, "notice"))
        return "pause"

    def _stop_ending(self) -> Ending:
        if self._stop_tokens.now.is_set():
            return Ending("aborted", error=self._stop_tokens.now.reason)
        return Ending("stopped")

    # --- the end ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Repair the conversation, requeue undelivered messages, and publish `run.ended` as the run's last event."""
        ending = self._ending or _broken_off_ending()
        self._turn = None
        self._fallback.end()
        self._agent.queue.requeue(f"the run ended first ({ending.reason})")
        self._repair("this run broke off")
        self._agent.publisher.move(run_id=self.id)
        if ending.reason == "error":
            context = {"kind": ending.error_kind} if ending.error_kind else {}
            self._publish(Failed(code="run_failed", text=ending.error or "The run failed.", context=context))
        report = self._tally.report(ending)
        self._agent.reports.append(report)
        self._publish(
            RunEnded(
                reason=report.reason,
                final_text=report.final_text,
                error=report.error,
                usage=report.total_usage,
                cost=report.cost_usd,
                steps=report.step_count,
                tool_calls=report.tool_call_count,
                total_ms=report.total_ms,
                model_ms=report.total_llm_time_ms,
                tool_ms=report.total_tool_time_ms,
                approval_ms=report.total_approval_wait_ms,
                report=report,
            )
        )

    def _repair(self, why: str) -> None:
        """Make the conversation one that a model accepts; publish a warning if anything had to be changed."""
        repaired = self._agent.history.repair()
        if repaired.changed:
            text = f"The conversation was repaired because {why}: {repaired}."
            calls = [result.call_id for result in repaired.synthesised]
            self._publish(Warned(code="unanswered_tool_calls_repaired", text=text, context={"calls": calls}))


def _broken_off_ending() -> Ending:
    """Return the ending of a run that ends with an exception."""
    error = sys.exception()
    if isinstance(error, Exception):
        text = f"Internal error: {type(error).__name__}: {error}. The conversation was kept."
        return Ending("error", error=text)
    return Ending("aborted", error="the run was cancelled")
