"""Notes that events leave in the conversation. Pure."""

import re

from tui_agent.protocol.amounts import count_text, money_text, names_text, seconds_text, tokens_text
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalResolved,
    BackgroundEnded,
    CompactionEnded,
    CompactionUndone,
    Failed,
    GuardrailTripped,
    HookFailed,
    InputRejected,
    InputWarned,
    LoopDetected,
    McpStatus,
    Noticed,
    PlanResolved,
    QuestionAnswered,
    QuestionAsked,
    RunEnded,
    SessionRenamed,
    SessionRepaired,
    SessionRewound,
    SessionSaveFailed,
    StepRetry,
    Warned,
)
from tui_agent.protocol.messages import is_array
from tui_agent.protocol.report_text import background_end_text, retry_text
from tui_agent.protocol.reports import RunReason
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.state.session_status import STATUS_NOTICES
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible

_ATTEMPT = re.compile(r"trying again (?:now|in [^(]*) \(attempt [0-9]+ of [0-9]+\)")

Note = tuple[str, str]
"""Kind of `transcript_parts.NotePart`, and text."""

BY_USER = "cancelled by the user"
"""Error of a run that the user cancelled in the app."""
_ENDS: dict[RunReason, Note] = {
    "done": ("muted", "done"),
    "stopped": ("muted", "stopped as you asked"),
    "terminated": ("muted", "ended by a tool"),
    "aborted": ("warning", "cancelled"),
    "error": ("error", "failed"),
    "guardrail": ("error", "halted by a guardrail"),
    "max_steps": ("warning", "step limit reached · say “continue” to resume"),
    "budget": ("warning", "budget used up"),
    "loop_detected": ("warning", "halted: the model repeated itself"),
    "input_rejected": ("warning", "the input was refused"),
}


def note_of(event: AgentEvent) -> Note | None:
    """Return the note about an event; None if it needs none."""
    match event:
        case Noticed(code=code, text=text):
            return None if code in STATUS_NOTICES else ("notice", text)
        case Warned(text=text):
            return "warning", text
        case Failed(text=text):
            return "error", text
        case StepRetry():
            return "retry", retry_text(event)
        case SessionSaveFailed(error=error):
            return "error", error
        case SessionRepaired(what=what):
            return "warning", f"The session was repaired: {what}"
        case HookFailed(name=name, error=error, timed_out=late, fail_open=opened):
            what = "did not answer in time" if late else f"failed: {error}"
            return "warning", f"Hook {name} {what}; {'the call continues' if opened else 'the call was denied'}"
        case _:
            return _watch_note(event) or _session_note(event)


def retried_text(text: str, *, tried: bool) -> str:
    """Return the text of a retry's note once its wait is over; `tried` is False if the run was stopped meanwhile."""
    if not tried:
        return _ATTEMPT.sub("the run ended before an answer", text)
    return text.replace("trying again in ", "tried again after ").replace("trying again now", "tried again at once")


def run_end_text(event: RunEnded) -> tuple[str, str]:
    """Return style and text of the line that ends a run."""
    kind, outcome = _ENDS[event.reason]
    if event.reason == "aborted" and event.error:
        outcome = "cancelled by you" if event.error == BY_USER else f"cancelled: {event.error}"
    elif event.reason == "error" and event.error:
        kind = "muted"  # The note above says what failed.
    numbers = [
        seconds_text(event.total_ms / 1000) if event.total_ms else "",
        count_text(event.steps, "step") if event.steps > 1 else "",
        count_text(event.tool_calls, "call") if event.tool_calls else "",
        money_text(event.cost) if event.cost else "",
    ]
    return kind, " · ".join(filter(None, [outcome, *numbers]))


def rewind_text(event: SessionRewound) -> str:
    """Return the notice of a rewind: the messages it removed, the files it restored and those it left."""
    what = one_line(event.text.strip(), 80)
    head = f"Undid the changes of “{what}”" if event.call_id else f"Rewound to before “{what}”"
    if event.is_undo:
        failed = f"left as they are: {names_text(event.left)}" if event.left else "/rewind undoes it"
        return f"Undid {what} · {failed}" if event.files else f"Not undone: {names_text(event.left)}"
    parts = [
        f"{count_text(event.removed, 'message')} removed" if event.conversation else "",
        f"changed back: {names_text(event.files)}" if event.files else "",
        f"left as they are: {names_text(event.left)}" if event.left else "",
    ]
    return " · ".join([head, *filter(None, parts), "/rewind undoes it"])


def _watch_note(event: AgentEvent) -> Note | None:
    """Return notes of filters, guardrails and watchers."""
    match event:
        case InputWarned(filter=name, text=text):
            return "warning", f"{name}: {text}"
        case InputRejected(filter=name, reason=reason):
            return "denied", f"Not sent to the model: {reason} ({name})"
        case GuardrailTripped(name=name, lane=lane, reason=reason, halted=halted):
            return ("error" if halted else "warning"), f"Guardrail {name} ({lane.replace('_', ' ')}): {reason}"
        case LoopDetected(tool=tool, count=count, action=action):
            what = "the run was ended" if action == "abort" else "the model was notified"
            return "warning", f"The model called {tool} {count} times with the same input; {what}"
        case McpStatus(problem=problem) if problem:
            return "warning", f"{problem} · /mcp shows it"
        case BackgroundEnded(status=status, code=code):
            is_bad = bool(code) or status in ("failed", "timeout")
            return ("warning" if is_bad else "notice"), background_end_text(event)
        case _:
            return None


def _session_note(event: AgentEvent) -> Note | None:
    """Return notes about the session, such as grants."""
    match event:
        case CompactionEnded(ok=True):
            return "notice", _compaction_text(event)
        case CompactionEnded(error=error):
            return "warning", f"The conversation could not be shortened{f': {error}' if error else ''}"
        case CompactionUndone(restored=restored, tokens_after=after):
            what = count_text(restored, "message")
            return "notice", f"Shortening undone: {what} as before, about {tokens_text(after)} tokens"
        case SessionRenamed(title=title):
            return "notice", f"This session is called {title} now"
        case SessionRewound():
            return "notice", rewind_text(event)
        case PlanResolved(accepted=False, note=note):
            # The row of the call says a yes.
            return "notice", f"Plan not accepted{f': {note}' if note else ''}"
        case QuestionAsked(text=text, options=options):
            return "notice", text + "".join(f"\n- {option}" for option in options)
        case QuestionAnswered(text=text):
            return "notice", f"You answered: {text}"
        case _:
            return None


def _compaction_text(done: CompactionEnded) -> str:
    """Return what the compaction did, with the size before and after."""
    what = "summarised" if done.strategy == "summary" else "put into a plain list"
    parts = [f"{count_text(done.removed, 'message')} {what}"] if done.removed else []
    parts += [f"{count_text(len(done.cut), 'old result')} cut short"] if done.cut else []
    sizes = f"{tokens_text(done.tokens_before)} → {tokens_text(done.tokens_after)} tokens"
    return "; ".join([f"Conversation shortened: {sizes}", *parts, "/compact undo reverts it"])


_LONGEST_MESSAGE = 100
_LONGEST_ANSWER = 60
_WORDS = {
    "form": ("You answered", "You did not answer"),
    "url": ("You agreed to open a page for", "You opened no page for"),
    "sign_in": ("You finished the sign-in to", "You did not sign in to"),
    "sampling": ("You let the model answer", "You let no model answer"),
}


def server_answer_note(question: ServerQuestion, event: ApprovalResolved) -> str:
    """Return the question and its answer in one line."""
    yes, no = _WORDS[question.kind]
    words = yes if event.decision == "approve" else no
    if event.by != "user":
        words = "No one answered" if event.by == "nobody" else "The end of the call closed a question of"
    said = f"{words} the server {visible(question.server)}: {_short(question.message, _LONGEST_MESSAGE)}"
    if question.kind != "form" or event.decision != "approve":
        return said
    labels = {field.name: field.label for field in question.fields}
    values = [f"{labels.get(name, name)} = {_text(value)}" for name, value in (event.answers or {}).items()]
    hidden = [f"{field.label} (not saved)" for field in question.fields if field.is_secret]
    return " · ".join([said, *map(visible, values), *map(visible, hidden)])


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "no answer"}[value]
    return _short(", ".join(map(str, value)) if is_array(value) else str(value), _LONGEST_ANSWER)


def _short(text: str, cells: int) -> str:
    return one_line(joined_lines(visible(text)), cells)
