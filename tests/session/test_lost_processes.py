"""Programs that a journal shows as started and not as ended."""

from tests.session.folded import stored
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import AgentEvent, ProcessStarted, SessionForked, ToolEnded, ToolStarted, ToolStatus
from tui_agent.protocol.tool import StartedProcess
from tui_agent.session.event_folds import LostProcess


def told(*events: AgentEvent) -> list[Envelope]:
    bus = EventBus(Origin(session_id="s"))
    with bus.subscribe(merge=False) as subscription:
        for event in events:
            bus.publish(event)
        return subscription.drain()


def begun(number: int) -> tuple[AgentEvent, AgentEvent]:
    return (
        ToolStarted(call_id=f"c{number}", name="bash", args={}, summary=f"sleep {number}"),
        ProcessStarted(call_id=f"c{number}", pid=number, started=number, boot="b", mark="ab"),
    )


def ended(number: int, status: ToolStatus) -> ToolEnded:
    return ToolEnded(call_id=f"c{number}", name="bash", index=0, status=status, is_error=status != "ok", content=())


def lost(number: int) -> LostProcess:
    return LostProcess(StartedProcess(pid=number, started=number, boot="b", mark="ab"), f"sleep {number}")


def test_a_call_without_an_end_may_have_left_its_program() -> None:
    events = (*begun(1), *begun(2), *begun(3), *begun(4), ended(2, "ok"), ended(3, "cancelled"))

    assert stored(told(*events)).lost_processes == (lost(1), lost(4))


def test_a_started_call_may_have_left_an_unrecorded_program() -> None:
    begun = ToolStarted(call_id="c1", name="bash", args={}, summary="sleep 1", mark="ab")

    assert stored(told(begun)).lost_processes == (LostProcess(StartedProcess(pid=0, started=0, mark="ab"), "sleep 1"),)
    assert stored(told(begun, ended(1, "ok"))).lost_processes == ()


def test_closing_a_call_on_resume_does_not_end_its_program() -> None:
    assert stored(told(*begun(1), ended(1, "interrupted"))).lost_processes == (lost(1),)


def test_a_fork_owns_no_programs_of_the_original() -> None:
    forked = SessionForked(id="copy", parent="s", at_seq=2)

    assert stored(told(*begun(1), forked)).lost_processes == ()
    assert stored(told(*begun(1), forked, *begun(2))).lost_processes == (lost(2),)
