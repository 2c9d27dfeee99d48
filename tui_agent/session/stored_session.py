"""One session as loaded or newly created, and the first events to publish for it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tui_agent.protocol.activity_events import ENDED_WITH_SESSION
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    RunEnded,
    SessionCreated,
    SessionForked,
    SessionLoaded,
    SessionRepaired,
    SessionRewound,
)
from tui_agent.protocol.messages import Message, UserMessage, new_id
from tui_agent.protocol.past_session import PastCompaction, events_of
from tui_agent.protocol.reports import AgentRunReport

from .event_folds import (
    LOST_PROCESS_EVENTS,
    QUEUE_EVENTS,
    LostProcess,
    LostProcessFold,
    QueueFold,
    interrupted_rewind,
)
from .history_fold import FOLDED_EVENTS, ROOT_AGENT, HistoryFold, ResumableConversation, fold_history
from .interrupted_run import LEDGERED_EVENTS, InterruptedRun, OpenScopes, unfinished
from .journal_reader import Problem


class SessionFolds:
    """Conversation, queue, open scopes and lost programs of a session."""

    def __init__(self, envelopes: Iterable[Envelope] = ()) -> None:
        """Fold these events; `apply` takes the others."""
        self.queue, self.scopes, self.lost = QueueFold(), OpenScopes(), LostProcessFold()
        self._history = HistoryFold()
        self._ended: set[str] = set()
        self._discarded: set[str] = set()
        self._is_history_whole = True
        for envelope in envelopes:
            self.apply(envelope)

    def apply(self, envelope: Envelope) -> None:
        """Apply the next event of the journal."""
        kind = type(envelope.event)
        # Most events are deltas and output, at which no fold looks: their class suffices to leave them out.
        if kind in LEDGERED_EVENTS:
            self.scopes.apply(envelope)
        if kind in LOST_PROCESS_EVENTS:
            self.lost.apply(envelope.event)
        if isinstance(envelope.event, SessionRewound) and envelope.event.conversation:
            # What it removes is already in the conversation.
            self._is_history_whole = False
        if envelope.origin.agent_id == ROOT_AGENT:
            if kind in QUEUE_EVENTS:
                self.queue.apply(envelope)
            if kind in FOLDED_EVENTS and self._is_history_whole:
                self._apply_to_history(envelope)

    def _apply_to_history(self, envelope: Envelope) -> None:
        """Apply an event to the conversation, unless it belongs to a discarded message."""
        match envelope.event:
            case MessageDiscarded(message_id=message_id):
                self._discarded.add(message_id)
                if message_id in self._ended:
                    self._is_history_whole = False
            case MessageEnded(message_id=message_id):
                self._ended.add(message_id)
                if message_id in self._discarded:
                    return
            case _:
                pass
        self._history.apply(envelope.event)

    def history(self, envelopes: Sequence[Envelope]) -> HistoryFold:
        """Return the conversation of the root agent; `envelopes` is the journal, which a rewind has read again."""
        return self._history if self._is_history_whole else fold_history(envelopes)


@dataclass(frozen=True)
class StoredSession:
    """A session to start or resume."""

    id: str
    path: Path | None
    """Path of the journal; None if the session is not saved."""
    cwd: Path
    """Directory of the session."""
    envelopes: Sequence[Envelope] = ()
    """All events so far, in order; empty for a new session. Those of a journal are parsed at each access."""
    problems: tuple[Problem, ...] = ()
    """Problems of the journal."""
    new_problems: tuple[Problem, ...] = ()
    """Problems that no earlier resume reported."""
    size: int = 0
    """Bytes of the journal that were read: the recorder's `expected_size`."""
    next_seq: int = 1
    """Number of the next event: the bus's `first_seq`."""
    resumed: bool = False
    """True if the session was loaded from a journal."""
    folds: SessionFolds | None = None
    """The folds of the events; None: they are computed when needed."""

    @classmethod
    def ephemeral(cls, cwd: Path, session_id: str | None = None) -> "StoredSession":
        """Return a new session without a journal; a random id unless one is given."""
        return cls(session_id or new_id("session"), None, cwd)

    @cached_property
    def _folds(self) -> SessionFolds:
        return self.folds or SessionFolds(self.envelopes)

    @cached_property
    def _fold(self) -> HistoryFold:
        return self._folds.history(self.envelopes)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, in which every call has a result. The first use may take long: see `fold`."""
        return self._fold.messages()

    @property
    def compactions(self) -> tuple[PastCompaction, ...]:
        """Compactions that were not undone, oldest first."""
        return self._fold.compactions()

    @cached_property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that were queued when the session ended, in order of delivery."""
        return self._folds.queue.waiting()

    @property
    def reports(self) -> tuple[AgentRunReport, ...]:
        """Report of each run of the root agent, oldest first."""
        ends = (one.event for one in events_of(self.envelopes, (RunEnded,)) if not one.origin.depth)
        return tuple(event.report for event in ends if isinstance(event, RunEnded) and event.report is not None)

    @cached_property
    def unfinished(self) -> InterruptedRun:
        """State that the last run left open."""
        return unfinished(self.envelopes, root=self._fold, scopes=self._folds.scopes)

    @cached_property
    def lost_processes(self) -> tuple[LostProcess, ...]:
        """Programs that may still run because tui-agent was killed."""
        return self._folds.lost.found()

    @cached_property
    def resumable_conversation(self) -> ResumableConversation | None:
        """The conversation with its last calls open if one of them waited for approval; else None."""
        return self._fold.resumable_conversation()

    def abandoned_layers(self, *, resume_pending_calls: bool = False) -> tuple[str, ...]:
        """Return the ids of the calls that made layers whose changes no one can keep or discard any more.

        These are layers of sub-agents, and of calls that are not resumed. The caller removes them; `announce` publishes
        that they are discarded.
        """
        left = self.resumable_conversation if resume_pending_calls else None
        return self._folds.scopes.abandoned({call.call_id for call in left.calls} if left else ())

    @property
    def background_jobs(self) -> int:
        """Number of background commands so far."""
        return sum(1 for _ in events_of(self.envelopes, (BackgroundStarted,)))

    def fold(self) -> None:
        """Compute the cached properties. Blocks: call it in a thread, because a long session takes a while."""
        _ = self.messages, self.waiting, self.unfinished, self.resumable_conversation, self.lost_processes

    def grants(self, cwd: Path) -> tuple[str, ...]:
        """Return the rules that the user allowed for this session in this directory; a fork starts without them."""
        found = dict[str, None]()
        for event, is_here in self._placed(cwd, (SessionForked, ApprovalResolved, Noticed)):
            match event:
                case SessionForked():
                    found.clear()
                case ApprovalResolved(by="user", decision="approve", scope="session", rule=str() as rule) if is_here:
                    # One answer may allow the parts of a command by a rule each.
                    found |= dict.fromkeys(rule.splitlines())
                case Noticed(code="session_rule_added", context={"verdict": "allow", "rule": str() as rule}):
                    found |= {rule: None} if is_here else {}
                case Noticed(code="session_rule_removed", context={"verdict": "allow", "rule": str() as rule}):
                    found.pop(rule, None)
                case _:
                    pass
        return tuple(found)

    def folders(self, cwd: Path) -> tuple[str, ...]:
        """Return the folders that the user added to the workspace in this directory; those of a fork's original count.

        In the order in which they were added.
        """
        found = dict[str, None]()
        for event, is_here in self._placed(cwd, (Noticed,)):
            match event:
                case Noticed(code="folder_added", context={"folder": str() as folder}) if is_here:
                    found[folder] = None
                case _:
                    pass
        return tuple(found)

    def _placed(self, cwd: Path, kinds: tuple[type[AgentEvent], ...]) -> Iterator[tuple[AgentEvent, bool]]:
        """Yield the events of some kinds, each with True if the session was in this directory at that moment."""
        here, place = os.path.realpath(cwd), ""
        for envelope in events_of(self.envelopes, (SessionCreated, SessionLoaded, *kinds)):
            match envelope.event:
                case SessionCreated(cwd=told) | SessionLoaded(cwd=told):
                    # The field is optional: without it the session is where it was.
                    place = os.path.realpath(told) if told else place
                case event:
                    yield event, place == here

    @property
    def restrictions(self) -> tuple[tuple[str, str], ...]:
        """Verdict and text of the ask and deny rules that the user added for this session."""
        found = dict[tuple[str, str], None]()
        # Of every directory, and of the original of a fork: a resume must not loosen a session.
        for envelope in events_of(self.envelopes, (Noticed,)):
            match envelope.event:
                case Noticed(
                    code="session_rule_added", context={"verdict": "ask" | "deny" as verdict, "rule": str(rule)}
                ):
                    found[verdict, rule] = None
                case Noticed(code="session_rule_removed", context={"verdict": str() as verdict, "rule": str() as rule}):
                    found.pop((verdict, rule), None)
                case _:
                    pass
        return tuple(found)

    @property
    def chosen_model(self) -> tuple[str, str]:
        """Model and effort that the user chose last in this session; two empty texts if the user chose none."""
        chosen = ("", "")
        for envelope in events_of(self.envelopes, (Noticed,)):
            match envelope.event:
                case Noticed(code="model_chosen", context={"model": str() as model, "effort": str() as effort}):
                    chosen = (model, effort)
                case _:
                    pass
        return chosen

    @property
    def lost_jobs(self) -> tuple[str, ...]:
        """Id and command of each background command that ended with the last program, unknown to the model."""
        open_jobs: dict[str, str] = {}
        lost: dict[str, str] = {}
        kinds = (SessionCreated, SessionLoaded, SessionForked, BackgroundStarted, BackgroundEnded)
        for envelope in events_of(self.envelopes, kinds):
            match envelope.event:
                case SessionCreated() | SessionLoaded() | SessionForked():
                    open_jobs, lost = {}, {}
                case BackgroundStarted(task_id=task_id, command=command):
                    open_jobs[task_id] = command
                case BackgroundEnded(task_id=task_id, status=status):
                    command = open_jobs.pop(task_id, "")
                    if status == ENDED_WITH_SESSION:
                        lost[task_id] = command
                case _:
                    pass
        return tuple(f"{name} (`{' '.join(command.split())[:80]}`)" for name, command in (lost | open_jobs).items())

    def origin(self) -> Origin:
        """Return the origin of the session's events."""
        return Origin(session_id=self.id)

    def announce(self, bus: EventBus, version: str, *, branch: str = "", resume_pending_calls: bool = False) -> None:
        """Publish the first events: the session is new, or it was loaded, with its repairs and closing events.

        Call it once, after the recorder subscribed and before any other event.

        Args:
            branch: checked-out branch of the workspace; empty outside a repository.
            resume_pending_calls: True if an agent resumes the calls of `resumable_conversation` at once.
        """
        path = None if self.path is None else str(self.path)
        if not self.resumed:
            bus.publish(SessionCreated(id=self.id, path=path, cwd=str(self.cwd), version=version, branch=branch))
            return
        bus.publish(
            SessionLoaded(
                id=self.id,
                path=path,
                cwd=str(self.cwd),
                version=version,
                events=len(self.envelopes),
                branch=branch,
            )
        )
        left = self.unfinished
        # The closing events then say that these calls are resumed, and give them no result.
        if resume_pending_calls and self.resumable_conversation is not None:
            left = unfinished(self.envelopes, {call.call_id for call in self.resumable_conversation.calls}, self._fold)
        if what := self._repairs(left):
            bus.publish(SessionRepaired(id=self.id, path=path, what=what))
        for closing in (*left.closing, *left.notice):
            bus.publish(closing.event, closing.origin)

    def _repairs(self, left: InterruptedRun) -> str:
        """Return the problems in one line; empty if there are none."""
        # The event of a badly damaged file stays short.
        found = [problem.text for problem in self.new_problems[:5]]
        if len(self.new_problems) > len(found):
            found.append(f"{len(self.new_problems) - len(found)} more lines could not be read.")
        if left.closing:
            found.append(f"{str(left).capitalize()}.")
        if (broken := interrupted_rewind(self.envelopes)) is not None:
            more = f" and {broken.total - len(broken.files)} more" if broken.total > len(broken.files) else ""
            found.append(
                f"The rewind to “{broken.text[:80]}” was interrupted: some of {', '.join(broken.files)}{more} may be "
                "restored; the conversation was not rewound. /rewind to the same moment to finish it."
            )
        return " ".join(found)
