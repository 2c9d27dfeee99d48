"""Open requests are shown oldest first and counted over a burst."""

from tests.ui.story import Story
from tui_agent.protocol.events import SessionLoaded
from tui_agent.ui.state.approval_folds import PendingApprovals


def asking(number: int) -> tuple[Story, PendingApprovals, list[str]]:
    story = Story().run("x")
    asked = [story.asks(f"c{index}", "bash", f"command {index}", "no rule") for index in range(number)]
    return story, fold(story), asked


def fold(story: Story, pending: PendingApprovals | None = None, since: int = 0) -> PendingApprovals:
    pending = pending or PendingApprovals()
    for envelope in story.envelopes[since:]:
        pending.apply(envelope)
    return pending


def test_answered_questions_stay_counted_until_none_is_open() -> None:
    _, pending, asked = asking(3)

    assert pending.settle(asked[0])
    assert pending.first is not None
    assert pending.position_of(pending.first) == (2, 3)
    assert not pending.settle(asked[0])

    pending.settle(asked[1])
    pending.settle(asked[2])
    assert len(pending) == 0
    assert pending.first is None


def test_what_was_put_off_does_not_open_by_itself_but_what_comes_later_does() -> None:
    story, pending, asked = asking(2)
    pending.postpone()
    assert pending.next_to_open is None
    assert pending.first is not None

    seen = len(story.envelopes)
    later = story.asks("c9", "bash", "later", "no rule")
    fold(story, pending, seen)

    assert pending.next_to_open is not None
    assert pending.next_to_open.request_id == later
    assert pending.first.request_id == asked[0]


def test_the_end_of_the_run_or_of_the_process_settles_everything() -> None:
    story, pending, _ = asking(2)
    seen = len(story.envelopes)
    story.end()
    assert len(fold(story, pending, seen)) == 0

    story, pending, _ = asking(2)
    seen = len(story.envelopes)
    story.tell(SessionLoaded(id="s1"))
    assert len(fold(story, pending, seen)) == 0
