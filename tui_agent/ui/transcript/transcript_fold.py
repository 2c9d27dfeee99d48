"""Fold from events to the parts of the conversation, the same for live, resumed and replayed sessions."""

from tui_agent.protocol.cancellation import ASKED_AGAIN
from tui_agent.protocol.envelope import Envelope, event_classes
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    ContextUsage,
    Failed,
    FileChanged,
    HookEnded,
    HookStarted,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    PermissionDecided,
    PlanProposed,
    RequestBuilt,
    RunEnded,
    RunStarted,
    SessionCreated,
    SessionLoaded,
    SessionRewound,
    SessionSwitched,
    StatusChanged,
    SteeringDelivered,
    StepEnded,
    StepRetry,
    StepStarted,
    TodoUpdated,
    ToolBatchEnded,
    ToolBatchStarted,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    TurnStarted,
    UsageUpdated,
    Warned,
)
from tui_agent.protocol.messages import AssistantMessage, ImageBlock, UserMessage, joined_text
from tui_agent.ui.state.call_records import FileChange
from tui_agent.ui.text.amounts import bytes_text, count_text
from tui_agent.ui.text.sanitiser import with_controls

from .answer_fold import AnswerFold
from .changed_files_part import ChangedFilesPart
from .markdown.markdown_part import MarkdownPart
from .rewind_marks import RewindMarks
from .transcript_model import Part, Transcript
from .transcript_notes import note_of, run_end_text
from .transcript_parts import (
    BODY,
    MAX_CHARACTERS,
    CallsPart,
    CommandPart,
    DividerPart,
    HeadingPart,
    NotePart,
    TextPart,
    TodoPart,
)

HANDLED_EVENTS: frozenset[type[AgentEvent]] = frozenset(event_classes().values()) - {
    *(RequestBuilt, TurnStarted, TurnEnded, StepStarted, StepEnded, UsageUpdated, ContextUsage, StatusChanged),
    *(ToolBatchStarted, ToolBatchEnded, ToolStarted, ToolUpdated, ToolProgress, PermissionDecided),
    *(HookStarted, HookEnded),
}
"""Events that change the conversation; other parts of the screen show the others."""


class TranscriptFold:
    """Changes a transcript by events only."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        """The parts so far."""
        self._start()

    def _start(self) -> None:
        """Forget the events so far."""
        self._answers = AnswerFold(self.transcript)
        self._calls: CallsPart | None = None
        self._calls_key: tuple[str | None, int | None] | None = None
        self._groups: dict[str, CallsPart] = {}
        self._headings: dict[str, HeadingPart] = {}
        self._landed: dict[str, str] = {}
        self._rules: dict[str, str] = {}
        self._changed: dict[str, ChangedFilesPart] = {}
        self._root = ""
        self._retry: NotePart | None = None
        self._todo: TodoPart | None = None
        self._command: CommandPart | None = None
        self._rewind = RewindMarks(self.transcript)

    def flush(self) -> bool:
        """Bring new text of open answers into their parts; return True if the next flush has more of it to read."""
        waits = False
        for part in self._answers.growing():
            part.flush()
            self.transcript.refresh(part)
            waits = waits or part.waits
        return waits

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event, of sub-agents only failures; return False if it changed nothing."""
        event = envelope.event
        if envelope.origin.depth > 0:
            if not isinstance(event, Failed | Warned):
                return False
            self._note(event)
            return True
        self._take(event, envelope)
        self._rewind.note(envelope.seq)
        return True

    def _take(self, event: AgentEvent, envelope: Envelope) -> None:
        match event:
            case MessageDelta():
                self._answers.grow(event)
            case MessageStarted(role="assistant", message_id=message_id):
                self._answers.begin(message_id)
                self._retry = None
            case MessageEnded(message=AssistantMessage() as message, message_id=message_id):
                self._answers.end(message_id, message)
            case MessageEnded(message=UserMessage() as message):
                if message.kind != "command":  # Its part has shown it already.
                    self._said(message)
            case MessageDiscarded(message_id=message_id):
                self._forget_calls(self._answers.discard(message_id))
            case SteeringDelivered():
                self._mark_delivery(event)
            case ToolQueued() | ToolOutput() | ToolEnded() if self._command is not None:
                self._commanded(self._command, event)
            case ToolQueued():
                self._called(event, envelope)
            case ToolEnded():
                self._call_ended(event)
            case FileChanged(call_id=str(call_id)):
                self._file_changed(call_id, FileChange.of(event, self._root))
            case RunStarted() | RunEnded():
                self._run(event)
            case SessionRewound():
                self._apply_rewind(event, envelope.seq)
            case SessionSwitched():
                self._clear()
            case _:
                self._other(event)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _said(self, message: UserMessage) -> None:
        if message.kind == "notice":
            self._add(NotePart("notice", message.text))
            return
        landed = self._landed.pop(message.id, "")
        heading = HeadingPart("You", "you", _landing(message.kind, landed))
        self._headings[message.id] = heading
        self._add(heading)
        for block in message.content:
            is_image = isinstance(block, ImageBlock)
            self._add(TextPart(_image_words(block), "muted") if is_image else _said_part(block.text))
        self._answers.speaking = False

    def _mark_delivery(self, event: SteeringDelivered) -> None:
        heading = self._headings.get(event.message_id)
        if heading is None:
            self._landed[event.message_id] = event.boundary
            return
        heading.annotate(_landing(event.kind, event.boundary))
        self.transcript.refresh(heading)

    # --- what it does -------------------------------------------------------------------------------------------------

    def _called(self, event: ToolQueued, envelope: Envelope) -> None:
        key = (envelope.origin.run_id, envelope.origin.step)
        if self._calls is None or key != self._calls_key:
            self._calls, self._calls_key = CallsPart(gap=self._follows(ChangedFilesPart)), key
            if (answer := self._answers.newest) is not None:
                self._answers.drop(answer, answer.preparing)
                self._answers.append(answer, self._calls)
            else:
                self._add(self._calls)
        self._calls.add(event.call_id, event.name)
        self._groups[event.call_id] = self._calls
        self.transcript.refresh(self._calls)

    def _call_ended(self, event: ToolEnded) -> None:
        group = self._groups.get(event.call_id)
        if group is not None:
            group.end(event.call_id, None if event.error_kind == ASKED_AGAIN else event.status)
            self.transcript.refresh(group)
        details = event.details or {}
        diff, path = details.get("diff"), details.get("path")
        if event.status == "ok" and isinstance(diff, str) and diff and event.call_id not in self._changed:
            self._file_changed(event.call_id, FileChange(path if isinstance(path, str) else "", "modified", diff))
        self._groups.pop(event.call_id, None)
        self._changed.pop(event.call_id, None)

    def _commanded(self, part: CommandPart, event: ToolQueued | ToolOutput | ToolEnded) -> None:
        """Return the only call of a command of the user."""
        match event:
            case ToolQueued(call_id=call_id):
                part.begin(call_id)
            case ToolOutput(chunk=chunk):
                part.grow(chunk)
            case ToolEnded(status=status, content=content):
                part.end(status, joined_text(content))
        self.transcript.refresh(part)

    def _forget_calls(self, gone: list[Part]) -> None:
        """Forget the calls of a discarded response; the panel shows their outcome."""
        self._groups = {call_id: group for call_id, group in self._groups.items() if group not in gone}
        if self._calls in gone:
            self._calls = None

    def _lose_open_calls(self) -> None:
        """End calls without a reported end; their outcome is unknown."""
        for call_id, group in self._groups.items():
            group.end(call_id, "interrupted")
            self.transcript.refresh(group)

    def _end_open_calls(self) -> None:
        """End calls without a reported end, and ignore later events about them."""
        self._lose_open_calls()
        self._groups.clear()
        self._changed.clear()

    def _file_changed(self, call_id: str, file: FileChange) -> None:
        """Add a changed file to the part with all changes of its call."""
        part = self._changed.get(call_id)
        if part is not None:
            part.add(file)
            self.transcript.refresh(part)
            return
        group = self._groups.get(call_id)
        self._changed[call_id] = part = ChangedFilesPart(call_id, group.name_of(call_id) if group else "")
        part.add(file)
        self._add(part)

    # --- what happens around it ---------------------------------------------------------------------------------------

    def _run(self, event: RunStarted | RunEnded) -> None:
        self._answers.close()
        self._answers.speaking, self._calls, self._retry = False, None, None
        if isinstance(event, RunStarted):
            self._command = self._command_of(event) if event.trigger == "command" else None
            return
        self._end_open_calls()
        if self._command is not None:
            self._command = None
            return
        if event.error and not self._already_reported(event.error):
            self._add(NotePart("error", event.error, gap=True))
        style, text = run_end_text(event)
        self._add(DividerPart(text, style))

    def _command_of(self, event: RunStarted) -> CommandPart:
        private = "only you see the output" if event.input.startswith("!!") else ""
        self._add(HeadingPart("You", "you", private))
        part = CommandPart(event.input)
        self._add(part)
        return part

    def _apply_rewind(self, event: SessionRewound, seq: int) -> None:
        """Show the conversation of the earlier moment, and a note about the rewind."""
        if event.conversation:
            self._answers.close()
            self._end_open_calls()
            self._answers.speaking, self._calls, self._retry = False, None, None
            self._rewind.go_back(seq, event.to_seq)
            shown = (part for part in reversed(self.transcript.parts) if isinstance(part, TodoPart))
            self._todo = next(shown, None)
        self._note(event)

    def _clear(self) -> None:
        """Start with an empty conversation."""
        while self.transcript.parts:
            self.transcript.remove(self.transcript.parts[-1])
        self._start()

    def _other(self, event: AgentEvent) -> None:
        match event:
            case SessionCreated(cwd=root):
                self._root = root
            case SessionLoaded(events=events, cwd=root):
                self._root = root
                self._lose_open_calls()
                self._add(DividerPart(f"session resumed · {count_text(events, 'earlier event')}", "notice"))
                self._answers.speaking = False
            case ApprovalRequested(request_id=request_id, session_rule=rule):
                self._rules[request_id] = rule or ""
            case ApprovalResolved():
                self._answered(event)
            case TodoUpdated(items=items):
                if self._todo is not None:
                    self.transcript.remove(self._todo)
                self._todo = TodoPart(items)
                self._add(self._todo)
            case PlanProposed(text=text):
                self._add(HeadingPart("Plan", "assistant"))
                self._add(MarkdownPart(text, margin=BODY))
            case StepRetry() if self._retry is not None:
                note = note_of(event)
                self._retry.replace(note[1] if note else "")
                self.transcript.refresh(self._retry)
            case _:
                self._note(event)

    def _answered(self, event: ApprovalResolved) -> None:
        """Add a note about the user's decision if it changes the course of the run."""
        offered = self._rules.pop(event.request_id, "")
        rule = event.rule or offered
        group = self._groups.get(event.call_id)
        tool = group.name_of(event.call_id) if group else "the call"
        if event.by != "user":
            return
        if event.decision == "approve":
            if event.scope != "once" and rule:
                self._add(NotePart("success", f"You allowed for this {event.scope}: {rule}"))
            return
        verb = "denied" if event.decision == "deny" else "skipped"
        self._add(NotePart("denied", f"You {verb} {tool}{f': {event.note}' if event.note else ''}"))

    def _note(self, event: AgentEvent) -> None:
        note = note_of(event)
        if note is None:
            return
        part = NotePart(*note, gap=not self._follows(NotePart, CallsPart))
        if isinstance(event, StepRetry):
            self._retry = part
        self._add(part)

    def _already_reported(self, text: str) -> bool:
        """Return True if one of the last parts already reports this, as an error or as the user's end of the run."""
        last = [part for part in self.transcript.parts[-3:] if isinstance(part, NotePart)]
        return any(text in part.text or (_is_error(part) and part.text in text) for part in last)

    def _follows(self, *kinds: type[Part]) -> bool:
        """Return True if the last part is of one of these kinds; the next one then follows without an empty row."""
        return any(isinstance(part, kinds) for part in self.transcript.parts[-1:])

    def _add(self, part: Part) -> None:
        self.transcript.add(part)


def _said_part(text: str) -> Part:
    """Return the user's message with every character visible, as in the composer; a long text is laid out on demand."""
    if len(text) <= MAX_CHARACTERS:
        return TextPart(text, shows_controls=True)
    return MarkdownPart(with_controls(text).rstrip("\n"), margin=BODY, style="")


def _landing(kind: str, boundary: str) -> str:
    """Return the mark of a message that was delivered while the model worked."""
    if kind == "steer":
        return f"↳ steered {boundary}".rstrip()
    return "↳ follow-up" if kind == "follow_up" else ""


def _image_words(block: ImageBlock) -> str:
    return f"[image {block.media_type}, {bytes_text(len(block.data) * 3 // 4)}]"


def _is_error(part: Part) -> bool:
    return isinstance(part, NotePart) and part.kind == "error" and bool(part.text)
