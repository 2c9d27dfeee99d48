"""The plan of the root agent, also after rewinds."""

from dataclasses import replace

from tests.ui.story import Story
from tui_agent.protocol.events import SessionRewound, TodoItem, TodoUpdated
from tui_agent.ui.state.plan_and_files import Plan


def planned(story: Story, *done: bool) -> int:
    items = tuple(TodoItem(text=f"{place}", status="done" if one else "pending") for place, one in enumerate(done))
    return story.tell(TodoUpdated(items=items)).seq


def back(story: Story, to_seq: int) -> int:
    last = story.envelopes[-1].seq
    return story.tell(SessionRewound(to_seq=to_seq, from_seq=last, text="x", conversation=True)).seq


def fold(story: Story) -> Plan:
    plan = Plan()
    for envelope in story.envelopes:
        plan.apply(envelope)
    return plan


def test_a_sub_agents_plan_is_not_shown() -> None:
    story = Story()
    story.origin = replace(story.origin, depth=1)
    planned(story, False)

    assert fold(story).items == ()


def test_a_rewind_restores_the_plan_of_that_moment_and_its_undo_the_later_one() -> None:
    story = Story()
    before = story.envelopes[-1].seq
    first, second = planned(story, False, False), planned(story, True, False)
    rewound = back(story, first)
    assert fold(story).done == 0

    back(story, second)
    assert fold(story).done == 1
    back(story, rewound)
    assert fold(story).done == 0
    back(story, before)
    assert fold(story).items == ()
