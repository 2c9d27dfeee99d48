"""Builds the parts of the conversation from events, the same for live, resumed and replayed sessions."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from tui_agent.protocol.amounts import bytes_text, count_text, names_text
from tui_agent.protocol.envelope import Envelope, event_classes
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    ContextUsage,
    Failed,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    Noticed,
    PermissionDecided,
    PermissionModeChanged,
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
    TodoItem,
    TodoUpdated,
    ToolBatchEnded,
    ToolBatchStarted,
    ToolBlockedOn,
    ToolData,
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
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    UserBlock,
    UserMessage,
    joined_text,
)
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.state.call_view_state import LedgerCall, call_of
from tui_agent.ui.state.plan_and_files import PLAN_EVENTS, Plan
from tui_agent.ui.text.sanitiser import joined_lines, one_line, with_controls

from .answer_fold import AnswerFold
from .call_part import MOST_READS, CallContext, CallPart, ReadsPart
from .markdown_part import MarkdownPart, PastedPart, ThinkingPart
from .transcript_layout import Part, RewindMarks, Transcript
from .transcript_parts import (
    BODY,
    MAX_CHARACTERS,
    STEER_MARK,
    USER_MARK,
    CommandPart,
    DividerPart,
    NotePart,
    PicturePart,
    TextPart,
    TodoPart,
)
from .transcript_words import RESUMED, note_of, retried_text, run_end_text, server_answer_note

HANDLED_EVENTS: frozenset[type[AgentEvent]] = frozenset(event_classes().values()) - {
    *(RequestBuilt, TurnStarted, TurnEnded, StepStarted, StepEnded, UsageUpdated, ContextUsage, StatusChanged),
    *(ToolBatchStarted, ToolBatchEnded, PermissionModeChanged),
}
"""Events that change the conversation; other parts of the screen show the others."""

_OF_ITS_CALL: frozenset[type[AgentEvent]] = frozenset(
    (PermissionDecided, ToolBlockedOn, ToolStarted, ToolUpdated, ToolProgress, ToolData)
)
"""Events that change only the rows of their call."""


_ENDING = frozenset(("stop_requested", "abort_requested"))
"""Codes of notices that a run is about to end because the user said so."""
COLLAPSED_LINES = 8
"""Lines from which a message of the user is collapsed, as a paste is in the composer."""
MOST_PICTURES = 4
"""Most images shown of a result."""


class TranscriptFold:
    """Changes a transcript by events only."""

    def __init__(
        self,
        transcript: Transcript,
        find: Callable[[str], LedgerCall | None],
        *,
        at: Callable[[int], LedgerCall] | None = None,
        shows_pictures: bool = True,
    ) -> None:
        """Start with no events.

        Args:
            transcript: receives the parts.
            find: returns a call by its id. The ledger receives each event before this fold.
            at: returns a call by its index in the ledger.
            shows_pictures: False if the terminal has no colours: images are named only.
        """
        self._shows_pictures = shows_pictures
        self.transcript = transcript
        """The parts so far."""
        self.calls = CallContext(find, at)
        """Context of all calls."""
        self._find = find
        self._answers: AnswerFold = AnswerFold(transcript)
        self._start()

    def _start(self) -> None:
        """Forget the events so far."""
        # The user's choice outlives the session that was shown.
        self._answers = AnswerFold(self.transcript, shows_thinking=self._answers.shows_thinking)
        self._shown: dict[str, CallPart | ReadsPart] = {}
        self._stale: dict[Part, None] = {}
        self._said_parts: dict[str, Part] = {}
        self._landed: dict[str, str] = {}
        self._rules: dict[str, str] = {}
        self._questions: dict[str, ServerQuestion] = {}
        self._jobs: dict[str, str] = {}
        self._job_parts: dict[str, Part] = {}
        self._skipped: list[str] = []
        self.calls.root = ""
        self._retry: NotePart | None = None
        self._newest_retry: NotePart | None = None
        self._ending: NotePart | None = None
        self._plan = Plan()
        self._todo: TodoPart | None = None
        self._asked_since_plan = False
        self._command: CommandPart | None = None
        self._rewind = RewindMarks(self.transcript)

    def show_alone(self, is_alone: bool) -> bool:
        """Show or hide what the panel shows beside the conversation; return False if nothing changes."""
        if is_alone == self.calls.is_alone:
            return False
        self.calls.is_alone = is_alone
        if self._todo is not None:
            self._stale[self._todo] = None
        self._open_calls_changed()
        return True

    def move_clocks(self) -> bool:
        """Redraw the rows whose clocks run at the next flush; return False if there are none."""
        if self.calls.is_alone:
            self._open_calls_changed()
        return self.calls.is_alone and bool(self._shown)

    @property
    def shows_thinking(self) -> bool:
        """True if thinking is shown as it arrives."""
        return self._answers.shows_thinking

    def show_thinking(self, shown: bool) -> None:
        """Show or collapse all thinking, now and later."""
        self._answers.shows_thinking = shown
        for part in self.transcript.parts:
            if isinstance(part, ThinkingPart) and part.opened != shown:
                part.toggle()
        # One pass over all heights; a refresh of each part would move all those below it each time.
        self.transcript.measure_all()

    def flush(self) -> bool:
        """Bring new text of open answers, and changes of calls, into their parts.

        Returns:
            True if the next flush has more text to read.
        """
        waits = False
        for part in self._stale:
            part.changed()
            self.transcript.refresh(part)
        self._stale.clear()
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
        if type(event) in PLAN_EVENTS:
            self._plan.apply(envelope)
        # Most events of a run are of this kind, and the rows of their call are drawn again below.
        if type(event) not in _OF_ITS_CALL:
            self._take(event, envelope)
        if (call_id := call_of(event)) is not None:
            self._call_changed(call_id, event)
        # Last, because it records the parts that the event has added.
        self._rewind.note(envelope.seq)
        return True

    def _take(self, event: AgentEvent, envelope: Envelope) -> None:
        match event:
            case MessageDelta():
                self._answers.grow(event)
            case MessageStarted(role="assistant", message_id=message_id):
                self._answers.begin(message_id)
                self._end_retry(tried=True)
            case MessageEnded(message=AssistantMessage() as message, message_id=message_id):
                self._answers.end(message_id, message)
            case MessageEnded(message=UserMessage() as message):
                if message.kind != "command":  # Its part has shown it already.
                    self._said(message)
            case MessageStarted() | MessageEnded():
                pass  # Results are part of their calls.
            case MessageDiscarded(message_id=message_id):
                self._forget_parts(self._answers.discard(message_id))
            case SteeringDelivered():
                self._mark_delivery(event)
            case ToolQueued() | ToolOutput() | ToolEnded() if self._command is not None:
                self._commanded(self._command, event)
            case ToolQueued():
                self._called(event)
            case ToolOutput() | ToolEnded():
                pass
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
        # The next plan belongs to this message, so it gets a row below it.
        self._asked_since_plan = True
        if message.kind == "notice":
            # The end of a background command has a note already, where it happened.
            if not self._landed.pop(message.id, ""):
                self._add(NotePart("notice", message.text))
            return
        landed = self._landing(message.kind, self._landed.pop(message.id, ""))
        for number, block in enumerate(message.content):
            is_text = isinstance(block, TextBlock)
            part = _said_part(block.text) if is_text else self._attached_part(block)
            if number == 0:
                part.gap, part.mark = True, USER_MARK if message.kind == "prompt" else STEER_MARK
            self._add(part)
            self._said_parts[message.id] = part
        if landed:
            self._add(TextPart(landed, "muted"))

    def _attached_part(self, block: ImageBlock | DocumentBlock) -> Part:
        words = _attachment_words(block)
        if isinstance(block, ImageBlock) and self._shows_pictures:
            return PicturePart(words, block)
        return TextPart(words, "muted")

    def _mark_delivery(self, event: SteeringDelivered) -> None:
        said = self._said_parts.pop(event.message_id, None)
        if said is None:
            # The message comes after its delivery; its part will say so.
            self._landed[event.message_id] = event.boundary
        elif event.kind == "steer" and (landed := self._landing(event.kind, event.boundary)):
            self.transcript.add(TextPart(landed, "muted"), said)

    def _landing(self, kind: str, boundary: str) -> str:
        """Return the mark of a message that was delivered while the model worked, and what it skipped."""
        if kind != "steer":
            return "follow-up" if kind == "follow_up" else ""
        found = [call for call in map(self._find, self._skipped) if call is not None]
        names = names_text([f"#{call.number} {one_line(call.view.name, 16)}" for call in found], 6)
        self._skipped.clear()
        skipped = f"skipped {names}" if names else ""
        return " · ".join(filter(None, (f"steered {boundary}" if boundary else "", skipped)))

    # --- calls --------------------------------------------------------------------------------------------------------

    def _called(self, event: ToolQueued) -> None:
        """Show a new call where it happens: beside the reads before it, or in a row of its own."""
        call = self._find(event.call_id)
        # A resumed call has its row already, where it was first received.
        if call is None or call.is_resumed or event.call_id in self._shown:
            return
        last = self.transcript.parts[-1] if self.transcript.parts else None
        answer = self._answers.newest
        if answer is not None:
            # The call replaces the caret and the note that it is being written.
            self._answers.drop(answer, answer.preparing)
            self._answers.drop(answer, answer.waiting)
            last = self.transcript.parts[-1] if self.transcript.parts else None
        # Bounded: a change of one call lays out all calls of its part.
        if isinstance(last, ReadsPart) and event.safe and len(last.call_ids) < MOST_READS:
            last.add(call)
            part = last
            self.transcript.refresh(part)
        else:
            gap = not isinstance(last, CallPart | ReadsPart)
            if isinstance(last, CallPart):
                last.is_followed = True
                self._stale[last] = None
            part = ReadsPart(self.calls, gap=gap) if event.safe else CallPart(call, self.calls, gap=gap)
            if isinstance(part, ReadsPart):
                part.add(call)
            if answer is not None:
                self._answers.append(answer, part)
            else:
                self._add(part)
        self._shown[event.call_id] = part

    def redraw(self, call_id: str) -> None:
        """Redraw the rows of a call at the next flush."""
        part = self._shown.get(call_id)
        if part is not None:
            self._stale[part] = None

    def _call_changed(self, call_id: str, event: AgentEvent) -> None:
        """Redraw the rows of a call at the next flush; forget it once it has ended for good."""
        self.redraw(call_id)
        if isinstance(event, ToolEnded) and event.status == "skipped_steering":
            self._skipped.append(call_id)
        if isinstance(event, ToolEnded) and event.error_kind not in RESUMED:
            part, call = self._shown.pop(call_id, None), self._find(call_id)
            if part is not None and call is not None and call.view.outcome.job:
                self._job_parts[call.view.outcome.job] = part
            if part is not None and self._shows_pictures:
                self._add_pictures(part, event.content)

    def _add_pictures(self, part: Part, content: Sequence[UserBlock]) -> None:
        """Show the images of a result below its call, if they have small pictures."""
        found = (block for block in content if isinstance(block, ImageBlock) and block.thumbnail)
        # Each goes right below the call, so the first one comes last.
        for block in reversed(list(islice(found, MOST_PICTURES))):
            self.transcript.add(self._attached_part(block), part)

    def _open_calls_changed(self) -> None:
        """Redraw the calls that the ledger has ended with their run."""
        for part in self._shown.values():
            self._stale[part] = None

    def _forget_ended_calls(self) -> None:
        """Forget the calls of a run that has ended, except those that are asked again."""
        self._shown = {
            call_id: part
            for call_id, part in self._shown.items()
            if (call := self._find(call_id)) is not None and call.view.outcome.error_kind in RESUMED
        }

    def _forget_parts(self, gone: Iterable[Part]) -> None:
        """Forget calls whose parts were removed."""
        removed = set(gone)
        self._ending = None if self._ending in removed else self._ending
        self._shown = {call_id: part for call_id, part in self._shown.items() if part not in removed}
        self._stale = {part: None for part in self._stale if part not in removed}
        last = self.transcript.parts[-1] if self.transcript.parts else None
        if isinstance(last, CallPart) and last.is_followed:
            # Its diff no longer needs the row that kept the next call apart.
            last.is_followed = False
            self._stale[last] = None
        self._job_parts = {job: part for job, part in self._job_parts.items() if part not in removed}

    def _commanded(self, part: CommandPart, event: ToolQueued | ToolOutput | ToolEnded) -> None:
        """Show what happens to the only call of a command of the user."""
        match event:
            case ToolQueued(call_id=call_id):
                part.begin(call_id)
            case ToolOutput(chunk=chunk):
                part.grow(chunk)
            case ToolEnded(status=status, content=content):
                part.end(status, joined_text(content))
        self.transcript.refresh(part)

    # --- what happens around it ---------------------------------------------------------------------------------------

    def _run(self, event: RunStarted | RunEnded) -> None:
        self._answers.close()
        self._end_retry(tried=isinstance(event, RunEnded) and bool(event.error))
        if isinstance(event, RunStarted):
            self._skipped.clear()
            self._command = self._command_of(event) if event.trigger == "command" else None
            return
        self._open_calls_changed()
        self._forget_ended_calls()
        # The part of the command says how it ended.
        if self._command is not None:
            self._command = None
            return
        if self._ending is not None:
            # The line below says in one sentence that the run has ended, and by whom.
            self._remove(self._ending)
            self._ending = None
        if event.error and event.reason != "aborted" and not self._already_reported(event.error):
            self._add(NotePart("error", event.error, gap=True))
        style, text = run_end_text(event)
        if text:
            self._add(DividerPart(text, style))

    def _end_retry(self, *, tried: bool) -> None:
        """Say in the note about a retry what became of it."""
        if self._retry is not None:
            if tried:
                self._retry.kind = "retried"  # Its cause has gone, so it no longer alarms.
            self._retry.replace(retried_text(self._retry.text, tried=tried))
            self.transcript.refresh(self._retry)
            self._retry = None

    def _command_of(self, event: RunStarted) -> CommandPart:
        private = "only you see the output" if event.input.startswith("!!") else ""
        part = CommandPart(event.input)
        part.gap, part.mark = True, USER_MARK
        self._add(part)
        if private:
            self._add(TextPart(private, "muted"))
        return part

    def _apply_rewind(self, event: SessionRewound, seq: int) -> None:
        """Show the conversation of the earlier moment, and a note about the rewind."""
        if event.conversation:
            # An open answer would write on into parts that the rewind removes.
            self._answers.close()
            self._open_calls_changed()
            self._retry = None
            before = set(self.transcript.parts)
            self._rewind.go_back(seq, event.to_seq)
            self._forget_parts(before.difference(self.transcript.parts))
            shown = (part for part in reversed(self.transcript.parts) if isinstance(part, TodoPart))
            self._todo = next(shown, None)
            if self._todo is not None:
                self._todo.replace(self._plan.items)
                self.transcript.refresh(self._todo)
        self._note(event)

    def _clear(self) -> None:
        """Start with an empty conversation."""
        while self.transcript.parts:
            self.transcript.remove(self.transcript.parts[-1])
        self._start()

    def _other(self, event: AgentEvent) -> None:
        match event:
            case SessionCreated(cwd=root):
                self.calls.root = root
            case SessionLoaded(cwd=root):
                self.calls.root = root
                self._open_calls_changed()
                self._add(DividerPart("session resumed", "notice"))
            case ApprovalRequested(request_id=request_id, session_rule=rule):
                self._rules[request_id] = rule or ""
                if event.question is not None and not event.call_id:
                    self._questions[request_id] = event.question
            case ApprovalResolved():
                self._answered(event)
            case BackgroundStarted(task_id=task_id, command=command):
                self._jobs[task_id] = command
            case BackgroundEnded(task_id=task_id):
                if (part := self._job_parts.pop(task_id, None)) is not None:
                    self._stale[part] = None
                self._note(event, f" · {one_line(joined_lines(self._jobs.pop(task_id, '')), 60)}")
            case TodoUpdated(items=items):
                self._planned(items)
            case PlanProposed(text=text):
                self._add(TextPart("Proposed plan", "strong", gap=True))
                self._add(MarkdownPart(text, margin=BODY))
            case StepRetry() if self._retry is not None or self._follows_retry():
                note, self._retry = note_of(event), self._retry or self._newest_retry
                if self._retry is not None and note is not None:
                    self._retry.kind = note[0]
                    self._retry.replace(note[1])
                    self.transcript.refresh(self._retry)
            case _:
                self._note(event)

    def _planned(self, items: Sequence[TodoItem]) -> None:
        """Show the plan in its row; the first plan after a message of the user gets a new one."""
        if self._todo is not None and not self._asked_since_plan:
            self._todo.replace(items)
            self.transcript.refresh(self._todo)
            return
        if self._todo is not None:
            # A plan above an earlier message would look as if it were in force.
            self._remove(self._todo)
        self._todo = TodoPart(items, lambda: self.calls.is_alone)
        self._asked_since_plan = False
        self._add(self._todo)

    def _answered(self, event: ApprovalResolved) -> None:
        """Add a note about a rule that the user made; the call itself shows other decisions."""
        offered = self._rules.pop(event.request_id, "")
        if (question := self._questions.pop(event.request_id, None)) is not None:
            self._add(NotePart("notice", server_answer_note(question, event), gap=not self._follows(NotePart)))
            return
        rule = event.rule or offered
        if event.by == "user" and event.decision == "approve" and event.scope != "once" and rule:
            self._add(NotePart("success", f"You allowed for this {event.scope}: {rule}"))

    def _note(self, event: AgentEvent, more: str = "") -> None:
        note = note_of(event)
        if note is None:
            return
        part = NotePart(note[0], f"{note[1]}{more}", gap=not self._follows(NotePart))
        if isinstance(event, StepRetry):
            self._retry = self._newest_retry = part
        if isinstance(event, Noticed) and event.code in _ENDING:
            self._ending = part
        self._add(part)

    def _already_reported(self, text: str) -> bool:
        """Return True if one of the last parts already reports this, as an error or as the user's end of the run."""
        # A failure is reported right before its run ends, at most with a note of a retry between them.
        last = [part for part in self.transcript.parts[-3:] if isinstance(part, NotePart)]
        return any(text in part.text or (_is_error(part) and part.text in text) for part in last)

    def _follows_retry(self) -> bool:
        """Return True if nothing came since the newest retry, so that its note can say what the next one has to."""
        return self._newest_retry is not None and self.transcript.parts[-1:] == [self._newest_retry]

    def _follows(self, *kinds: type[Part]) -> bool:
        """Return True if the last part is of one of these kinds; the next one then follows without an empty row."""
        return any(isinstance(part, kinds) for part in self.transcript.parts[-1:])

    def _add(self, part: Part) -> None:
        self.transcript.add(part)

    def _remove(self, part: Part) -> None:
        self.transcript.remove(part)
        self._stale.pop(part, None)


def _said_part(text: str) -> Part:
    """Return the user's message with every character visible, as in the composer; of many lines it is collapsed."""
    if text.count("\n") + 1 >= COLLAPSED_LINES:
        return PastedPart(text.rstrip("\n"), margin=BODY)
    if len(text) <= MAX_CHARACTERS:
        return TextPart(text, shows_controls=True)
    # Only Markdown parts are laid out where they are in sight; with a style they are not parsed.
    return MarkdownPart(with_controls(text).rstrip("\n"), margin=BODY, style="")


def _attachment_words(block: ImageBlock | DocumentBlock) -> str:
    """Return an attachment in one line."""
    if isinstance(block, ImageBlock):
        return f"[image {block.name or block.media_type}, {bytes_text(len(block.data) * 3 // 4)}]"
    if block.is_text:
        return f"[{block.name}, {count_text(block.data.count(chr(10)) + 1, 'line')}]"
    return block.label


def _is_error(part: Part) -> bool:
    return isinstance(part, NotePart) and part.kind == "error" and bool(part.text)
