"""What keeps one run from going on for ever: its steps, its budget, and going round in circles (engine §4, step 2)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.events import LoopDetected
from tui_agent.protocol.messages import AssistantMessage, ToolResultMessage, user_message
from tui_agent.protocol.reports import RunReason

from .agent_state import AgentState
from .loop_config import DEFAULT_MAX_STEPS
from .run_report import Ending, RunTally
from .turn import Turn

MAX_PERIOD = 3
"""Steps of the longest pattern whose repetition is noticed: A, AB and ABC."""

NUDGE = (
    "You have now made the same calls with the same results {rounds} times in a row. Doing it again will not help: "
    "change something, try another way, or say what stands in the way."
)
"""What the model is told, as a notice that is not blamed on the person."""


@dataclass(slots=True)
class Repetition:
    """Notices that the model goes round in circles: the same calls, or the same two or three steps of calls, with the
    same results again and again. Calls whose results change are no circle: something happens.
    """

    tools: str = ""
    """Names of the calls of the last step."""
    rounds: int = 0
    """How often what was done last was done in a row."""
    grew: bool = False
    """Whether that is more often than one step before: once a circle of several steps is there, each step is in it."""
    _steps: list[str] = field(default_factory=list[str])

    def note(self, answer: AssistantMessage, results: Sequence[ToolResultMessage]) -> int:
        """Takes one step with calls and returns `rounds`."""
        self._steps.append(_fingerprint(answer, results))
        self.tools = ", ".join(dict.fromkeys(call.name for call in answer.tool_calls))
        before = self.rounds
        self.rounds = max(self._rounds_of(period) for period in range(1, MAX_PERIOD + 1))
        self.grew = self.rounds > before
        return self.rounds

    def _rounds_of(self, period: int) -> int:
        """How often the last `period` steps stand at the end in a row."""
        pattern = self._steps[-period:]
        rounds = 0
        end = len(self._steps)
        while end >= period and self._steps[end - period : end] == pattern:
            rounds += 1
            end -= period
        return rounds


class RunLimits:
    """One run's limits, looked at between two steps, with everything answered that was asked for."""

    def __init__(self, agent: AgentState, tally: RunTally) -> None:
        """
        Args:
            agent: whose run it is.
            tally: the sums of the run.
        """
        self._agent = agent
        self._tally = tally
        self._repetition = Repetition()

    def reached(self, turn: Turn, step: int) -> Ending | None:
        """Why there is no step after this turn.

        Args:
            turn: the last one.
            step: how many there were.
        """
        config = self._agent.config
        cap = DEFAULT_MAX_STEPS if config.max_steps is not None and config.max_steps <= 0 else config.max_steps
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
        """Which budget is used up, of this run or of one it works for; None while there is something left of each."""
        config = self._agent.config
        above = config.parent_overrun
        return config.budget.overrun(self._tally) or (above() if above is not None else None)

    def nudge(self) -> None:
        """Tells the model, behind its results, that it goes round in circles (P02)."""
        limits, repetition = self._agent.config.repetition, self._repetition
        if limits is not None and repetition.grew and repetition.rounds == limits.nudge_at:
            self._agent.publisher.publish(LoopDetected(tool=repetition.tools, count=repetition.rounds, action="nudge"))
            self._agent.add_message(user_message(NUDGE.format(rounds=repetition.rounds), "notice"))

    def _repeated_rounds(self, turn: Turn) -> int:
        """How often in a row the model did what it did now; what a person says in between begins a new count."""
        if turn.answer is None or not turn.calls.tool_results or self._agent.queue.waiting:
            self._repetition = Repetition()
            return 0
        return self._repetition.note(turn.answer, turn.calls.tool_results)

    def _ended_early(self, reason: RunReason, why: str) -> Ending:
        note = f"(Ended {why}; run it on to continue.)"
        text = self._tally.final_text
        return Ending(reason, text=f"{text}\n\n{note}" if text else note)


def _fingerprint(answer: AssistantMessage, results: Iterable[ToolResultMessage]) -> str:
    calls = [(call.name, call.arguments) for call in answer.tool_calls]
    texts = [result.text for result in results]
    return json.dumps([calls, texts], sort_keys=True, default=str)
