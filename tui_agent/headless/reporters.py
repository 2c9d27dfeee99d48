"""What headless mode writes: the final text, one object a run, or every event (interface §2)."""

import json
from typing import Literal, Protocol, TypeAlias

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ApprovalResolved,
    Failed,
    RunEnded,
    RunStarted,
    SessionRepaired,
    SessionSaveFailed,
    StepRetry,
    Warned,
)
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.visible_text import escaped, escaped_json

from .exit_codes import ExitCode

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]

DELTAS = frozenset({"message.delta", "tool.output", "tool.update"})
"""Left out of the stream unless asked for."""

QUIET = frozenset({"status.changed", "context.usage", "usage.updated", "agent.destroyed", "session.saved"})
"""Told between two runs they wait for something else to tell, so that `run.ended` is the last line of all."""


class Reporter(Protocol):
    """Turns what happens into bytes for standard output and lines for standard error."""

    def render(self, envelope: Envelope) -> bytes:
        """What is written when this was told."""
        ...

    def note(self, envelope: Envelope) -> str:
        """What is said beside it, for a person; empty for most."""
        ...

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """What is written at the end of a run."""
        ...

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """What is said beside it; empty for a run that got where it wanted."""
        ...


def reporter_for(output_format: OutputFormat, *, include_deltas: bool, session_id: str, terminal: bool) -> Reporter:
    """The reporter of a format.

    Args:
        output_format: what to write.
        include_deltas: whether the stream also holds `DELTAS`.
        session_id: named in each object of `json`.
        terminal: whether standard output is one.
    """
    match output_format:
        case "stream-json":
            return StreamReporter(include_deltas=include_deltas)
        case "json":
            return JsonReporter(session_id)
        case "text":
            return TextReporter(terminal=terminal)


class StreamReporter:
    """Every event as one line of compact JSON; the same objects that a screen and the journal get."""

    def __init__(self, *, include_deltas: bool) -> None:
        self._left_out = frozenset[str]() if include_deltas else DELTAS
        self._between_runs = False
        self._held: list[Envelope] = []

    def render(self, envelope: Envelope) -> bytes:
        """One line, or none yet."""
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
        """Nothing: everything is in the stream."""
        return ""

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Nothing: `run.ended` says it."""
        return b""

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Nothing: `run.ended` says it."""
        return ""


class _WithNotes:
    """Says on standard error what a person should know although only the result was asked for."""

    def __init__(self) -> None:
        self._errors: set[str] = set()

    def render(self, envelope: Envelope) -> bytes:
        """Nothing: only the end counts."""
        return b""

    def note(self, envelope: Envelope) -> str:
        """One line for what went wrong."""
        match envelope.event:
            case RunStarted() if not envelope.origin.depth:
                self._errors.clear()
                return ""
            case Failed(text=text):
                self._errors.add(text)
                return f"error: {text}"
            case Warned(text=text):
                return f"warning: {text}"
            case SessionSaveFailed(error=error):
                return f"warning: {error}"
            case SessionRepaired(what=what):
                return f"note: {what}"
            case StepRetry() as retry:
                return f"note: {retry.error_kind}: asking again in {retry.wait_s:g} s ({retry.attempt}/{retry.max})"
            case ApprovalResolved(by="nobody", note=note):
                return f"note: {note}"
            case _:
                return ""

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Why the run did not get where it wanted; the same error is said once."""
        if code is ExitCode.DONE or (report.error and report.error in self._errors):
            return ""
        if report.error:
            return f"error: {report.error}"
        if code is ExitCode.NOBODY_TO_ASK:
            return "error: a call needed an approval that nobody could give; a rule or another mode can allow it"
        return f"error: the run ended early ({report.reason})"


class TextReporter(_WithNotes):
    """The final text of each run."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """The text with a line feed at its end; nothing where there is none."""
        text = escaped(report.final_text) if self._terminal else report.final_text
        if text and not text.endswith("\n"):
            text += "\n"
        return text.encode("utf-8", "replace")


class JsonReporter(_WithNotes):
    """One object a run."""

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self._session_id = session_id

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """The object on one line. Its `result` is the error's text where there is nothing else to show."""
        summary = {
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
        line = json.dumps(summary, ensure_ascii=False, separators=(",", ":"))
        whole = line.encode("utf-8", "replace").decode("utf-8")
        return f"{escaped_json(whole)}\n".encode()
