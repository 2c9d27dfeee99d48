"""Output formats of headless mode: the final text, one JSON object a run, or every event."""

import json
import shlex
from collections.abc import Callable, Iterator
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
    PermissionDecided,
    RunEnded,
    RunStarted,
    SessionRepaired,
    SessionSaveFailed,
    StepRetry,
    ToolEnded,
    ToolQueued,
    Warned,
)
from tui_agent.protocol.facts.page_facts import Finding, findings_of, in_order
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.report_text import background_end_text, retry_text
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.trial import REPOSITORY, ProposedChanges, ProposedFile
from tui_agent.protocol.visible_text import escaped, escaped_json

from .exit_codes import ExitCode
from .plain_mode_output import Describe, PlainReporter

OutputFormat: TypeAlias = Literal["text", "json", "stream-json", "plain"]

DELTAS = frozenset({"message.delta", "tool.output", "tool.update", "background.output"})
"""Event types that the stream omits by default."""

QUIET = frozenset(
    {"status.changed", "context.usage", "usage.updated", "agent.destroyed", "session.saved"}
    | {"background.ended", "background.output"}
)
"""Event types that, between two runs, are held back until another event, so that `run.ended` is the last line of
all."""


RuleFor: TypeAlias = Callable[[str, JsonObject], str]
"""Returns the narrowest rules that would allow a call of this tool with these arguments, a line each; empty if none
can."""

ReadAnswer: TypeAlias = Callable[[str], object]
"""Returns the JSON value of a final answer, or raises ValueError."""

_LONGEST_CALL = 160
"""Most characters of a call in a note."""


def no_rule(_tool: str, _arguments: JsonObject) -> str:
    """Return no rule, as without a policy."""
    return ""


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
    rule_for: RuleFor = no_rule,
    read_answer: ReadAnswer | None = None,
) -> Reporter:
    """Return the reporter of a format.

    Args:
        include_deltas: True to include `DELTAS` in the stream.
        session_id: session id for the objects of `json`.
        describe: returns the lines of a question for `plain`.
        rule_for: returns the rules that would allow a call.
        read_answer: reads the value of final answers; None: they are text.
    """
    match output_format:
        case "stream-json":
            return StreamReporter(include_deltas=include_deltas)
        case "json":
            return JsonReporter(session_id, rule_for, read_answer)
        case "text":
            return TextReporter(terminal=terminal, rule_for=rule_for, read_answer=read_answer)
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

    def __init__(self, rule_for: RuleFor = no_rule) -> None:
        self._rule_for = rule_for
        self._errors: set[str] = set()
        self._questions: dict[str, ApprovalRequest] = {}
        """Questions that no one has answered yet, by id."""
        self._unanswered: dict[str, ApprovalRequest] = {}
        """Questions that no one could answer, by the id of their call."""
        self._calls: dict[str, ToolQueued] = {}
        """Calls that have not ended, by id."""
        self._denied_by_mode: set[str] = set()
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
            case ToolQueued(call_id=call_id):
                self._calls[call_id] = envelope.event
                return ""
            case PermissionDecided(call_id=call_id, decision="deny", source="mode"):
                self._denied_by_mode.add(call_id)
                return ""
            case ApprovalRequested(request_id=request_id):
                self._questions[request_id] = envelope.event
                return ""
            case ApprovalResolved(request_id=request_id):
                return self._answered(envelope.event, self._questions.pop(request_id, None))
            case ChangesDiscarded():
                return self._discarded(envelope.event)
            case ToolEnded():
                return self._ended(envelope.event)
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
            case _:
                return _job_note(envelope)

    def _answered(self, event: ApprovalResolved, question: ApprovalRequest | None) -> str:
        """Return the note for a question that no one could answer, with the rules that would have answered it."""
        if event.by not in ("nobody", "timeout"):
            return ""
        if question is None or question.question is not None:
            return f"note: {event.note}"
        self._unanswered[question.call_id] = question
        if question.changes is not None:
            return ""
        why = f": {question.reason.rstrip('.')}" if question.reason else ""
        return (
            f"note: {call_words(question.tool, question.summary)} was denied, because no one can approve it here{why}"
            f"{_allowed_by(_rules_of(question))}"
        )

    def _discarded(self, event: ChangesDiscarded) -> str:
        files = f"{event.count} changed {'file' if event.count == 1 else 'files'}"
        question = self._unanswered.get(event.call_id)
        call = self._calls.get(event.call_id)
        words = "a command" if call is None else call_words(call.name, call.summary)
        return (
            f"note: discarded {files} of {words}: {event.reason}{_allowed_by(_rules_of(question)) if question else ''}"
        )

    def _ended(self, event: ToolEnded) -> str:
        """Return the note for a call that a rule or the mode denied."""
        call = self._calls.pop(event.call_id, None)
        is_noted = self._unanswered.pop(event.call_id, None) is not None
        if event.status != "denied_policy" or is_noted or call is None:
            return ""
        by_mode = event.call_id in self._denied_by_mode
        allowed = _allowed_by(self._rule_for(call.name, call.args_raw)) if by_mode else ""
        text = next((block.text for block in event.content if isinstance(block, TextBlock)), "")
        why = text.partition("\n")[0].removeprefix("Permission denied: ")
        return f"note: {call_words(call.name, call.summary)} was denied: {why}{allowed}"

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Return the reason of a failed run, unless the same error was already noted."""
        if code is ExitCode.DONE or (report.error and report.error in self._errors):
            return ""
        if report.error:
            return f"error: {report.error}"
        if code is ExitCode.NOBODY_TO_ASK:
            return "error: a call needed approval, and no one could give it; a rule or another mode can allow it"
        return f"error: the run ended early ({report.reason})"


def call_words(tool: str, summary: str) -> str:
    """Return a call in a few words, on one line."""
    words = " ".join(f"{tool} {summary}".split())
    return words if len(words) <= _LONGEST_CALL else f"{words[: _LONGEST_CALL - 1]}…"


def _rules_of(question: ApprovalRequest) -> str:
    """Return the narrowest rules that would have answered a question, a line each."""
    return question.rules[0] if question.rules else question.session_rule or ""


def _allowed_by(rules: str) -> str:
    """Return the options that would have allowed a call."""
    if not rules:
        return "; no rule can allow it, only an answer or another --permission-mode"
    options = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules.split("\n"))
    return f"; {options} would allow it"


def _job_note(envelope: Envelope) -> str:
    """Return the note for a background command that was stopped with the session; empty for other events."""
    event = envelope.event
    if not isinstance(event, BackgroundEnded) or event.status != ENDED_WITH_SESSION:
        return ""
    return f"note: {background_end_text(event)}"


class TextReporter(_WithNotes):
    """Writes the findings and the final text of each run."""

    def __init__(self, *, terminal: bool, rule_for: RuleFor = no_rule, read_answer: ReadAnswer | None = None) -> None:
        super().__init__(rule_for)
        self._read_answer = read_answer
        self._terminal = terminal

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return findings and final text, or its value as JSON, with a line feed at the end; empty without them."""
        text = "\n\n".join((*(finding.plain for finding in self.findings or ()), *filter(None, (report.final_text,))))
        if self._read_answer is not None:
            value = _value_of(report, self._read_answer)
            text = "" if value is None else escaped_json(json.dumps(value, ensure_ascii=False))
        elif self._terminal:
            text = escaped(text)
        if text and not text.endswith("\n"):
            text += "\n"
        return text.encode("utf-8", "replace")


class JsonReporter(_WithNotes):
    """Writes one JSON object for each run."""

    def __init__(self, session_id: str, rule_for: RuleFor = no_rule, read_answer: ReadAnswer | None = None) -> None:
        super().__init__(rule_for)
        self._read_answer = read_answer
        self._session_id = session_id

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return the object in one line. Its `result` is the final text or, without one, the error."""
        summary: JsonObject = {
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
        if self._read_answer is not None:
            summary["structured_output"] = _value_of(report, self._read_answer)
        if self.findings is not None:
            summary["findings"] = [asdict(finding) for finding in self.findings]
        line = json.dumps(summary, ensure_ascii=False, separators=(",", ":"))
        whole = line.encode("utf-8", "replace").decode("utf-8")
        return f"{escaped_json(whole)}\n".encode()


def _value_of(report: AgentRunReport, read_answer: ReadAnswer) -> object:
    """Return the value of a final answer; None if the run ended early, or with an answer that does not match."""
    if report.reason not in ("done", "stopped", "terminated"):
        return None
    try:
        return read_answer(report.final_text)
    except ValueError:
        return None
