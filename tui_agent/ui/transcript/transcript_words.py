"""Words of the conversation: the state and the result of a call in one line, and notes that events leave. Pure."""

import re
from collections.abc import Callable

from tui_agent.protocol.amounts import count_text, money_text, names_text, seconds_text, tokens_text
from tui_agent.protocol.cancellation import ASKED_AGAIN, NOT_BEGUN
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
    ToolStatus,
    Warned,
)
from tui_agent.protocol.messages import is_array
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL
from tui_agent.protocol.report_text import REFUSED_BY, background_end_text, retry_text, via_words
from tui_agent.protocol.reports import RunReason
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.panel.call_rows import wait_text
from tui_agent.ui.state.call_records import question_text, settled_text
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.state.session_status import STATUS_NOTICES
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible

RESUMED = frozenset((ASKED_AGAIN, NOT_BEGUN))
"""Reasons for which a call ended that a resumed session starts again."""
_LONGEST_READ = 400
"""Characters of a result in which its first lines are sought."""

_WORDS: dict[ToolStatus, str] = {
    "overridden": "replaced by a hook",
    "denied_user": "you denied it",
    "denied_policy": "denied",
    "denied_hook": "denied by a hook",
    "denied_guardrail": "denied by a guardrail",
    "withheld": "withheld from the model",
    "skipped_steering": "skipped: you steered",
    "skipped_hook": "skipped by a hook",
    "skipped_user": "you skipped it",
    "cancelled": "cancelled",
    "interrupted": "outcome unknown",
    "timeout": "timed out",
    "not_found": "no such tool",
}
"""Texts for results that the tool did not produce."""
_STYLES: dict[ToolStatus, str] = {"interrupted": "warning", "timeout": "error"}
"""Styles of those that are not the decision of a user, a rule or a hook."""
_PROBLEMS: frozenset[ToolStatus] = frozenset({"error", "timeout", "invalid", "not_found", "output_limit"})


def outcome_of(view: CallViewState) -> tuple[str, str]:
    """Return the result of a call in one line, with its style; empty while there is none."""
    if view.status is None:
        return "", ""
    details = view.outcome.details or {}
    reported, first = details.get("outcome"), first_line(view.outcome.result)
    # Before the words: its status is that of a cancelled call, but nothing was decided about it.
    if view.outcome.error_kind == ASKED_AGAIN:
        return "asks again when the session resumes", "muted"
    if view.status in _WORDS:
        return _refusal(view, _WORDS[view.status]), _STYLES.get(view.status, "muted")
    if view.status in _PROBLEMS:
        failure = (reported if isinstance(reported, str) and reported else first) or "failed"
        parts = (failure, settled_text(view.changes), _answer_from_elsewhere(view))
        return " · ".join(filter(None, parts)), "error"
    settled, answer = settled_text(view.changes), view.approval.resolution
    # The user knows that it was their own answer.
    reason = answer.note if answer is not None and answer.by == "user" else view.changes.trial.reason
    if settled.startswith("discarded") and reason:
        settled = f"{settled}: {reason}"
    said = reported if isinstance(reported, str) else ""
    return " · ".join(filter(None, (said, settled, _answer_from_elsewhere(view)))), "muted"


def _answer_from_elsewhere(view: CallViewState) -> str:
    answer = view.approval.resolution
    return "" if answer is None else via_words(answer.decision, answer.via)


def state_of(view: CallViewState, find: Callable[[str], LedgerCall | None]) -> tuple[str, str]:
    """Return the state or the result of a call in one line, with its style."""
    match view.phase:
        case "asking":
            return question_text(view.approval.request), "warning"
        case "waiting" | "queued":
            return wait_text(view, find), "muted"
        case "running" if view.agent_asks:
            return "needs you", "warning"
        case "running":
            return view.live.progress, "muted"
        case "ended":
            return outcome_of(view)


def first_line(text: str) -> str:
    """Return the first line with text; with the second if it only announces that."""
    lines = [line for line in text[:_LONGEST_READ].split("\n") if line.strip()][:2]
    is_heading = len(lines) > 1 and lines[0].endswith(":")
    return f"{lines[0]} {lines[1].strip().removeprefix('- ')}" if is_heading else "".join(lines[:1])


def _refusal(view: CallViewState, words: str) -> str:
    """Return who kept a call from running, and why."""
    resolution, reason = view.approval.resolution, _reason(view)
    if view.status == "denied_user" and resolution is not None:
        words = via_words(resolution.decision, resolution.via) or REFUSED_BY.get(resolution.by, words)
    if view.status == "denied_policy" and reason.startswith(PLAN_MODE_DENIAL):
        head, _, what = reason.partition(": ")
        # The row names the file already.
        return head if what and what.rpartition(" ")[2] in view.summary.split() else reason
    # The reason of a hook file begins with them.
    if reason.lower().startswith(words):
        return reason
    return f"{words}{f': {reason}' if reason else ''}"


def _reason(view: CallViewState) -> str:
    """Return why a call was denied or skipped, as the user, the rule or the hook said it."""
    resolution, decision = view.approval.resolution, view.approval.decision
    if view.status in ("denied_user", "skipped_user"):
        return resolution.note if resolution is not None else ""
    if view.status == "denied_policy" and decision is not None:
        return decision.rule or decision.reason
    if view.status in ("denied_hook", "skipped_hook"):
        return next((run.reason for run in reversed(view.approval.hooks) if run.reason), "")
    return ""


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
            # The status line shows the others.
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
_ANSWERED = {
    "form": ("You answered", "You did not answer"),
    "url": ("You agreed to open a page for", "You opened no page for"),
    "sign_in": ("You finished the sign-in to", "You did not sign in to"),
    "sampling": ("You let the model answer", "You let no model answer"),
}


def server_answer_note(question: ServerQuestion, event: ApprovalResolved) -> str:
    """Return the question and its answer in one line."""
    yes, no = _ANSWERED[question.kind]
    words = yes if event.decision == "approve" else no
    if event.by != "user":
        words = "No one answered" if event.by == "nobody" else "The end of the call closed a question of"
    said = f"{words} the server {visible(question.server)}: {_short(question.message, _LONGEST_MESSAGE)}"
    if question.kind != "form" or event.decision != "approve":
        return said
    labels = {field.name: field.label for field in question.fields}
    values = [f"{labels.get(name, name)} = {_text(value)}" for name, value in (event.answers or {}).items()]
    # The event has no secrets, so the note can only say that there was one.
    hidden = [f"{field.label} (not saved)" for field in question.fields if field.is_secret]
    return " · ".join([said, *map(visible, values), *map(visible, hidden)])


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "no answer"}[value]
    return _short(", ".join(map(str, value)) if is_array(value) else str(value), _LONGEST_ANSWER)


def _short(text: str, cells: int) -> str:
    return one_line(joined_lines(visible(text)), cells)
