"""Output of plain mode (`--plain`): each event in one line of plain text, for screen readers and logs.

Only line feeds control the terminal: there are no colours and no cursor movements.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    CompactionEnded,
    CompactionStarted,
    Failed,
    InputRejected,
    McpStatus,
    MessageEnded,
    Noticed,
    PermissionModeChanged,
    RunEnded,
    SessionLoaded,
    SessionRepaired,
    SessionSaveFailed,
    SteeringDelivered,
    SteeringQueued,
    StepRetry,
    ToolEnded,
    ToolStarted,
    Warned,
)
from tui_agent.protocol.facts.page_facts import findings_of
from tui_agent.protocol.messages import AssistantMessage, TextBlock
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.report_text import REFUSED_BY, background_end_text, retry_text, status_words, via_words
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.visible_text import escaped

from .exit_codes import ExitCode

Describe = Callable[[ApprovalRequest], Sequence[str]]
"""Returns the lines of a question: the question itself, then everything the user has to see before an answer."""

_OTHERWISE = "Anything else is a message to the agent."
LONGEST = 300
"""Characters of a line about a call."""

INTRODUCTION = "tui-agent, plain mode. Type a message and press enter; /help lists what else you can type."

_ENDED = {
    "done": "done",
    "stopped": "stopped",
    "terminated": "done",
    "aborted": "interrupted",
    "error": "failed",
    "guardrail": "halted by a guardrail",
    "max_steps": "step limit reached",
    "budget": "budget used up",
    "loop_detected": "ended: it repeated itself",
    "input_rejected": "input refused",
}


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that the user has not answered."""

    request: ApprovalRequest
    written_at: float
    """Monotonic seconds."""


class PlainReporter:
    """Formats events as lines. Knows the open questions, in the order in which they were written."""

    def __init__(self, describe: Describe, clock: Callable[[], float] = time.monotonic) -> None:
        self.questions: dict[str, OpenQuestion] = {}
        """Open questions by the id of their request, oldest first."""
        self._describe = describe
        self._clock = clock
        self._answered_by: dict[str, str] = {}
        """`by` of the last answer to a question about a call, by id of the call, until it has ended."""
        self._calls: dict[str, str] = {}
        """Name and subject of each call that runs, by id."""

    def render(self, envelope: Envelope) -> bytes:
        """Return the lines for an event."""
        lines = self._lines(envelope.event)
        if envelope.origin.depth:
            # They are for the main agent, whose answer repeats what matters.
            own_words = isinstance(envelope.event, MessageEnded | RunEnded)
            lines = [] if own_words else [f"sub-agent {envelope.origin.agent_id}: {line}" for line in lines]
        return in_lines(lines)

    def note(self, envelope: Envelope) -> str:
        """Return a warning about missing tools for the error output; the lines contain everything else."""
        problem = envelope.event.problem if isinstance(envelope.event, McpStatus) else ""
        return f"warning: {problem}" if problem else ""

    def render_report(self, report: AgentRunReport, code: ExitCode) -> bytes:
        """Return the line for the end of a run."""
        facts = [_ENDED[report.reason], _count(report.step_count, "step"), _count(report.tool_call_count, "call")]
        facts.append(f"{report.total_ms / 1000:.1f} s")
        if report.cost_usd is not None:
            facts.append(f"${report.cost_usd:.2f}")
        return in_lines([f"{', '.join(facts)}. Type the next message."])

    def report_note(self, report: AgentRunReport, code: ExitCode) -> str:
        """Return nothing: the lines contain everything."""
        return ""

    def _lines(self, event: AgentEvent) -> list[str]:
        match event:
            case MessageEnded(message=AssistantMessage() as message):
                return _text_lines(message)
            case ToolStarted(call_id=call_id, name=name, summary=summary):
                call = self._calls[call_id] = _clipped(f"{name} {summary}".strip())
                return [f"running: {call}"]
            case ToolEnded():
                found = (" ".join(finding.plain.split()) for finding in findings_of(event) or ())
                return [self._ended(event), *(f"finding: {text}" for text in found)]
            case ApprovalRequested():
                return self._question(event)
            case ApprovalResolved():
                return self._answered(event)
            case _:
                text = _other_text(event)
                return [text] if text else []

    def _ended(self, event: ToolEnded) -> str:
        call = self._calls.pop(event.call_id, event.name)
        by = self._answered_by.pop(event.call_id, "user")
        # A command that ends with an error has run as asked: its status is `ok`.
        state = "failed" if event.is_error and event.status == "ok" else status_words(event.status, by)
        texts = [block.text for block in event.content if isinstance(block, TextBlock)]
        rows = [row for row in "\n".join(texts).splitlines() if row.strip()]
        more = f" ({len(rows)} lines)" if len(rows) > 1 else ""
        more += f": {problems}" if (problems := (event.details or {}).get("problems")) else ""
        return (
            _clipped(f"{'done' if state == 'ok' else state}: {call}" + (f": {rows[0].strip()}" if rows else "")) + more
        )

    def _question(self, request: ApprovalRequested) -> list[str]:
        self.questions[request.request_id] = OpenQuestion(request, self._clock())
        title, *rows = self._describe(request)
        number = len(self.questions)
        return [f"question{f' {number}' if number > 1 else ''}: {title}", *(f"  {row}" for row in rows), *self.prompt()]

    def prompt(self) -> list[str]:
        """Return the line that says how to answer the oldest open question; none if there is none."""
        if not self.questions:
            return []
        oldest = next(iter(self.questions.values())).request
        # Counted in words, because a screen reader reads one line after another.
        waiting = f" {len(self.questions)} questions wait; this is the answer to the first." * (len(self.questions) > 1)
        always = f", a for yes to every call that `{oldest.session_rule}` matches" if oldest.session_rule else ""
        if oldest.question is not None and not oldest.question.server:
            return [f"{_how_to_answer(oldest.question)} {_OTHERWISE}{waiting}"]
        if oldest.changes is not None:
            yes, no = "y to keep the changes", "n to discard them (n REASON tells the agent why)"
            always = f", a to keep such changes from now on (`{oldest.session_rule}`)" if oldest.session_rule else ""
            return [f"Type {yes}, {no}, f to keep only some files{always}, w to see every rule. {_OTHERWISE}{waiting}"]
        return [
            f"Type y for yes, n for no (n REASON tells the agent why){always}, k to skip, w to see every rule. "
            f"{_OTHERWISE}{waiting}"
        ]

    def _answered(self, event: ApprovalResolved) -> list[str]:
        question = self.questions.pop(event.request_id, None)
        answer = {"approve": "allowed", "deny": "denied", "skip": "skipped"}[event.decision]
        if question is not None and question.request.changes is not None:
            answer = "kept" if event.decision == "approve" else "discarded"
        if question is not None and question.request.question is not None and event.decision == "approve":
            answer = "answered"
        call = (
            "" if question is None else f": {_clipped(f'{question.request.tool} {question.request.summary}'.strip())}"
        )
        if event.by != "user":
            answer = REFUSED_BY[event.by] if event.decision == "deny" else f"{answer} by a rule"
        if event.via:
            answer = f"{answer} {via_words('', event.via).partition(' ')[2]}"
        # The end of the call says who refused it, and its event does not know.
        self._answered_by[event.call_id] = event.by
        return [f"{answer}{call}{f': {event.note}' if event.note else ''}", *self.prompt()]


def _how_to_answer(question: ServerQuestion) -> str:
    """Return how a typed line answers a question of the agent."""
    if question.kind == "plan":
        yes = "y to accept it and decide on each change, s to accept it and keep edits"
        return f"Type {yes}, n to decline, n TEXT to say what to change."
    many = "1=2; 2=your own words, the number of each question with its answer"
    one = "the number of your answer, or = and your own words"
    several = ", several with a comma between" if any(field.kind == "choices" for field in question.fields) else ""
    return f"Type {one if len(question.fields) == 1 else many}{several}; y for the defaults, k to let the agent decide."


def in_lines(lines: Sequence[str]) -> bytes:
    """Return lines as bytes, with everything that a terminal would act on as escapes."""
    return "".join(f"{escaped(line)}\n" for line in lines).encode("utf-8", "replace")


def _text_lines(message: AssistantMessage) -> list[str]:
    text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock)).strip()
    return [f"agent: {text}"] if text else []


def _other_text(event: AgentEvent) -> str:
    """Return the line for an event that is about no call; empty for most."""
    match event:
        case SteeringQueued(kind="notice") | SteeringDelivered(kind="notice"):
            return ""  # The event that it is about has its own line.
        case BackgroundStarted(task_id=task_id, command=command):
            return f"{task_id} runs in the background: {_clipped(command)}"
        case BackgroundEnded():
            return background_end_text(event)
        case SteeringQueued(kind=kind, text=text):
            return f"queued as {'a turn of its own' if kind == 'follow_up' else 'steering'}: {_clipped(text)}"
        case SteeringDelivered(text=text):
            return f"delivered: {_clipped(text)}"
        case SessionLoaded(id=name):
            return f"session {name} continues"
        case InputRejected(reason=text):
            return f"input refused: {text}"
        case PermissionModeChanged(new=mode):
            return f"mode: {mode.words}"
        case CompactionStarted():
            return "compacting the conversation"
        case CompactionEnded(ok=ok, error=error):
            return "compacted" if ok else f"not compacted: {error}"
        case StepRetry():
            return retry_text(event)
        case Failed(text=text) | SessionSaveFailed(error=text):
            return f"error: {text}"
        case Warned(text=text):
            return f"warning: {text}"
        case Noticed(text=text) | SessionRepaired(what=text):
            return f"note: {text}"
        case _:
            return ""


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    # A screen reader reads a line to its end.
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
