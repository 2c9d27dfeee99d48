"""The subscriber of headless mode: writes the events of the bus in the output format."""

from contextlib import suppress
from typing import TYPE_CHECKING

from tui_agent.protocol.bus import Subscription
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, RunEnded, SessionSaved, SessionSaveFailed
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.pipes import PipeWriter
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.visible_text import escaped

from .exit_codes import ExitCode, UnansweredApprovals, code_of
from .reporters import DELTAS, Reporter

if TYPE_CHECKING:
    from tui_agent.workbench.workbench import Workbench

PACE = 0.02
"""Seconds for which deltas are collected before they are written."""

INPUT_ENDED = "the input has ended, so no one can approve; the call was denied."


class Listener:
    """Writes the events of a subscription until it is closed. Each event is saved before it is written, so that a
    reader sees nothing that a killed program would forget."""

    def __init__(
        self,
        bench: "Workbench",
        heard: Subscription,
        reporter: Reporter,
        output: PipeWriter,
        errors: PipeWriter,
        *,
        answers: bool,
    ) -> None:
        """
        Args:
            bench: the session, whose calls are denied if no one can answer.
            heard: all events of the bus, from the first on.
            answers: True if a client reads requests for approval and can answer them.
        """
        self.code = ExitCode.DONE
        """Exit code of the last run."""
        self.is_unsaved = False
        """True if the newest events could not be saved."""
        self._bench = bench
        self._heard = heard
        self._reporter = reporter
        self._output = output
        self._errors = errors
        self._answers = answers
        self._waiting: set[str] = set()
        self._questions = UnansweredApprovals()

    async def listen(self) -> None:
        """Write all events until the subscription is closed. Waits for a slow reader."""
        async for batch in self._heard.batches(pace=PACE):
            for envelope in batch:
                self._take_note(envelope)
            if any(envelope.type not in DELTAS for envelope in batch):
                await self._save()
            for envelope in batch:
                self._write(envelope)
            await self._output.room()

    def say(self, note: str) -> None:
        """Write a note to standard error."""
        if note:
            self._errors.put(f"tui-agent: {escaped(note)}\n".encode("utf-8", "replace"))

    def sum_up(self, report: AgentRunReport, code: ExitCode) -> None:
        """Write the output for the end of a run."""
        self._output.put(self._reporter.render_report(report, code))

    def deny_approvals(self) -> None:
        """Deny every request for approval from now on, open ones included."""
        self._answers = False
        for request_id in sorted(self._waiting):
            self._deny(request_id)

    def _take_note(self, envelope: Envelope) -> None:
        """React to an event before it is saved and written."""
        self._questions.apply(envelope)
        match envelope.event:
            case ApprovalRequested(request_id=request_id):
                self._waiting.add(request_id)
                if not self._answers:
                    self._deny(request_id)
            case ApprovalResolved(request_id=request_id):
                self._waiting.discard(request_id)
            case SessionSaveFailed() | SessionSaved():
                self.is_unsaved = isinstance(envelope.event, SessionSaveFailed)
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
        self._bench.agent.resolve_approval(request_id, ApprovalDecision(decision="deny", note=INPUT_ENDED), by="nobody")

    async def _save(self) -> None:
        """Wait until all events are saved. A failure is ignored here: the journal's writer publishes it, and the
        conversation continues."""
        if self._bench.save is not None:
            with suppress(SessionError):
                await self._bench.save()
