"""Every call once, in order, counted under the right kind, with bounded memory."""

from dataclasses import replace

import pytest

from tests.support.table import table
from tests.ui.story import Story
from tui_agent.protocol.events import RunEnded, ToolQueued, ToolStatus
from tui_agent.ui.panel.tool_panel import counts
from tui_agent.ui.state import call_ledger
from tui_agent.ui.state.call_ledger import CallLedger


def fold(story: Story) -> CallLedger:
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)
    return ledger


def test_a_question_moves_a_call_and_the_answer_moves_it_back() -> None:
    story = Story().run("x").step(0)
    call_id = story.queued("bash", "rm x")
    request_id = story.asks(call_id, "bash", "rm x", "no rule")
    assert fold(story).places["needs_you"] == {0}

    story.resolved(request_id, call_id)
    assert fold(story).places["waiting"] == {0}


def test_a_call_that_changes_its_state_changes_the_calls_that_wait_for_it() -> None:
    story = Story().run("x").step(0)
    bash, edit, read = story.queued("bash", "make"), story.queued("edit", "a.py"), story.queued("read", "a.py")
    story.started(bash, "bash", "make").blocked(edit, bash).blocked(read, edit)
    ledger = fold(story)

    assert ledger.apply(story.output(bash, "ok").envelopes[-1]) == (0,)
    assert ledger.apply(story.ended(bash, "bash").envelopes[-1]) == (0, 1)
    assert ledger.apply(story.blocked(edit).envelopes[-1]) == (1,)
    story.asks(edit, "edit", "a.py", "no rule")
    assert [ledger.apply(envelope) for envelope in story.envelopes[-3:]] == [(1, 2), (1,), ()]


@table(
    ("status", "heap"),
    [
        ("ok", "done"),
        ("error", "failed"),
        ("timeout", "failed"),
        ("denied_user", "denied"),
        ("denied_policy", "denied"),
        ("withheld", "denied"),
        ("skipped_steering", "skipped"),
        ("cancelled", "cancelled"),
        ("interrupted", "unknown"),
    ],
)
def test_the_result_of_a_call_decides_its_kind(status: ToolStatus, heap: str) -> None:
    story = Story().run("x").step(0)
    story.call("bash", "x", status=status)

    assert [name for name, places in fold(story).places.items() if places] == [heap]


def test_the_end_of_a_sub_agent_ends_its_own_calls_only() -> None:
    story = Story().run("x").step(0)
    parent = story.queued("agent", "explore")
    story.started(parent, "agent")
    root = story.origin
    story.origin = replace(root, run_id="child", agent_id="explorer", depth=1)
    child = story.queued("grep", "x")
    story.started(child, "grep")
    story.tell(RunEnded(reason="done"))

    assert [call.kind for call in fold(story).calls] == ["running", "unknown"]


def test_old_results_are_dropped_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_ledger, "MAX_RESULT_CHARACTERS", 1_000)
    story = Story().run("x").step(0)
    for number in range(5):
        story.call("read", f"file {number}", text="x" * 400, persisted_path=f"/tmp/{number}")
    ledger = fold(story)

    kept = [call.view.outcome.result for call in ledger.calls]
    assert kept[0] == "[no longer kept on the screen; the whole of it is in /tmp/0]"
    assert kept[-2:] == ["x" * 400] * 2


def again(story: Story, step: int | None = None) -> Story:
    """Return events that queue the first call of a story once more, in another run."""
    first = next(envelope.event for envelope in story.envelopes if isinstance(envelope.event, ToolQueued))
    story.origin = replace(story.origin, run_id="r2", step=step)
    story.tell(first)
    return story


def test_a_resumed_call_keeps_its_row() -> None:
    story = Story().run("x").step(0)
    story.ended(story.queued("write", "new.txt", path="new.txt"), "write", "cancelled")
    story.end(reason="aborted")

    ledger = fold(again(story))

    assert [(call.number, call.view.phase) for call in ledger.calls] == [(1, "queued")]
    assert ledger.places["waiting"] == {0}


@pytest.mark.parametrize("status", ["ok", "cancelled"])
def test_another_call_under_the_same_id_has_a_row_of_its_own(status: ToolStatus) -> None:
    story = Story().run("x").step(0)
    story.ended(story.queued("write", "new.txt", path="new.txt"), "write", status)

    assert [call.number for call in fold(again(story, step=0)).calls] == [1, 2]


def test_a_finished_call_of_a_resumed_answer_keeps_its_row_and_its_result() -> None:
    story = Story().run("x").step(0)
    story.ended(story.queued("write", "new.txt", path="new.txt"), "write", text="written")
    again(story).ended("c1", "write", "overridden", text="finished before")

    (call,) = fold(story).calls

    assert (call.number, call.view.status, call.view.outcome.result) == (1, "ok", "written")


def test_ends_are_counted_for_each_run_and_open_calls_for_all() -> None:
    story = Story().run("x").step(0)
    story.call("bash", "make", status="error")
    story.end().run("again", "r2").step(0)
    story.call("bash", "make", status="denied_user")
    story.queued("bash", "make")
    ledger = CallLedger()
    for envelope in story.envelopes:
        ledger.apply(envelope)

    assert {kind: number for kind, number in ledger.of_run.items() if number} == {"denied": 1, "waiting": 1}
    assert counts(ledger).plain == "1 waiting · 1 denied"
