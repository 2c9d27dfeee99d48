"""Waiting time of questions to the user, and the rule that would have saved most of it."""

from typing import Any

import pytest

from tests.support.table import table
from tests.ui.story import START, Story
from tui_agent.protocol.events import ApprovalResolved, SessionLoaded
from tui_agent.ui.state.approval_folds import Attention, Saving, best_saving, figures


def fold(story: Story) -> Attention:
    attention = Attention()
    for envelope in story.envelopes:
        attention.apply(envelope)
    return attention


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
    attention = fold(story)

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

    found = figures(fold(story).questions, story.now)
    assert found.waited == 6.0
    assert found.median == pytest.approx(4.5)


def test_only_the_user_answers_a_question() -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0, by="policy")
    ask(story, "bash(make:*)", 5.0, by="cancel", decision="deny")

    assert figures(fold(story).questions, story.now).median is None
    assert best_saving(fold(story).questions, story.now) is None


def test_the_rule_that_saves_most_time_is_named_with_its_questions() -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0)
    ask(story, "bash(ls:*)", 8.0)
    ask(story, "bash(make:*)", 6.0)
    attention = fold(story)

    assert best_saving(attention.questions, story.now) == Saving("bash(make:*)", 2, 11.0)
    assert best_saving(attention.questions, story.now, {"bash(make:*)"}) == Saving("bash(ls:*)", 1, 8.0)
    assert best_saving(attention.questions, story.now, {"bash(make:*)", "bash(ls:*)"}) is None


@table("answer", [{"decision": "deny"}, {"decision": "skip"}, {"scope": "session"}])
def test_only_a_yes_for_one_call_speaks_for_a_rule(answer: dict[str, str]) -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0, **answer)

    assert best_saving(fold(story).questions, story.now) is None


def test_time_while_another_question_waited_is_not_saved() -> None:
    story = Story().run("go")
    other = story.queued("bash", "other")
    request = story.asks(other, "bash", "other", "")
    ask(story, "bash(make:*)", 5.0)
    story.wait(1).resolved(request, other)

    assert best_saving(fold(story).questions, story.now) is None


def test_the_clocks_of_two_processes_are_not_compared() -> None:
    story = Story().run("go")
    ask(story, "bash(make:*)", 5.0)
    story.asks(story.queued("bash", "lost"), "bash", "lost", "")
    story.tell(SessionLoaded(id="s1"))
    story.now = START
    story.run("again", "r2")
    ask(story, "bash(make:*)", 5.0)
    attention = fold(story)

    assert figures(attention.questions, story.now).waited == 10.0
    assert figures(attention.of_run, story.now).questions == 1
    assert best_saving(attention.questions, story.now) == Saving("bash(make:*)", 2, 10.0)
