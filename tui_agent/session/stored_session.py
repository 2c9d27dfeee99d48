"""One session as it was when it was opened, new or old, and the first events that are told of it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tui_agent.agent.snapshot import PastCompaction
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import RunEnded, SessionCreated, SessionLoaded, SessionRepaired
from tui_agent.protocol.messages import Message, UserMessage, new_id
from tui_agent.protocol.reports import AgentRunReport

from .active_branch import interrupted_rewind
from .history_fold import HistoryFold, ResumableConversation, fold_history, granted_rules, waiting_messages
from .interrupted_run import InterruptedRun, unfinished
from .journal_reader import Problem
from .lost_processes import LostProcess, lost_processes


@dataclass(frozen=True)
class StoredSession:
    """What a program needs to begin or go on with a session."""

    id: str
    path: Path | None
    """The journal; None where nothing is kept."""
    cwd: Path
    """Directory it was begun in."""
    envelopes: tuple[Envelope, ...] = ()
    """Everything told so far, in order; empty for a new one."""
    problems: tuple[Problem, ...] = ()
    """What could not be read, told or not."""
    new_problems: tuple[Problem, ...] = ()
    """Those that no earlier resume told."""
    size: int = 0
    """Bytes of the journal that were read; the recorder's `expected_size`."""
    next_seq: int = 1
    """The bus's `first_seq`, so that numbers go on."""
    resumed: bool = False
    """Whether there was a journal before."""

    @classmethod
    def ephemeral(cls, cwd: Path, session_id: str | None = None) -> "StoredSession":
        """A session that leaves nothing on the disk."""
        return cls(session_id or new_id("session"), None, cwd)

    @cached_property
    def _fold(self) -> HistoryFold:
        return fold_history(self.envelopes)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, valid whatever happened."""
        return self._fold.messages()

    @property
    def compactions(self) -> tuple[PastCompaction, ...]:
        """What made the conversation shorter and was not taken back, oldest first."""
        return self._fold.compactions()

    @cached_property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Messages that were typed and never delivered."""
        return waiting_messages(self.envelopes)

    @property
    def reports(self) -> tuple[AgentRunReport, ...]:
        """What each run of the root agent left behind, oldest first."""
        ends = (envelope.event for envelope in self.envelopes if not envelope.origin.depth)
        return tuple(event.report for event in ends if isinstance(event, RunEnded) and event.report is not None)

    @cached_property
    def unfinished(self) -> InterruptedRun:
        """What the last run left open."""
        return unfinished(self.envelopes, root=self._fold)

    @cached_property
    def lost_processes(self) -> tuple[LostProcess, ...]:
        """Programs that may still run because tui-agent was killed."""
        return lost_processes(self.envelopes)

    @cached_property
    def resumable_conversation(self) -> ResumableConversation | None:
        """The conversation with its last calls open, where one of them waited for a person; None where none did."""
        return self._fold.resumable_conversation()

    def fold(self) -> None:
        """Works out what follows from a long past, which takes a while: off the event loop, before it is asked for."""
        _ = self.messages, self.waiting, self.unfinished, self.resumable_conversation, self.lost_processes

    def grants(self, cwd: Path) -> tuple[str, ...]:
        """The rules a person gave for this session while it was about this directory."""
        return granted_rules(self.envelopes, cwd)

    def origin(self) -> Origin:
        """Where its events come from."""
        return Origin(session_id=self.id)

    def announce(self, bus: EventBus, version: str, *, resume_pending_calls: bool = False) -> None:
        """Tells the session's first events: that it is new, or that it goes on, what was mended, what was left open.

        To be called once, when the recorder listens and before anything else is told.

        Args:
            bus: where.
            version: of the program.
            resume_pending_calls: True if an agent with `resumable_conversation` resumes its calls at once.
        """
        path = None if self.path is None else str(self.path)
        if not self.resumed:
            bus.publish(SessionCreated(id=self.id, path=path, cwd=str(self.cwd), version=version))
            return
        bus.publish(
            SessionLoaded(id=self.id, path=path, cwd=str(self.cwd), version=version, events=len(self.envelopes))
        )
        left = self.unfinished
        if resume_pending_calls and self.resumable_conversation is not None:
            left = unfinished(self.envelopes, {call.call_id for call in self.resumable_conversation.calls}, self._fold)
        if what := self._repairs(left):
            bus.publish(SessionRepaired(id=self.id, path=path, what=what))
        for closing in (*left.closing, *left.notice):
            bus.publish(closing.event, closing.origin)

    def _repairs(self, left: InterruptedRun) -> str:
        """What was wrong, in one line; empty where all was well."""
        found = [problem.text for problem in self.new_problems[:5]]
        if len(self.new_problems) > len(found):
            found.append(f"{len(self.new_problems) - len(found)} more lines could not be read.")
        if left.closing:
            found.append(f"{str(left).capitalize()}.")
        if (broken := interrupted_rewind(self.envelopes)) is not None:
            more = f" and {broken.total - len(broken.files)} more" if broken.total > len(broken.files) else ""
            found.append(
                f"Going back to “{broken.text[:80]}” broke off: some of {', '.join(broken.files)}{more} may be as they "
                "were then; the conversation is as it was. /rewind to the same moment does the rest."
            )
        return " ".join(found)
