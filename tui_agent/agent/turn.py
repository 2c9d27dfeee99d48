"""One turn: a request to the model, its answer, and the calls of the answer.

After a failure, an abort or a cancellation, too, the conversation is one that a model accepts.
"""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Literal

from tui_agent.context import system_parts
from tui_agent.execution import EarlyExecutions, ToolExecution, ToolExecutionResult, ToolScheduler
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.events import RequestBuilt, StepEnded, StepRetry, StepStarted, TurnEnded, TurnStarted, Warned
from tui_agent.protocol.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage, unclaimed_notice
from tui_agent.protocol.provider import ModelInfo, ModelRequest
from tui_agent.protocol.reports import StepReport

from .agent_state import AgentState
from .answer_problems import (
    LENGTH_HINT,
    EmptyAnswerError,
    ModelFallback,
    RequestRepair,
    ending_of,
    output_limit_text,
    unclaimed_text,
    unfinished_text,
)
from .attempt import Attempt, Problem
from .conversation_editor import compact_conversation, count_request, needs_compaction, needs_count
from .guardrails import GuardrailContext, GuardrailKind, first_trip
from .run_report import Ending, RunTally
from .stop_tokens import StopTokens, unless_cancelled


@dataclass(frozen=True, slots=True)
class TurnPosition:
    """The position of a turn in its run."""

    index: int
    """From 0."""
    trigger: str
    """The reason of the turn: `prompt`, `tools`, `steer`, `follow_up`, …"""
    kind: Literal["initial", "tool_followup"]


class Turn:
    """One model response and its calls. Call `take` once; then read `answer`, `calls` and `ending`."""

    def __init__(
        self,
        agent: AgentState,
        tally: RunTally,
        place: TurnPosition,
        stop_tokens: StopTokens,
        fallback: ModelFallback,
    ) -> None:
        """
        Args:
            agent: the agent.
            tally: counts the usage of the run.
            place: the position in the run.
            stop_tokens: end the run.
            fallback: replaces an overloaded model.
        """
        self.answer: AssistantMessage | None = None
        """The answer in the conversation, in part if it broke off; None without one."""
        self.calls = ToolExecutionResult()
        """The results of the calls."""
        self.ending: Ending | None = None
        """The reason to end the run now; None: it may continue."""
        self.scheduler: ToolScheduler | None = None
        """The scheduler of the calls; None before the first request."""
        self._agent = agent
        self._publish = agent.publisher.publish
        self._tally = tally
        self._place = place
        self._stop_tokens = stop_tokens
        self._fallback = fallback
        self._usage = Usage()
        self._model_ms = 0.0
        self._empty_answers = 0
        self._repair = RequestRepair(agent, lambda: self._compact_history(forced=True))
        self._step_is_open = False

    async def take(self) -> None:
        """Ask the model until it answers or finally fails, and run its calls; a guardrail may end it before.

        After a cancellation with something to complete it returns, and `ending` may have the reason.

        Raises:
            OperationCancelledError: the run must end, and nothing had to be completed first.
        """
        place = self._place
        # Published before anything can fail, so that each end has its start.
        self._publish(TurnStarted(index=place.index, trigger=place.trigger))
        self._publish(StepStarted(index=place.index, kind=place.kind))
        self._step_is_open = True
        try:
            if (update := self._agent.config.update_tools) is not None:
                # Before the count and the request: both include the tools.
                await unless_cancelled(self._stop_tokens.now, update(self._agent.tools))
            # Asking the endpoint costs a request, so it is done only where the estimate could hide an overflow.
            if needs_count(self._agent):
                await unless_cancelled(self._stop_tokens.now, count_request(self._agent, self._next_request()))
            if needs_compaction(self._agent):
                # A server that refuses the conversation afterwards is not helped by compacting it again.
                self._repair.has_compacted = True
                await self._compact_history()
            self._repair.prepare()
            # Last before the request: guardrails see the conversation that is sent, compacted and repaired.
            if await self._passes("input"):
                await self._ask()
        finally:
            self._close()

    # --- the model ----------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        """Make attempts until one succeeds or no other follows; the user can end the wait between them."""
        # A guardrail over answers has to see one before its calls have effects.
        takes_effects = all(guardrail.kind != "output" for guardrail in self._agent.config.guardrails)
        async with EarlyExecutions(
            self._stop_tokens.now, takes_effects=takes_effects, on_unclaimed=self._report_unclaimed
        ) as early:
            for attempt in itertools.count(1):
                if (delay := self._agent.config.request_delay).left:
                    # `soon`, not `now`: a stop has no answer to complete here, so it ends the wait like an abort.
                    await unless_cancelled(self._stop_tokens.soon, delay.over())
                wait = await self._attempt(attempt, early)
                if wait is None:
                    return
                await unless_cancelled(self._stop_tokens.soon, asyncio.sleep(wait))

    async def _attempt(self, number: int, early: EarlyExecutions) -> float | None:
        """Make one attempt. Return the seconds until the next; None: there is an answer, or there will be none."""
        # A child for each attempt: discarding one cancels its calls and not those of the next.
        token = self._stop_tokens.now.child()
        async with self._make_scheduler(token, early, number) as scheduler:
            self.scheduler = scheduler
            attempt = Attempt(self._agent, scheduler, token, self._record_attempt)
            try:
                problem = await attempt.listen(self._request())
                wait = None if problem is None else await self._wait_after(problem, number)
                if problem is None:
                    # Only the server's answer shows that what was left out was the reason.
                    self._repair.accepted()
                    await self._settle(attempt)
                elif wait is not None and isinstance(problem, ProviderError):
                    await self._discard_attempt(attempt, problem, number + 1, wait)
                return wait
            finally:
                # Whatever happened, the conversation gets what the model said and a result for every call of it.
                await attempt.keep_partial(self._why())
                self.calls = attempt.calls

    def _make_scheduler(self, token: CancellationToken, early: EarlyExecutions, attempt: int) -> ToolScheduler:
        """Return a scheduler whose results are appended to the conversation as they are published."""
        queue, history = self._agent.queue, self._agent.history

        async def take_steers() -> tuple[UserMessage, ...]:
            # A call that is being cancelled delivers no message: the user would not see what it led to.
            return queue.take_steers() if queue.steers and not token.is_set() else ()

        def add_result(result: ToolResultMessage) -> None:
            history.append(result)

        return ToolScheduler(
            self._agent.executor,
            cancellation=token,
            get_steering=take_steers,
            step=self._place.index,
            attempt=attempt,
            on_result=add_result,
            early=early,
            steer_waits=lambda: bool(queue.steers),
        )

    def _report_unclaimed(self, execution: ToolExecution) -> None:
        """Leave a notice for the model about a call that ran although no response contains it."""
        self._agent.queue.put(unclaimed_notice(execution.channel.call.id, unclaimed_text(execution)))

    def _request(self) -> ModelRequest:
        """Return the request with the current conversation, system prompt and tools (S4-41)."""
        agent, request = self._agent, self._next_request()
        estimate = agent.history.estimated_tokens()
        self._publish(RequestBuilt(message_count=len(request.messages), est_tokens=estimate, tools=len(request.tools)))
        return request

    def _next_request(self) -> ModelRequest:
        agent, config = self._agent, self._agent.config
        return ModelRequest(
            messages=agent.history.messages(),
            system=system_parts(agent.history.registry),
            tools=agent.tools.specs,
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            thinking_tokens=config.thinking_tokens if self._repair.thinks else 0,
            cache=config.cache,
            conversation_id=agent.history.id,
            answer_schema=config.output.answer_schema if config.output is not None else None,
        )

    # --- an answer ----------------------------------------------------------------------------------------------------

    async def _settle(self, attempt: Attempt) -> None:
        """Keep a complete answer, check it, and run its calls (S4-40)."""
        # Kept before it is checked: a refused answer, too, is part of the conversation.
        answer = attempt.keep()
        self.ending = ending_of(answer, attempt.state.detail)
        if self.ending is None:
            await self._passes("output", answer)
        # The calls need results even if the run ends, or the next request would be refused.
        if self.ending is not None:
            attempt.refuse_calls(self.ending.error or self.ending.text)
        elif answer.stop_reason == "max_tokens":
            self._publish(Warned(code="output_limit", text=output_limit_text(answer)))
        elif attempt.state.stop_reason == "other":
            self._publish(Warned(code="unfinished_answer", text=unfinished_text(attempt.state.detail)))
        await attempt.run_calls(cut=answer.stop_reason == "max_tokens")

    async def _passes(self, kind: GuardrailKind, answer: AssistantMessage | None = None) -> bool:
        """True if no guardrail trips; otherwise `ending` has the reason."""
        agent = self._agent
        # The messages of a long conversation are copied for a guardrail, so this is skipped without one.
        if not any(guardrail.kind == kind for guardrail in agent.config.guardrails):
            return True
        context = GuardrailContext(kind, agent.history.messages(), agent.history.system, answer, self._place.index)
        reason = await unless_cancelled(
            self._stop_tokens.now, first_trip(agent.config.guardrails, context, self._publish)
        )
        if reason is not None:
            self.ending = Ending("guardrail", text=reason)
        return reason is None

    # --- no answer ----------------------------------------------------------------------------------------------------

    async def _wait_after(self, problem: Problem, number: int) -> float | None:
        """Return the seconds to wait before the next attempt; None: this was the last, and `ending` has the reason."""
        if self._stop_tokens.now.is_set() or not isinstance(problem, ProviderError):
            self.ending = Ending("aborted", error=self._stop_tokens.now.reason)
            return None
        if self._stop_tokens.soon.is_set():
            self.ending = Ending("stopped", error=str(problem), error_kind=problem.kind)
            return None
        if isinstance(problem, EmptyAnswerError):
            self._empty_answers += 1
            # Counted apart from failures: the server works, and a second empty answer will not be the last.
            wait = 0.0 if self._empty_answers == 1 else None
        # A changed request or another model is not a repetition, so it needs no delay.
        elif await self._repair.after(problem) or self._fallback.takes_over(problem, number):
            wait = 0.0
        else:
            wait = self._agent.config.retry.wait_before(number + 1, problem)
        if wait is None:
            hint = LENGTH_HINT if problem.kind == "invalid_request" and self._repair.is_large else ""
            self.ending = Ending("error", error=f"{problem}{hint}", error_kind=problem.kind)
        return wait

    async def _discard_attempt(self, attempt: Attempt, problem: ProviderError, number: int, wait: float) -> None:
        """Discard this attempt, and publish that another follows."""
        await attempt.discard_answer("the model's answer broke off and is requested again")
        # The model never saw them with an answer that counts.
        self._agent.queue.requeue("the answer before it was discarded")
        is_empty = isinstance(problem, EmptyAnswerError)
        self._publish(
            StepRetry(
                attempt=number,
                max=number if is_empty else self._agent.config.retry.most_attempts(problem),
                wait_s=wait,
                error_kind="empty_answer" if is_empty else problem.kind,
                status=problem.status,
                discarded=attempt.begun,
                text=problem.summary,
            )
        )

    async def _compact_history(self, *, forced: bool = False) -> bool:
        """Compact the conversation; never between calls and their results."""
        guard = self._agent.config.guard
        if guard is None:
            return False
        making = compact_conversation(self._agent, guard, self._spend, trigger="automatic", forced=forced)
        return await unless_cancelled(self._stop_tokens.now, making)

    # --- usage and reports --------------------------------------------------------------------------------------------

    def _record_attempt(self, attempt: Attempt) -> None:
        """Count the usage of an attempt; if it gave an answer, the step ends (S4-40)."""
        self._model_ms += attempt.model_ms
        self._usage = self._usage + attempt.state.usage
        # A discarded answer was paid for, too.
        if attempt.state.usage != Usage():
            self._spend(attempt.state.usage, attempt.provider.model)
        if attempt.answer is not None:
            self.answer = attempt.answer
            # The answer continues one that the model paused.
            begun = self._tally.final_text if self._place.trigger == "pause" else ""
            self._tally.final_text = "\n".join(filter(None, (begun, attempt.answer.text))) or self._tally.final_text
            self._agent.publish_context_usage()
            self._end_step()

    def _spend(self, usage: Usage, model: ModelInfo) -> None:
        self._tally.spend(usage, self._agent.spend(usage, model))

    def _end_step(self) -> None:
        if self._step_is_open:
            self._step_is_open = False
            self._publish(
                StepEnded(
                    index=self._place.index,
                    kind=self._place.kind,
                    llm_ms=self._model_ms,
                    finish_reason=self._finish_reason(),
                    usage=self._usage,
                    tool_ms=self.scheduler.busy_ms if self.scheduler else 0.0,
                )
            )

    def _close(self) -> None:
        """End the step, report the turn and publish its end; also when it is cancelled."""
        # A trial that no answer confirmed must not outlive its turn.
        self._repair.undo_trial()
        self._end_step()
        results = self.scheduler.tool_results if self.scheduler else ()
        self._tally.add_step(
            StepReport(
                index=self._place.index,
                type=self._place.kind,
                llm_latency_ms=self._model_ms,
                usage=self._usage,
                finish_reason=self._finish_reason(),
                tool_calls=self.calls.reports,
                tool_total_ms=sum(report.latency_ms for report in self.calls.reports),
            )
        )
        self._publish(
            TurnEnded(
                index=self._place.index,
                message_id=self.answer.id if self.answer else None,
                result_ids=tuple(result.id for result in results),
                usage=self._usage,
            )
        )

    def _finish_reason(self) -> str:
        return self.answer.stop_reason if self.answer else self._why()

    def _why(self) -> str:
        """Return why there is no answer: the reason of the abort, else one word."""
        return self._stop_tokens.now.reason or (self.ending.reason if self.ending else "cancelled")
