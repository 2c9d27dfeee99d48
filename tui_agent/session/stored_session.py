"""One session as loaded or newly created, and the first events to publish for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tui_agent.agent.snapshot import PastCompaction
from tui_agent.protocol.activity_events import ENDED_WITH_SESSION
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    BackgroundEnded,
    BackgroundStarted,
    ProcessStarted,
    RunEnded,
    SessionCreated,
    SessionForked,
    SessionLoaded,
    SessionRepaired,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import Message, UserMessage, new_id
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool import StartedProcess

from .active_branch import interrupted_rewind
from .history_fold import (
    HistoryFold,
    ResumableConversation,
    chosen_model,
    fold_history,
    granted_rules,
    restricting_rules,
    waiting_messages,
)
from .interrupted_run import InterruptedRun, unfinished
from .journal_reader import Problem


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A program whose call did not end before tui-agent was killed."""

    process: StartedProcess
    command: str
    """The call in one line, as its tool summarises it."""


@dataclass(frozen=True)
class StoredSession:
    """A session to start or resume."""

    id: str
    path: Path | None
    """Path of the journal; None if the session is not saved."""
    cwd: Path
    """Directory of the session."""
    envelopes: tuple[Envelope, ...] = ()
    """All events so far, in order; empty for a new session."""
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

    @classmethod
    def ephemeral(cls, cwd: Path, session_id: str | None = None) -> "StoredSession":
        """Return a session that is not saved."""
        return cls(session_id or new_id("session"), None, cwd)

    @cached_property
    def _fold(self) -> HistoryFold:
        return fold_history(self.envelopes)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, always valid."""
        return self._fold.messages()

    @property
    def compactions(self) -> tuple[PastCompaction, ...]:
        """Compactions that were not undone, oldest first."""
        return self._fold.compactions()

    @cached_property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Queued messages that were never delivered."""
        return waiting_messages(self.envelopes)

    @property
    def reports(self) -> tuple[AgentRunReport, ...]:
        """Report of each run of the root agent, oldest first."""
        ends = (envelope.event for envelope in self.envelopes if not envelope.origin.depth)
        return tuple(event.report for event in ends if isinstance(event, RunEnded) and event.report is not None)

    @cached_property
    def unfinished(self) -> InterruptedRun:
        """State that the last run left open."""
        return unfinished(self.envelopes, root=self._fold)

    @cached_property
    def lost_processes(self) -> tuple[LostProcess, ...]:
        """Programs that may still run because tui-agent was killed."""
        return lost_processes(self.envelopes)

    @cached_property
    def resumable_conversation(self) -> ResumableConversation | None:
        """The conversation with its last calls open if one of them waited for approval; else None."""
        return self._fold.resumable_conversation()

    @property
    def background_jobs(self) -> int:
        """Number of background commands so far."""
        return sum(isinstance(envelope.event, BackgroundStarted) for envelope in self.envelopes)

    def fold(self) -> None:
        """Compute the cached properties. Call it in a thread: a long session takes a while."""
        _ = self.messages, self.waiting, self.unfinished, self.resumable_conversation, self.lost_processes

    def grants(self, cwd: Path) -> tuple[str, ...]:
        """Return the rules that the user allowed for this session in this directory."""
        return granted_rules(self.envelopes, cwd)

    @property
    def restrictions(self) -> tuple[tuple[str, str], ...]:
        """Verdict and text of the ask and deny rules that the user added for this session."""
        return restricting_rules(self.envelopes)

    @property
    def chosen_model(self) -> tuple[str, str]:
        """Model and effort that the user chose last in this session; empty without a choice."""
        return chosen_model(self.envelopes)

    def origin(self) -> Origin:
        """Return the origin of the session's events."""
        return Origin(session_id=self.id)

    def announce(self, bus: EventBus, version: str, *, branch: str = "", resume_pending_calls: bool = False) -> None:
        """Publish the first events: the session is new, or it was loaded, with its repairs and closing events.

        Call it once, after the recorder subscribed and before any other event.

        Args:
            bus: the bus of the session.
            version: version of the program.
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
        if resume_pending_calls and self.resumable_conversation is not None:
            left = unfinished(self.envelopes, {call.call_id for call in self.resumable_conversation.calls}, self._fold)
        if what := self._repairs(left):
            bus.publish(SessionRepaired(id=self.id, path=path, what=what))
        for closing in (*left.closing, *left.notice):
            bus.publish(closing.event, closing.origin)

    def _repairs(self, left: InterruptedRun) -> str:
        """Return the problems in one line; empty if there are none."""
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


def lost_jobs(envelopes: Iterable[Envelope]) -> tuple[str, ...]:
    """Return id and command of each background command that ended with the last program, which told no model."""
    open_jobs: dict[str, str] = {}
    lost: dict[str, str] = {}
    for envelope in envelopes:
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
    return tuple(f"{task_id} (`{' '.join(command.split())[:80]}`)" for task_id, command in (lost | open_jobs).items())


def lost_processes(envelopes: Iterable[Envelope]) -> tuple[LostProcess, ...]:
    """Find the programs that a journal shows as started and not as ended, oldest first.

    A resume marks their calls as interrupted, which does not end the programs: later resumes find them again.
    """
    lost: dict[str, LostProcess] = {}
    commands: dict[str, str] = {}
    calls_of_tasks: dict[str, str] = {}
    ended: set[str] = set()
    for envelope in envelopes:
        match envelope.event:
            case ToolStarted(call_id=call_id, summary=summary, mark=mark):
                commands[call_id] = summary
                if mark:
                    # The program may run although its own event was lost.
                    lost[call_id] = LostProcess(StartedProcess(pid=0, started=0, mark=mark), summary)
            case ProcessStarted(call_id=call_id) as started:
                process = StartedProcess(**started.model_dump(include=set(StartedProcess.model_fields)))
                lost[call_id] = LostProcess(process, commands.get(call_id, ""))
            case ToolEnded(call_id=call_id, details={"task_id": str(task_id)}, name="bash") if task_id not in ended:
                calls_of_tasks[task_id] = call_id  # Its command runs on in the background.
            case ToolEnded(call_id=call_id, status=status) if status != "interrupted":
                lost.pop(call_id, None)
            case BackgroundEnded(task_id=task_id, status=status) if status != "unknown":
                ended.add(task_id)
                lost.pop(calls_of_tasks.get(task_id, ""), None)
            case SessionForked():
                lost.clear()  # The programs belong to the original session, which may be open.
            case _:
                pass
    return tuple(lost.values())
