"""The ear of headless mode: hears everything on the bus and writes what the format asks for."""

from tui_agent.protocol.bus import Subscription
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.reports import AgentRunReport

from .agent_port import Agent
from .exit_codes import ExitCode, UnansweredQuestions, code_of
from .pipes import Outlet
from .reporters import Reporter
from .visible_text import visible

PACE = 0.02
"""Seconds that deltas may wait to be written together."""

INPUT_ENDED = "The input has ended, so nobody can answer; the call was denied."


class Listener:
    """Hears one subscription until it is closed."""

    def __init__(
        self, agent: Agent, heard: Subscription, reporter: Reporter, output: Outlet, errors: Outlet, *, answers: bool
    ) -> None:
        """Prepares.

        Args:
            agent: who is told no where nobody answers.
            heard: the bus's events, from the first on.
            reporter: what to make of them.
            output: standard output.
            errors: standard error.
            answers: whether somebody sees the questions and can answer them.
        """
        self._agent = agent
        self._heard = heard
        self._reporter = reporter
        self._output = output
        self._errors = errors
        self._answers = answers
        self._waiting: set[str] = set()
        self._questions = UnansweredQuestions()

    async def listen(self) -> None:
        """Ends once the subscription is closed and everything was heard. Waits for a reader that is slow."""
        async for batch in self._heard.batches(pace=PACE):
            self._hear(batch)
            await self._output.room()

    def run_over(self, report: AgentRunReport) -> ExitCode:
        """Writes what is written at the end of a run; returns how it ended."""
        self._hear(self._heard.drain())
        code = code_of(report, stuck=self._questions.stuck)
        self._output.put(self._reporter.run_over(report, code))
        self.say(self._reporter.run_note(report, code))
        return code

    def say(self, note: str) -> None:
        """Says something to the person on standard error."""
        if note:
            self._errors.put(f"tui-agent: {visible(note)}\n".encode("utf-8", "replace"))

    def nobody_answers(self) -> None:
        """From here on every question is answered with no at once, those that wait included."""
        self._answers = False
        for request_id in sorted(self._waiting):
            self._deny(request_id)

    def _hear(self, batch: list[Envelope]) -> None:
        for envelope in batch:
            self._questions.apply(envelope)
            self._output.put(self._reporter.hear(envelope))
            self.say(self._reporter.note(envelope))
            match envelope.event:
                case ApprovalRequested(request_id=request_id):
                    self._waiting.add(request_id)
                    if not self._answers:
                        self._deny(request_id)
                case ApprovalResolved(request_id=request_id):
                    self._waiting.discard(request_id)
                case _:
                    pass

    def _deny(self, request_id: str) -> None:
        if self._agent.resolve_approval(request_id, ApprovalDecision(decision="deny", note=INPUT_ENDED)):
            self._questions.abandoned.add(request_id)
