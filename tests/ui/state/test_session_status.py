"""The status follows from the events, and becomes idle at the end of a run even if events are missing."""

from dataclasses import replace

from tests.ui.story import Story, working
from tui_agent.protocol.events import (
    BackgroundEnded,
    BackgroundStarted,
    Noticed,
    PermissionModeChanged,
    RunEnded,
    RunStarted,
    SessionLoaded,
    StepStarted,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.state.session_status import SessionStatus


def fold(story: Story) -> SessionStatus:
    view = SessionStatus()
    for envelope in story.envelopes:
        view.apply(envelope)
    return view


def test_the_end_of_the_run_ends_what_runs_and_what_asks() -> None:
    story = working()
    story.asks("c9", "bash", "rm x", "no rule")
    view = fold(story.end(reason="aborted"))

    assert (view.status, view.running, view.asking, view.ended) == ("idle", {}, {}, "aborted")


def test_a_session_that_broke_off_is_at_rest_when_it_is_loaded() -> None:
    story = working()
    story.tell(SessionLoaded(id="s1"))

    assert fold(story).status == "idle"


def test_steps_of_a_sub_agent_are_not_the_steps_of_the_run() -> None:
    story = Story().run("x").step(0)
    story.origin = replace(story.origin, depth=1, agent_id="explorer")
    story.tell(StepStarted(index=7, kind="initial"))

    assert fold(story).step == 0


def test_the_report_of_the_last_run_that_ended_is_kept() -> None:
    report = AgentRunReport(
        id="r", model="m", started_at=0, completed_at=1, total_ms=1.0, reason="done", user_message="a", final_text="b"
    )
    story = working().end(reason="done")
    story.tell(RunEnded(reason="done", report=report))
    story.tell(RunStarted(input="!ls", trigger="command", model="m", mode=PermissionMode.ASK))
    story.tell(RunEnded(reason="done"))

    assert fold(story).report == report


def test_changes_of_mode_and_settings_leave_a_message_that_the_past_does_not() -> None:
    story = Story()
    story.tell(PermissionModeChanged(old=PermissionMode.ASK, new=PermissionMode.PLAN, by="user"))
    assert fold(story).notice.text == ""

    story.tell(PermissionModeChanged(old=PermissionMode.PLAN, new=PermissionMode.ASK, by="settings"))
    assert fold(story).notice.text == "mode plan → ask (settings)"

    story.tell(Noticed(code="settings_read", text="The settings were reloaded."))
    assert fold(story).notice.text == "The settings were reloaded."

    story.tell(SessionLoaded(id="s1"))
    assert fold(story).notice.text == ""


def test_background_commands_are_counted_until_they_end_or_the_session_is_resumed() -> None:
    story = working()
    for name in ("bash_1", "bash_2", "bash_3"):
        story.tell(BackgroundStarted(task_id=name, kind="shell", command="npm run dev"))
    story.tell(BackgroundEnded(task_id="bash_2", kind="shell", status="exited", code=0))
    assert fold(story.end()).progress.in_background == {"bash_1", "bash_3"}

    story.tell(SessionLoaded(id="s1"))
    assert not fold(story).progress.in_background
