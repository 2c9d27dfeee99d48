"""One run: one user input handled to its end, within its limits. Read `AgentRun.execute` from top to bottom."""

import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tui_agent.execution import ToolExecutionResult, ToolScheduler
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.protocol.events import Failed, LoopDetected, Noticed, RunEnded, RunStarted, Warned
from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    Usage,
    new_id,
    user_message,
)
from tui_agent.protocol.reports import INVALID_OUTPUT, AgentRunReport, RunReason

from .agent_state import AgentState
from .answer_problems import ModelFallback
from .checkpoints import ResumedCalls
from .guardrails import MAX_CONTINUATIONS, ask_run_hooks
from .limit_settings import DEFAULT_MAX_STEPS
from .run_input import CONTINUE_TEXT, MessageDelivery, Trigger, text_of
from .run_report import Ending, RunTally, ending_of_calls
from .stop_tokens import ABORT_REQUESTED, STOP_REQUESTED, StopTokens
from .turn import Turn, TurnPosition

MAX_PERIOD = 3
"""Steps of the longest pattern whose repetition is noticed: A, AB and ABC."""

NUDGE = (
    "You have now made the same calls with the same results {rounds} times in a row. Doing it again will not help: "
    "change something, try another way, or say what prevents you."
)
"""The message to the model; a notice, so that the model does not take it for the user's."""


@dataclass(slots=True)
class Repetition:
    """Counts how often the model repeats the same calls, or a pattern of two or three steps, with the same results.

    Calls whose results change are not repetitions.
    """

    tools: str = ""
    """Names of the calls of the last step."""
    rounds: int = 0
    """Repetitions of the last pattern in a row."""
    grew: bool = False
    """True if `rounds` grew with the last step. In a longer pattern each step repeats, but not each adds a round."""
    _steps: list[str] = field(default_factory=list[str])

    def note(self, answer: AssistantMessage, results: Sequence[ToolResultMessage]) -> int:
        """Add one step with calls and return `rounds`: 1 for a step that repeats nothing."""
        self._steps.append(_fingerprint(answer, results))
        self.tools = ", ".join(dict.fromkeys(call.name for call in answer.tool_calls))
        before = self.rounds
        self.rounds = max(self._rounds_of(period) for period in range(1, MAX_PERIOD + 1))
        self.grew = self.rounds > before
        return self.rounds

    def _rounds_of(self, period: int) -> int:
        """Return how often the last `period` steps occur in a row at the end."""
        # Compared from the end: only what repeats now is a loop.
        pattern = self._steps[-period:]
        rounds = 0
        end = len(self._steps)
        while end >= period and self._steps[end - period : end] == pattern:
            rounds += 1
            end -= period
        return rounds


class RunLimits:
    """The limits of one run, checked between two steps, when all calls have results."""

    def __init__(self, agent: AgentState, tally: RunTally) -> None:
        """
        Args:
            agent: the agent.
            tally: counts the usage of the run.
        """
        self._agent = agent
        self._tally = tally
        self._repetition = Repetition()

    def reached(self, turn: Turn, step: int) -> Ending | None:
        """Return the ending if a limit is reached after this turn; None: the run may continue.

        Args:
            turn: the last turn.
            step: the number of steps so far.
        """
        config = self._agent.config
        cap = DEFAULT_MAX_STEPS if config.max_steps is not None and config.max_steps <= 0 else config.max_steps
        # Checked between steps, so that at least one runs (S4-44).
        if cap is not None and step >= cap:
            return self._ended_early("max_steps", f"after step {step}, the last this run may take")
        overrun = self.overrun()
        if overrun is not None:
            return self._ended_early("budget", f"after step {step}, because its budget is used up ({overrun})")
        rounds = self._repeated_rounds(turn)
        if config.repetition is not None and rounds >= config.repetition.stop_at:
            self._agent.publisher.publish(LoopDetected(tool=self._repetition.tools, count=rounds, action="abort"))
            return self._ended_early("loop_detected", f"because it did the same {rounds} times with the same results")
        return None

    def overrun(self) -> str | None:
        """Return the budget that is used up, of this run or of a parent's, as text; None if none is."""
        config = self._agent.config
        above = config.parent_overrun
        return config.budget.overrun(self._tally) or (above() if above is not None else None)

    def nudge(self) -> None:
        """If the model has just repeated itself `nudge_at` times, publish that and append a message that says so."""
        limits, repetition = self._agent.config.repetition, self._repetition
        if limits is not None and repetition.grew and repetition.rounds == limits.nudge_at:
            self._agent.publisher.publish(LoopDetected(tool=repetition.tools, count=repetition.rounds, action="nudge"))
            self._agent.add_message(user_message(NUDGE.format(rounds=repetition.rounds), "notice"))

    def _repeated_rounds(self, turn: Turn) -> int:
        """Return how often in a row the model did the same; a message of the user in between resets the count."""
        # The user may have asked for exactly this again.
        if turn.answer is None or not turn.calls.tool_results or self._agent.queue.waiting:
            self._repetition = Repetition()
            return 0
        return self._repetition.note(turn.answer, turn.calls.tool_results)

    def _ended_early(self, reason: RunReason, why: str) -> Ending:
        note = f"(Ended {why}. Send a message to continue.)"
        text = self._tally.final_text
        return Ending(reason, text=f"{text}\n\n{note}" if text else note)


def _fingerprint(answer: AssistantMessage, results: Iterable[ToolResultMessage]) -> str:
    # Ids and times differ in every step, so they are left out.
    calls = [(call.name, call.arguments) for call in answer.tool_calls]
    texts = [result.text for result in results]
    return json.dumps([calls, texts], sort_keys=True, default=str)


class AgentRun:
    """One run of one agent. Call `execute` once; `stop` and `abort` may be called at any time."""

    def __init__(
        self,
        agent: AgentState,
        messages: Sequence[Message],
        trigger: Trigger,
        *,
        resumed: ResumedCalls,
        cancellation: CancellationToken | None = None,
        run_id: str | None = None,
    ) -> None:
        """
        Args:
            agent: the agent.
            messages: the input; none: continue the conversation.
            trigger: the reason of the run.
            resumed: the calls without results at the end of the conversation; they come first.
            cancellation: a caller's token for this run alone, in addition to the agent's own.
            run_id: the run's id; None: a new one.
        """
        self.id = run_id or new_id("run")
        self._agent = agent
        self._publish = agent.publisher.publish
        self._messages = messages
        self._trigger: Trigger = trigger
        self._resumed = resumed
        self._stop_tokens = StopTokens.linked_to(agent.config.cancellation, cancellation)
        self._tally = RunTally(self.id, agent.provider.model.name, text_of(messages), agent.publisher.waits)
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
            # Open calls first: their results must follow the answer that made them, before any new message.
            self._ending = await self._resume_calls() or await self._add_input() or await self._refresh_system()
            while self._ending is None:
                # Checked here and not inside the turn: a step that has begun is completed (S4-39).
                self._stop_tokens.soon.raise_if_set()
                # `_turn` first, so that a command of the user finds the scheduler while the turn works.
                turn = self._turn = Turn(self._agent, self._tally, self._next, self._stop_tokens, self._fallback)
                self._agent.publisher.move(run_id=self.id, turn=self._next.index, step=self._next.index)
                await turn.take()
                self._ending = turn.ending or await self._ending_after(turn)
        except OperationCancelledError:
            self._ending = self._stop_ending()
        finally:
            try:
                # The effects of this run must precede whatever the journal stores after it.
                await self._agent.effects_published()
            finally:
                self._end()
        return self._agent.reports[-1]

    # --- interrupting -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run after this step; its response and its calls are completed."""
        # A second request changes nothing and must not be announced twice.
        if not self._stop_tokens.soon.is_set():
            self._publish(Noticed(code=STOP_REQUESTED, text="The run ends after this step."))
            self._stop_tokens.soon.cancel("stopped")

    def abort(self, reason: str) -> None:
        """End the run now: the stream is closed, the calls are cancelled, and each of them gets a result."""
        if not self._stop_tokens.now.is_set():
            self._publish(Noticed(code=ABORT_REQUESTED, text=f"The run ends now: {reason}."))
            self._stop_tokens.now.cancel(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call; the run continues. False if the call has ended, is being stopped already, or is unknown."""
        return self._active_scheduler is not None and self._active_scheduler.cancel_call(call_id, reason)

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call more time.

        Returns:
            Its new limit in seconds from its start; None: it has no limit, or does not run.
        """
        scheduler = self._active_scheduler
        return scheduler.extend_call(call_id, seconds) if scheduler is not None else None

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add the usage of a sub-agent, and its cost in dollars (None: unknown), to that of this run."""
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
        return self._turn.scheduler if self._turn is not None else self._resumed.scheduler

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
        done = await self._resumed.execute(self._stop_tokens.now, has_input=bool(self._messages))
        if done is None:
            return None
        self._tally.add_resumed_calls(done.reports)
        return self._ended_by(done)

    async def _add_input(self) -> Ending | None:
        """Append queued messages, then the input, to the repaired conversation."""
        self._repair("the last run of this conversation broke off")
        queue = self._agent.queue
        messages = [await self._delivery.checked(message, "prompt") for message in self._messages]
        # All or nothing: half of an input could mean the opposite of the whole.
        refusal = next((message for message in messages if isinstance(message, str)), None)
        if refusal is not None:
            return Ending("input_rejected", text=f"The message was not sent: {refusal}")
        # What the user said while nothing ran is older than the input, so it comes first.
        queue.take_steers()
        await self._delivery.deliver("at the start")
        for message in itertools.chain.from_iterable(one for one in messages if not isinstance(one, str)):
            self._agent.add_message(message)
        last = self._agent.history.messages()[-1:]
        # Many models refuse a conversation that ends with their own answer.
        if not last or isinstance(last[0], AssistantMessage):
            queue.take_follow_up()
            if not await self._delivery.deliver("at the start"):
                self._agent.add_message(user_message(CONTINUE_TEXT, "notice"))
        self._repair("its input is not a complete conversation")
        return None

    async def _refresh_system(self) -> Ending | None:
        crash = await self._delivery.refresh_system()
        if crash is None:
            return None
        error = f"The system prompt function failed: {crash}. Nothing was sent; the message was kept."
        return Ending("error", error=error)

    # --- between turns ------------------------------------------------------------------------------------------------

    async def _ending_after(self, turn: Turn) -> Ending | None:
        """Return why the run ends after this turn; None: `_next` is the turn that follows."""
        answer, calls = turn.answer, turn.calls
        # Before the limits: what a call demands is more specific than a limit that is reached with it.
        ending = self._ended_by(calls)
        if ending is not None:
            return ending
        continues = bool(calls.tool_results) or (answer is not None and answer.stop_reason == "pause_turn")
        if not continues:
            # They may leave a notice for the model.
            await self._agent.effects_published()
        # A waiting message is a reason to continue, so the limits decide first if it still may.
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
        # One repair a run: a model that misses the format twice would miss it forever.
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
        # The user may have stopped the run while the hook thought; a stop wins over a hook.
        if self._stop_tokens.soon.is_set():
            return Ending("done")
        # A hook that always objects must not keep a run alive for ever.
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
        return ending_of_calls(calls)

    async def _deliver_waiting_messages(self, turn: Turn, *, continues: bool) -> str:
        """Deliver steering messages after the results, and follow-ups where the run would end.

        Returns:
            The trigger of the next turn; empty if there is none, because filters refused every message.
        """
        queue, boundary = self._agent.queue, f"after step {self._next.index + 1}"
        # Before the messages of the user, which the model should read last.
        self._limits.nudge()
        queue.take_steers()
        if await self._delivery.deliver(boundary):
            return "steer"
        # One at a time: each follow-up is a task of its own.
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
        # Before the report: its model is the one that was chosen.
        self._fallback.end()
        # Taken but not delivered: the next run begins with them.
        self._agent.queue.requeue(f"the run ended first ({ending.reason})")
        # Also after a failure in the middle of an answer, so that the next run finds a valid conversation.
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
