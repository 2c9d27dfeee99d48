"""Every call once, in order, counted under the right kind, with bounded memory."""

from dataclasses import replace

import pytest

from tests.ui.story import Story, folded
from tui_agent.protocol.events import (
    BackgroundEnded,
    BackgroundStarted,
    RunEnded,
    ToolQueued,
    ToolStatus,
)
from tui_agent.ui.state import call_ledger
from tui_agent.ui.state.call_ledger import CallLedger


def test_a_call_that_changes_its_state_changes_the_calls_that_wait_for_it() -> None:
    story = Story().run("x").step(0)
    bash, edit, read = story.queued("bash", "make"), story.queued("edit", "a.py"), story.queued("read", "a.py")
    story.started(bash, "bash", "make").blocked(edit, bash).blocked(read, edit)
    ledger = folded(CallLedger(), story)

    assert ledger.apply(story.output(bash, "ok").envelopes[-1]) == (0,)
    assert ledger.apply(story.ended(bash, "bash").envelopes[-1]) == (0, 1)
    assert ledger.apply(story.blocked(edit).envelopes[-1]) == (1,)
    story.asks(edit, "edit", "a.py", "no rule")
    assert [ledger.apply(envelope) for envelope in story.envelopes[-3:]] == [(1, 2), (1,), ()]


def test_the_end_of_a_sub_agent_ends_its_own_calls_only() -> None:
    story = Story().run("x").step(0)
    parent = story.queued("agent", "explore")
    story.started(parent, "agent")
    root = story.origin
    story.origin = replace(root, run_id="child", agent_id="explorer", depth=1)
    child = story.queued("grep", "x")
    story.started(child, "grep")
    story.tell(RunEnded(reason="done"))

    assert [call.kind for call in folded(CallLedger(), story).calls] == ["running", "unknown"]


def test_old_results_are_dropped_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_ledger, "MAX_RESULT_CHARACTERS", 1_000)
    story = Story().run("x").step(0)
    for number in range(5):
        story.call("read", f"file {number}", text="x" * 400, persisted_path=f"/tmp/{number}")
    ledger = folded(CallLedger(), story)

    kept = [call.view.outcome.result for call in ledger.calls]
    assert kept[0] == "[no longer kept on the screen; the whole of it is in /tmp/0]"
    assert kept[-2:] == ["x" * 400] * 2


def again(story: Story, step: int | None = None) -> Story:
    """Return events that queue the first call of a story once more, in another run."""
    first = next(envelope.event for envelope in story.envelopes if isinstance(envelope.event, ToolQueued))
    story.origin = replace(story.origin, run_id="r2", step=step)
    story.tell(first)
    return story


@pytest.mark.parametrize("status", ["ok", "cancelled"])
def test_another_call_under_the_same_id_has_a_row_of_its_own(status: ToolStatus) -> None:
    story = Story().run("x").step(0)
    story.ended(story.queued("write", "new.txt", path="new.txt"), "write", status)

    assert [call.number for call in folded(CallLedger(), again(story, step=0)).calls] == [1, 2]


def test_a_finished_call_of_a_resumed_answer_keeps_its_row_and_its_result() -> None:
    story = Story().run("x").step(0)
    story.ended(story.queued("write", "new.txt", path="new.txt"), "write", text="written")
    again(story).ended("c1", "write", "overridden", text="finished before")

    (call,) = folded(CallLedger(), story).calls

    assert (call.number, call.view.status, call.view.outcome.result) == (1, "ok", "written")


def in_background(story: Story) -> str:
    """Let a command become a background command; return the id of its call."""
    call_id = story.queued("bash", "make serve", command="make serve")
    story.started(call_id, "bash", "make serve", command="make serve")
    story.tell(BackgroundStarted(task_id="bash_1", kind="bash", command="make serve"))
    story.ended(call_id, "bash", "ok", details={"task_id": "bash_1", "outcome": "runs in the background as bash_1"})
    return call_id


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        ("exited", 0, "done", "ran in the background"),
        ("exited", 3, "failed", "exit 3 · ran in the background"),
        ("exited", -9, "failed", "signal 9 · ran in the background"),
        ("killed", -15, "cancelled", "ran in the background"),
        ("timeout", None, "failed", "ran in the background"),
        ("unknown", None, "unknown", "ran in the background"),
    ],
)
def test_a_call_is_in_the_background_until_its_command_ends(
    status: str, code: int | None, kind: str, words: str
) -> None:
    story = Story()
    call_id = in_background(story)
    story.call("bash_output", "bash_1", details={"task_id": "bash_1", "outcome": "running"})
    story.end()
    ledger = folded(CallLedger(), story)
    call = ledger.find(call_id)
    assert call is not None
    assert (call.kind, call.view.outcome.job, [one.kind for one in ledger.calls]) == (
        "background",
        "bash_1",
        ["background", "done"],
    )

    assert ledger.apply(story.tell(BackgroundEnded(task_id="bash_1", kind="bash", status=status, code=code))) == (0,)

    assert (call.kind, call.view.outcome.job) == (kind, "")
    assert (call.view.outcome.details or {})["outcome"] == words


def test_a_command_that_ended_before_its_call_was_never_in_the_background() -> None:
    story = Story()
    call_id = story.queued("bash", "true")
    story.started(call_id, "bash", "true")
    story.tell(BackgroundStarted(task_id="bash_1", kind="bash", command="true"))
    story.tell(BackgroundEnded(task_id="bash_1", kind="bash", status="exited", code=0))
    story.ended(call_id, "bash", details={"task_id": "bash_1"})

    assert [call.kind for call in folded(CallLedger(), story).calls] == ["done"]
