"""Programs that may still run because tui-agent was killed before their calls ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ProcessStarted, SessionForked, ToolEnded, ToolStarted
from tui_agent.protocol.tool import StartedProcess


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A program whose call did not end before tui-agent was killed."""

    process: StartedProcess
    command: str
    """The call in one line, as its tool summarises it."""


def lost_processes(envelopes: Iterable[Envelope]) -> tuple[LostProcess, ...]:
    """Find the programs that a journal shows as started and not as ended, oldest first.

    A resume marks their calls as interrupted, which does not end the programs: later resumes find them again.
    """
    lost: dict[str, LostProcess] = {}
    commands: dict[str, str] = {}
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
            case ToolEnded(call_id=call_id, status=status) if status != "interrupted":
                lost.pop(call_id, None)
            case SessionForked():
                lost.clear()  # The programs belong to the original session, which may be open.
            case _:
                pass
    return tuple(lost.values())
