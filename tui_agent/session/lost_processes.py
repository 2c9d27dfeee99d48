"""Programs that a journal shows as started and not as ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentEvent, BackgroundEnded, ProcessStarted, SessionForked, ToolEnded, ToolStarted
from tui_agent.protocol.past_session import events_of
from tui_agent.protocol.tool import StartedProcess

LOST_PROCESS_EVENTS = frozenset((ToolStarted, ProcessStarted, ToolEnded, BackgroundEnded, SessionForked))
"""Events that matter here."""


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A program whose call did not end before tui-agent was killed."""

    process: StartedProcess
    command: str
    """The call in one line, as its tool summarises it."""


class LostProcessFold:
    """State of the fold over a journal.

    A resume marks the calls of lost programs as interrupted, which does not end the programs: later resumes find them
    again.
    """

    def __init__(self) -> None:
        self._lost: dict[str, LostProcess] = {}
        self._commands: dict[str, str] = {}
        self._calls_of_tasks: dict[str, str] = {}
        self._ended: set[str] = set()

    def apply(self, event: AgentEvent) -> None:
        """Apply the next event."""
        match event:
            case ToolStarted(call_id=call_id, summary=summary, mark=mark):
                self._commands[call_id] = summary
                if mark:
                    # The program may run although its own event was lost.
                    self._lost[call_id] = LostProcess(StartedProcess(pid=0, started=0, mark=mark), summary)
            case ProcessStarted(call_id=call_id) as started:
                process = StartedProcess(**started.model_dump(include=set(StartedProcess.model_fields)))
                self._lost[call_id] = LostProcess(process, self._commands.get(call_id, ""))
            case ToolEnded(call_id=call_id, details={"task_id": str(task_id)}, name="bash") if (
                task_id not in self._ended
            ):
                self._calls_of_tasks[task_id] = call_id  # Its command runs on in the background.
            case ToolEnded(call_id=call_id, status=status) if status != "interrupted":
                self._lost.pop(call_id, None)
            case BackgroundEnded(task_id=task_id, status=status) if status != "unknown":
                self._ended.add(task_id)
                self._lost.pop(self._calls_of_tasks.get(task_id, ""), None)
            case SessionForked():
                self._lost.clear()  # The programs belong to the original session, which may be open.
            case _:
                pass

    def found(self) -> tuple[LostProcess, ...]:
        """Return the programs, oldest first."""
        return tuple(self._lost.values())


def lost_processes(envelopes: Iterable[Envelope]) -> tuple[LostProcess, ...]:
    """Find the programs that a journal shows as started and not as ended, oldest first."""
    fold = LostProcessFold()
    for envelope in events_of(envelopes, LOST_PROCESS_EVENTS):
        fold.apply(envelope.event)
    return fold.found()
