"""Time spent waiting for the user."""

from tui_agent.agent.event_publisher import ApprovalWaitClock
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved


def asked(request_id: str) -> ApprovalRequested:
    return ApprovalRequested(request_id=request_id, call_id="c", digest="d", tool="act", args={})


def answered(request_id: str) -> ApprovalResolved:
    return ApprovalResolved(request_id=request_id, call_id="c", decision="approve", by="user")


def test_overlapping_questions_count_once_and_a_sub_agents_questions_count_for_its_parent() -> None:
    clock = {"now": 0.0}
    above = ApprovalWaitClock(now=lambda: clock["now"])
    first, second = (ApprovalWaitClock(above, now=lambda: clock["now"]) for _ in range(2))
    story = [(1, first, asked("a")), (2, second, asked("b")), (4, first, answered("a")), (7, second, answered("b"))]
    for at, waits, event in [*story, (9, above, asked("c"))]:
        clock["now"] = float(at)
        waits.note(event)
    clock["now"] = 10.0

    assert (first.ms, second.ms, above.ms) == (3_000, 5_000, 7_000)
