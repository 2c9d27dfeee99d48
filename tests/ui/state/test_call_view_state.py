"""Fold of one call's events: states, output, decisions."""

from tests.ui.row_kit import Teller
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    FileChanged,
    HookEnded,
    HookFailed,
    HookStarted,
    PermissionDecided,
    ToolEnded,
    ToolOutput,
    ToolQueued,
    ToolStarted,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.tool import Preview
from tui_agent.ui.state.call_records import FileChange, HookRun
from tui_agent.ui.state.call_view_state import CallViewState

QUEUED = ToolQueued(call_id="c1", name="bash", args_raw={"command": "ls"}, index=2, group=1, safe=True, summary="ls")
STARTED = ToolStarted(call_id="c1", name="bash", args={"command": "ls"}, timeout_s=120.0, read_only=True)
ASKED = ApprovalRequested(request_id="q", call_id="c1", digest="d", tool="bash", args={}, summary="runs ls")


def ended(**fields: object) -> ToolEnded:
    return ToolEnded.model_validate(
        {"call_id": "c1", "name": "bash", "index": 2, "status": "ok", "is_error": False, "content": (), **fields}
    )


def seen(*events: AgentEvent) -> CallViewState:
    """Return a call after some events, one second apart, from 1.0 on."""
    view, teller = CallViewState("c1"), Teller()
    for event in events:
        view.apply(teller.tell(event, step=3))
    return view


def test_events_after_the_end_are_ignored() -> None:
    view, teller = CallViewState("c1"), Teller()
    for event in (QUEUED, STARTED, ended()):
        view.apply(teller.tell(event))

    assert not view.apply(teller.tell(ToolOutput(call_id="c1", stream="stdout", chunk="late", bytes_total=4)))
    assert view.live.text == ""


def test_hooks_are_listed_with_their_answers() -> None:
    view = seen(
        QUEUED,
        HookStarted(event="before_tool", name="audit", call_id="c1"),
        HookStarted(event="before_tool", name="lint", call_id="c1"),
        HookEnded(event="before_tool", name="audit", call_id="c1", action="allow", ms=2.0),
        HookFailed(event="before_tool", name="lint", call_id="c1", error="late", timed_out=True),
        HookFailed(event="after_tool", name="mail", call_id="c1", error="x"),
    )

    assert view.approval.hooks == (
        HookRun("before_tool", "audit", "allow", "", 2.0),
        HookRun("before_tool", "lint", "timed out", "late"),
        HookRun("after_tool", "mail", "failed", "x"),
    )


def test_the_verdict_is_kept_once_for_all_equal_ones() -> None:
    decided = PermissionDecided(call_id="c1", decision="allow", source="rule", mode=PermissionMode.ASK, rule="bash(ls)")

    first, second = (seen(QUEUED, decided.model_copy(update={"call_id": name})) for name in ("c1", "c2"))

    assert first.approval.decision == decided.model_copy(update={"call_id": ""})
    assert first.approval.decision is second.approval.decision


def test_an_ended_call_shares_its_empty_records_and_still_gets_late_ones() -> None:
    ended = ToolEnded(call_id="c1", name="read", index=0, status="ok", is_error=False, content=())
    first, late = seen(QUEUED, ended), seen(QUEUED, ended, FileChanged(call_id="c1", path="a", change="modified"))

    assert first.changes is seen(QUEUED, ended).changes
    assert (first.changes.count, late.changes.count, seen(QUEUED, ended).changes.count) == (0, 1, 0)


def test_the_diff_is_that_of_the_change_or_else_of_the_proposal() -> None:
    preview = Preview(kind="diff", text="would")
    started = STARTED.model_copy(update={"preview": preview})
    changed = FileChanged(path="a", change="modified", call_id="c1", diff="did\n")

    assert seen(QUEUED, started, changed, changed, ended(details={"diff": "said"})).diff == "did\ndid"
    assert seen(QUEUED, started, ended(details={"diff": "said"})).diff == "said"
    assert seen(QUEUED, started).diff == "would"
    assert seen(QUEUED, STARTED).diff == ""
    assert seen(QUEUED, changed).changes.files == [FileChange("a", "did\n")]
