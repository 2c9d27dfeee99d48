"""The time spent waiting for the user."""

from tui_agent.agent.approval_wait_clock import ApprovalWaitClock
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved


def asked(request_id: str) -> ApprovalRequested:
    return ApprovalRequested(request_id=request_id, call_id="c", digest="d", tool="act", args={})


def answered(request_id: str) -> ApprovalResolved:
    return ApprovalResolved(request_id=request_id, call_id="c", decision="approve", by="user")


def test_overlapping_requests_are_one_wait_and_those_of_sub_agents_count_for_the_parent() -> None:
    clock = {"now": 0.0}
    above = ApprovalWaitClock(now=lambda: clock["now"])
    first, second = (ApprovalWaitClock(above, now=lambda: clock["now"]) for _ in range(2))
    story = [(1, first, asked("a")), (2, second, asked("b")), (4, first, answered("a")), (7, second, answered("b"))]
    for at, waits, event in [*story, (9, above, asked("c"))]:
        clock["now"] = float(at)
        waits.note(event)
    clock["now"] = 10.0

    assert (first.ms, second.ms, above.ms) == (3_000, 5_000, 7_000)
