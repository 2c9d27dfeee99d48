"""Output formats of headless mode: the final text, one JSON object a run, or every event."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Literal, Protocol, TypeAlias

from tui_agent.protocol.activity_events import ENDED_WITH_SESSION
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    ChangesDiscarded,
    Failed,
    McpStatus,
    Noticed,
    RunEnded,
    RunStarted,
    SessionRepaired,
    SessionSaveFailed,
    StepRetry,
    ToolEnded,
    Warned,
)
from tui_agent.protocol.facts.finding_facts import Finding, findings_of, in_order
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.status_words import background_end_text, retry_text
from tui_agent.protocol.trial import REPOSITORY, ProposedChanges, ProposedFile
from tui_agent.protocol.visible_text import escaped, escaped_json

from .exit_codes import ExitCode
from .plain_reporter import Describe, PlainReporter

OutputFormat: TypeAlias = Literal["text", "json", "stream-json", "plain"]

DELTAS = frozenset({"message.delta", "tool.output", "tool.update", "background.output"})
"""Event types that the stream omits by default."""

QUIET = frozenset(
    {"status.changed", "context.usage", "usage.updated", "agent.destroyed", "session.saved"}
    | {"background.ended", "background.output"}
)
"""Event types that, between two runs, are held back until another event, so that `run.ended` is the last line of
all."""


class Reporter(Protocol):
    """Formats events as bytes for standard output and notes for standard error."""

    def render(self, envelope: Envelope) -> bytes:
        """Return the output for an event."""
        ...

    def note(self, envelope: Envelope) -> str:
        """Return the note for an event; empty for most."""
        ...

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return the output for the end of a run."""
        ...

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Return the note for the end of a run; empty for a successful run."""
        ...


def describe_briefly(request: ApprovalRequest) -> tuple[str, ...]:
    """Return the lines of a question without the words of the screen: tool, input as JSON, reason."""
    if request.changes is not None:
        return (f"Keep what {request.tool} changed?", *change_lines(request.changes), *filter(None, (request.reason,)))
    return (f"Use {request.tool}?", json.dumps(request.args, ensure_ascii=False), *filter(None, (request.reason,)))


def change_lines(changes: ProposedChanges) -> Iterator[str]:
    """Yield one line for each thing that a command changed, with the number by which an answer names it."""
    facts = {file.path: _file_facts(file) for file in changes.files}
    facts |= {tree.path: f"{tree.files:,} files" for tree in changes.trees}
    facts[REPOSITORY] = "; ".join(changes.repository)
    yield from (f"{number}. {path}: {facts[path]}" for number, path in enumerate(changes.paths, start=1))


def _file_facts(file: ProposedFile) -> str:
    lines = f"+{file.added} −{file.removed}" if file.added or file.removed else ""
    return " · ".join(filter(None, (file.kind, lines, file.note, file.runs_later, file.conflict)))


def reporter_for(
    output_format: OutputFormat,
    *,
    include_deltas: bool,
    session_id: str,
    terminal: bool,
    describe: Describe = describe_briefly,
) -> Reporter:
    """Return the reporter of a format.

    Args:
        output_format: the format.
        include_deltas: True to include `DELTAS` in the stream.
        session_id: session id for the objects of `json`.
        terminal: True if standard output is a terminal.
        describe: returns the lines of a question for `plain`.
    """
    match output_format:
        case "stream-json":
            return StreamReporter(include_deltas=include_deltas)
        case "json":
            return JsonReporter(session_id)
        case "text":
            return TextReporter(terminal=terminal)
        case "plain":
            return PlainReporter(describe)


class StreamReporter:
    """Writes every event as one line of compact JSON, as in the journal."""

    def __init__(self, *, include_deltas: bool) -> None:
        self._left_out = frozenset[str]() if include_deltas else DELTAS
        self._between_runs = False
        self._held: list[Envelope] = []

    def render(self, envelope: Envelope) -> bytes:
        """Return the lines to write now."""
        if envelope.type in self._left_out:
            return b""
        if self._between_runs and envelope.type in QUIET:
            self._held.append(envelope)
            return b""
        if not envelope.origin.depth and isinstance(envelope.event, RunStarted | RunEnded):
            self._between_runs = isinstance(envelope.event, RunEnded)
        lines, self._held = [*self._held, envelope], []
        return "".join(f"{escaped_json(line.to_json())}\n" for line in lines).encode()

    def note(self, envelope: Envelope) -> str:
        """Return the note for a command that ended with the last run, behind which the stream has no more lines."""
        return _job_note(envelope)

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return nothing: `run.ended` is in the stream."""
        return b""

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Return nothing: `run.ended` is in the stream."""
        return ""


class _WithNotes:
    """Base of the formats without a stream: writes errors and warnings to standard error."""

    def __init__(self) -> None:
        self._errors: set[str] = set()
        self._about_changes: set[str] = set()
        """Questions about changes of commands, by id."""
        self.findings: tuple[Finding, ...] | None = None
        """Findings that the run has reported; None if it reported none."""

    def render(self, envelope: Envelope) -> bytes:
        """Return nothing: only the end of a run is written."""
        event = envelope.event
        if isinstance(event, RunStarted) and not envelope.origin.depth:
            self.findings = None
        elif isinstance(event, ToolEnded) and (found := findings_of(event)) is not None:
            self.findings = in_order((*(self.findings or ()), *found))
        return b""

    def note(self, envelope: Envelope) -> str:
        """Return the note for an error, warning or repair."""
        match envelope.event:
            case RunStarted() if not envelope.origin.depth:
                self._errors.clear()
                return ""
            case Failed(text=text):
                self._errors.add(text)
                return f"error: {text}"
            case Warned(text=text):
                return f"warning: {text}"
            case McpStatus(problem=problem) if problem:
                return f"warning: {problem}"
            case SessionSaveFailed(error=error):
                return f"warning: {error}"
            case SessionRepaired(what=text) | Noticed(code="variables_withheld", text=text):
                return f"note: {text}"
            case StepRetry() as retry:
                return f"note: {retry_text(retry)}"
            case ApprovalRequested(request_id=request_id, changes=ProposedChanges()):
                self._about_changes.add(request_id)
                return ""
            case ChangesDiscarded(count=count, reason=reason):
                return f"note: discarded {count} changed {'file' if count == 1 else 'files'} of a command: {reason}"
            case ApprovalResolved(by="nobody", note=note, request_id=request_id):
                return "" if request_id in self._about_changes else f"note: {note}"
            case _:
                return _job_note(envelope)

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Return the reason of a failed run, unless the same error was already noted."""
        if code is ExitCode.DONE or (report.error and report.error in self._errors):
            return ""
        if report.error:
            return f"error: {report.error}"
        if code is ExitCode.NOBODY_TO_ASK:
            return "error: a call needed approval, and no one could give it; a rule or another mode can allow it"
        return f"error: the run ended early ({report.reason})"


def _job_note(envelope: Envelope) -> str:
    """Return the note for a background command that was stopped with the session; empty for other events."""
    event = envelope.event
    if not isinstance(event, BackgroundEnded) or event.status != ENDED_WITH_SESSION:
        return ""
    return f"note: {background_end_text(event)}"


class TextReporter(_WithNotes):
    """Writes the findings and the final text of each run."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return findings and final text with a line feed at its end; empty if there is neither."""
        text = "\n\n".join((*(finding.plain for finding in self.findings or ()), *filter(None, (report.final_text,))))
        text = escaped(text) if self._terminal else text
        if text and not text.endswith("\n"):
            text += "\n"
        return text.encode("utf-8", "replace")


class JsonReporter(_WithNotes):
    """Writes one JSON object for each run."""

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self._session_id = session_id

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return the object in one line. Its `result` is the final text or, without one, the error."""
        summary: dict[str, object] = {
            "session_id": self._session_id,
            "result": report.final_text or report.error or "",
            "is_error": code is not ExitCode.DONE,
            "reason": report.reason,
            "usage": report.total_usage.model_dump(),
            "cost_usd": report.cost_usd,
            "steps": report.step_count,
            "tool_calls": report.tool_call_count,
            "duration_ms": round(report.total_ms),
        }
        if self.findings is not None:
            summary["findings"] = [asdict(finding) for finding in self.findings]
        line = json.dumps(summary, ensure_ascii=False, separators=(",", ":"))
        whole = line.encode("utf-8", "replace").decode("utf-8")
        return f"{escaped_json(whole)}\n".encode()
