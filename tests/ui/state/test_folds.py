"""Folds behind the screen: what follows from the events, also after a rewind, a resumed session or a broken end."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.table import table
from tests.ui.story import START, Story, folded, working
from tui_agent.permissions.rules.rule import finding_for_mode
from tui_agent.protocol.events import (
    ApprovalResolved,
    FileChanged,
    Noticed,
    PermissionDecided,
    PermissionModeChanged,
    RunEnded,
    RunStarted,
    SessionLoaded,
    SessionRewound,
    StepStarted,
    TodoItem,
    TodoUpdated,
)
from tui_agent.protocol.permissions import DecisionPart, PermissionMode
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.state.approval_folds import (
    FLOOR_ASKS,
    Attention,
    RuleHits,
    Saving,
    best_saving,
    figures,
)
from tui_agent.ui.state.plan_and_files import ChangedFiles, FileTotals, Plan
from tui_agent.ui.state.session_status import SessionStatus

# --- questions --------------------------------------------------------------------------------------------------------


def ask(story: Story, rule: str | None, seconds: float, **answer: Any) -> None:
    """Ask one question, which the user answers after some seconds."""
    call = story.queued("bash", "make")
    request = story.asks(call, "bash", "make", "no rule allows `make`", session_rule=rule)
    story.wait(seconds)
    values = {"request_id": request, "call_id": call, "decision": "approve", "by": "user", **answer}
    story.tell(ApprovalResolved(**values))


def test_the_figures_count_questions_and_the_time_until_their_answers() -> None:
    story = Story().run("go")
    ask(story, None, 4.0)
    ask(story, None, 10.0, decision="deny")
    story.end().run("again", "r2").wait(100)
    ask(story, None, 6.0)
    attention = folded(Attention(), story)

    # The report is that of the run that ended, so the questions of the present one are not among its own.
    run, session = figures(attention.of_run, story.now), figures(attention.questions, story.now)
    assert (run.questions, run.waited, run.median) == (2, 14.0, 7.0)
    assert (session.questions, session.waited, session.median) == (3, 20.0, 6.0)


def test_questions_that_wait_together_count_once() -> None:
    story = Story().run("go")
    first, second = story.queued("bash", "a"), story.queued("bash", "b")
    one = story.asks(first, "bash", "a", "")
    two = story.wait(2).asks(second, "bash", "b", "")
    story.wait(3).resolved(one, first).wait(1).resolved(two, second)

    found = figures(folded(Attention(), story).questions, story.now)
    assert found.waited == 6.0
    assert found.median == pytest.approx(4.5)


def test_only_the_user_answers_a_question() -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0, by="policy")
    ask(story, "bash(make:*)", 5.0, by="cancel", decision="deny")

    assert figures(folded(Attention(), story).questions, story.now).median is None
    assert best_saving(folded(Attention(), story).questions, story.now) is None


def test_the_rule_that_saves_most_time_is_named_with_its_questions() -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0)
    ask(story, "bash(ls:*)", 8.0)
    ask(story, "bash(make:*)", 6.0)
    attention = folded(Attention(), story)

    assert best_saving(attention.questions, story.now) == Saving("bash(make:*)", 2, 11.0)
    assert best_saving(attention.questions, story.now, {"bash(make:*)"}) == Saving("bash(ls:*)", 1, 8.0)
    assert best_saving(attention.questions, story.now, {"bash(make:*)", "bash(ls:*)"}) is None


@table("answer", [{"decision": "deny"}, {"decision": "skip"}, {"scope": "session"}])
def test_only_a_yes_for_one_call_speaks_for_a_rule(answer: dict[str, str]) -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0, **answer)

    assert best_saving(folded(Attention(), story).questions, story.now) is None


def test_time_while_another_question_waited_is_not_saved() -> None:
    story = Story().run("go")
    other = story.queued("bash", "other")
    request = story.asks(other, "bash", "other", "")
    ask(story, "bash(make:*)", 5.0)
    story.wait(1).resolved(request, other)

    assert best_saving(folded(Attention(), story).questions, story.now) is None


def test_the_clocks_of_two_processes_are_not_compared() -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0)
    story.asks(story.queued("bash", "lost"), "bash", "lost", "")
    story.tell(SessionLoaded(id="s1"))
    story.now = START
    story.run("again", "r2")
    ask(story, "bash(make:*)", 5.0)
    attention = folded(Attention(), story)

    assert figures(attention.questions, story.now).waited == 10.0
    assert figures(attention.of_run, story.now).questions == 1
    assert best_saving(attention.questions, story.now) == Saving("bash(make:*)", 2, 10.0)


def test_each_rule_behind_a_part_counts_a_call_once() -> None:
    hits, story = RuleHits(), Story()
    parts = (
        DecisionPart(text="a", decision="allow", rule="bash(a:*) (x:1)"),
        DecisionPart(text="b", decision="ask"),
        DecisionPart(text="a", decision="allow", rule="bash(a:*) (x:1)"),
    )
    told = [
        PermissionDecided(call_id="c1", decision="ask", source="mode", mode=PermissionMode.ASK, parts=parts),
        PermissionDecided(call_id="c2", decision="deny", source="rule", mode=PermissionMode.ASK, rule="r (x:2)"),
        PermissionDecided(call_id="c2", decision="deny", source="rule", mode=PermissionMode.ASK, rule="r (x:2)"),
        PermissionDecided(call_id="c3", decision="deny", source="floor", mode=PermissionMode.PLAN),
    ]
    for event in told:
        assert hits.apply(story.tell(event))

    assert not hits.apply(story.envelopes[0])
    assert hits.of("bash(a:*) (x:1)") == ("c1",)
    assert hits.of("mode") == ("c1",)
    assert hits.of("r (x:2)") == ("c2",)
    assert hits.of("floor") == ("c3",)
    assert hits.of("unknown") == ()
    assert hits.total == 4


def test_a_question_of_the_floor_and_a_denial_by_plan_mode_are_not_counted_as_protected_paths() -> None:
    hits, story = RuleHits(), Story()
    denied = PermissionDecided(call_id="c1", decision="deny", source="floor", mode=PermissionMode.PLAN)
    planned = finding_for_mode(PermissionMode.PLAN, "effect", "changing a.py").reason
    told = [
        denied.model_copy(update={"reason": ".git/config is protected and never changed"}),
        denied.model_copy(update={"call_id": "c2", "decision": "ask", "reason": "sessions is private"}),
        denied.model_copy(update={"call_id": "c3", "reason": planned}),
    ]
    for event in told:
        hits.apply(story.tell(event))

    assert [hits.of(key) for key in ("floor", FLOOR_ASKS, "mode")] == [("c1",), ("c2",), ("c3",)]


# --- status -----------------------------------------------------------------------------------------------------------


def test_steps_of_a_sub_agent_are_not_the_steps_of_the_run() -> None:
    story = Story().run("x").step(0)
    story.origin = replace(story.origin, depth=1, agent_id="explorer")
    story.tell(StepStarted(index=7, kind="initial"))

    assert folded(SessionStatus(), story).step == 0


def test_the_report_of_the_last_run_that_ended_is_kept() -> None:
    report = AgentRunReport(
        id="r", model="m", started_at=0, completed_at=1, total_ms=1.0, reason="done", user_message="a", final_text="b"
    )
    story = working().end(reason="done")
    story.tell(RunEnded(reason="done", report=report))
    story.tell(RunStarted(input="!ls", trigger="command", model="m", mode=PermissionMode.ASK))
    story.tell(RunEnded(reason="done"))

    assert folded(SessionStatus(), story).report == report


def test_changes_of_mode_and_settings_leave_a_message_that_the_past_does_not() -> None:
    story = Story()
    story.tell(PermissionModeChanged(old=PermissionMode.ASK, new=PermissionMode.PLAN, by="user"))
    assert folded(SessionStatus(), story).notice.text == ""

    story.tell(PermissionModeChanged(old=PermissionMode.PLAN, new=PermissionMode.ASK, by="settings"))
    assert folded(SessionStatus(), story).notice.text == "mode plan → ask (settings)"

    story.tell(Noticed(code="settings_read", text="The settings were reloaded."))
    assert folded(SessionStatus(), story).notice.text == "The settings were reloaded."

    story.tell(SessionLoaded(id="s1"))
    assert folded(SessionStatus(), story).notice.text == ""


# --- plan and files ---------------------------------------------------------------------------------------------------


def planned(story: Story, *done: bool) -> int:
    items = tuple(TodoItem(text=f"{place}", status="done" if one else "pending") for place, one in enumerate(done))
    return story.tell(TodoUpdated(items=items)).seq


def undo_to(story: Story, to_seq: int) -> int:
    last = story.envelopes[-1].seq
    return story.tell(SessionRewound(to_seq=to_seq, from_seq=last, text="x", conversation=True)).seq


def test_a_sub_agents_plan_is_not_shown() -> None:
    story = Story()
    story.origin = replace(story.origin, depth=1)
    planned(story, False)

    assert folded(Plan(), story).items == ()


def test_a_rewind_restores_the_plan_of_that_moment_and_its_undo_the_later_one() -> None:
    story = Story()
    before = story.envelopes[-1].seq
    first, second = planned(story, False, False), planned(story, True, False)
    rewound = undo_to(story, first)
    assert folded(Plan(), story).done == 0

    undo_to(story, second)
    assert folded(Plan(), story).done == 1
    undo_to(story, rewound)
    assert folded(Plan(), story).done == 0
    undo_to(story, before)
    assert folded(Plan(), story).items == ()


def changed(story: Story, path: str, added: int, removed: int, call_id: str | None = "c1") -> int:
    change = FileChanged(path=path, change="modified", call_id=call_id, added=added, removed=removed)
    return story.tell(change).seq


def back(
    story: Story, to_seq: int, *files: str, call_id: str | None = None, lines: tuple[int, int] = (9, 9), **fields: bool
) -> None:
    """Restore files as a rewind does, with a change for each."""
    last = story.envelopes[-1].seq
    for file in files:
        changed(story, f"/shop/{file}", *lines, None)
    fields = {"text": "x", "conversation": False, "files": files, "call_id": call_id, **fields}
    story.tell(SessionRewound(to_seq=to_seq, from_seq=last, **fields))


def files_of(story: Story) -> dict[str, FileTotals]:
    return folded(ChangedFiles(), story).files


def shop() -> Story:
    story = Story()
    story.tell(SessionLoaded(id="s1", cwd="/shop"))
    return story


def test_changes_of_a_file_add_up_and_the_newest_file_is_last() -> None:
    story = shop()
    changed(story, "/shop/a.py", 2, 1)
    changed(story, "/shop/b.py", 1, 0)
    changed(story, "/shop/a.py", 3, 4, "c2")
    changed(story, "/etc/hosts", 1, 0)

    assert list(files_of(story).items()) == [
        ("b.py", FileTotals(1, 0, 1)),
        ("a.py", FileTotals(5, 5, 2)),
        ("/etc/hosts", FileTotals(1, 0, 1)),
    ]


def test_a_rewind_leaves_the_changes_before_that_moment() -> None:
    story = shop()
    before = story.envelopes[-1].seq
    first = changed(story, "/shop/a.py", 2, 1)
    changed(story, "/shop/a.py", 3, 4)
    later = changed(story, "/shop/b.py", 1, 0)
    back(story, first, "a.py", "b.py")
    assert files_of(story) == {"a.py": FileTotals(2, 1, 1)}

    back(story, later, "a.py", "b.py")
    assert files_of(story) == {"a.py": FileTotals(5, 5, 2), "b.py": FileTotals(1, 0, 1)}
    back(story, before, "a.py", "b.py")
    assert files_of(story) == {}


def test_undoing_one_call_leaves_the_changes_of_the_others() -> None:
    story = shop()
    changed(story, "/shop/a.py", 2, 1, "c1")
    changed(story, "/shop/a.py", 3, 4, "c2")
    back(story, 1, "a.py", call_id="c1")

    assert files_of(story) == {"a.py": FileTotals(3, 4, 1)}


def test_undoing_a_part_takes_its_lines_away_and_undoing_all_takes_the_file_away() -> None:
    story = shop()
    changed(story, "/shop/a.py", 5, 3)
    back(story, story.envelopes[-1].seq, "a.py", lines=(1, 2), is_undo=True)
    assert files_of(story) == {"a.py": FileTotals(3, 2, 1)}
    back(story, story.envelopes[-1].seq, "mine.py", lines=(0, 4), is_undo=True)
    assert files_of(story)["mine.py"] == FileTotals(0, 4, 1)
    back(story, 0, "a.py", lines=(2, 3), is_undo=True)
    assert list(files_of(story)) == ["mine.py"]
