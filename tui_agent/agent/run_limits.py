"""Enforcement of a run's limits between steps: maximum steps, budget, and repetition."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.events import LoopDetected
from tui_agent.protocol.messages import AssistantMessage, ToolResultMessage, user_message
from tui_agent.protocol.reports import RunReason

from .agent_state import AgentState
from .limit_settings import DEFAULT_MAX_STEPS
from .run_report import Ending, RunTally
from .turn import Turn

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
        """Add one step with calls and return `rounds`."""
        self._steps.append(_fingerprint(answer, results))
        self.tools = ", ".join(dict.fromkeys(call.name for call in answer.tool_calls))
        before = self.rounds
        self.rounds = max(self._rounds_of(period) for period in range(1, MAX_PERIOD + 1))
        self.grew = self.rounds > before
        return self.rounds

    def _rounds_of(self, period: int) -> int:
        """Return how often the last `period` steps occur in a row at the end."""
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
        """Append a message behind the results that tells the model it is repeating itself."""
        limits, repetition = self._agent.config.repetition, self._repetition
        if limits is not None and repetition.grew and repetition.rounds == limits.nudge_at:
            self._agent.publisher.publish(LoopDetected(tool=repetition.tools, count=repetition.rounds, action="nudge"))
            self._agent.add_message(user_message(NUDGE.format(rounds=repetition.rounds), "notice"))

    def _repeated_rounds(self, turn: Turn) -> int:
        """Return how often in a row the model did the same; a message of the user in between resets the count."""
        if turn.answer is None or not turn.calls.tool_results or self._agent.queue.waiting:
            self._repetition = Repetition()
            return 0
        return self._repetition.note(turn.answer, turn.calls.tool_results)

    def _ended_early(self, reason: RunReason, why: str) -> Ending:
        note = f"(Ended {why}. Send a message to continue.)"
        text = self._tally.final_text
        return Ending(reason, text=f"{text}\n\n{note}" if text else note)


def _fingerprint(answer: AssistantMessage, results: Iterable[ToolResultMessage]) -> str:
    calls = [(call.name, call.arguments) for call in answer.tool_calls]
    texts = [result.text for result in results]
    return json.dumps([calls, texts], sort_keys=True, default=str)
