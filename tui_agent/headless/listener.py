"""The ear of headless mode: hears everything on the bus and writes what the format asks for."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from tui_agent.protocol.bus import Subscription
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, RunEnded
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.visible_text import escaped

from .agent_port import Agent
from .exit_codes import ExitCode, UnansweredApprovals, code_of
from .pipes import PipeWriter
from .reporters import DELTAS, Reporter

PACE = 0.02
"""Seconds that deltas may wait to be written together."""

INPUT_ENDED = "the input has ended, so nobody can answer; the call was denied."

Flush: TypeAlias = Callable[[], Awaitable[None]]
"""Returns once everything told so far is kept; raises `SessionError` where it cannot be."""


class Listener:
    """Hears one subscription until it is closed. What it writes was kept before: a reader is told nothing that a
    killed program forgets.
    """

    def __init__(
        self,
        agent: Agent,
        heard: Subscription,
        reporter: Reporter,
        output: PipeWriter,
        errors: PipeWriter,
        *,
        answers: bool,
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
        self.code = ExitCode.DONE
        """How the run that ended last ended."""
        self._agent = agent
        self._heard = heard
        self._reporter = reporter
        self._output = output
        self._errors = errors
        self._answers = answers
        self._waiting: set[str] = set()
        self._questions = UnansweredApprovals()

    async def listen(self, keep: Flush) -> None:
        """Ends once the subscription is closed and everything was heard. Waits for a reader that is slow."""
        async for batch in self._heard.batches(pace=PACE):
            for envelope in batch:
                self._take_note(envelope)
            if any(envelope.type not in DELTAS for envelope in batch):
                await _kept(keep)
            for envelope in batch:
                self._write(envelope)
            await self._output.room()

    def say(self, note: str) -> None:
        """Says something to the person on standard error."""
        if note:
            self._errors.put(f"tui-agent: {escaped(note)}\n".encode("utf-8", "replace"))

    def sum_up(self, report: AgentRunReport, code: ExitCode) -> None:
        """Writes what is written at the end of a run."""
        self._output.put(self._reporter.render_report(report, code))

    def deny_approvals(self) -> None:
        """From here on every question is answered with no at once, those that wait included."""
        self._answers = False
        for request_id in sorted(self._waiting):
            self._deny(request_id)

    def _take_note(self, envelope: Envelope) -> None:
        """What has to be known or done at once."""
        self._questions.apply(envelope)
        match envelope.event:
            case ApprovalRequested(request_id=request_id):
                self._waiting.add(request_id)
                if not self._answers:
                    self._deny(request_id)
            case ApprovalResolved(request_id=request_id):
                self._waiting.discard(request_id)
            case RunEnded(report=AgentRunReport() as report) if not envelope.origin.depth:
                self.code = code_of(report, stuck=self._questions.stuck)
            case _:
                pass

    def _write(self, envelope: Envelope) -> None:
        self._output.put(self._reporter.render(envelope))
        self.say(self._reporter.note(envelope))
        if isinstance(envelope.event, RunEnded) and envelope.event.report and not envelope.origin.depth:
            self.sum_up(envelope.event.report, self.code)
            self.say(self._reporter.report_note(envelope.event.report, self.code))

    def _deny(self, request_id: str) -> None:
        self._agent.resolve_approval(request_id, ApprovalDecision(decision="deny", note=INPUT_ENDED), by="nobody")


async def _kept(keep: Flush) -> None:
    """Waits until everything is kept; where it cannot be, that is told as an event and the conversation goes on."""
    with suppress(SessionError):
        await keep()
