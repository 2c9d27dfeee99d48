"""Positions of a session's events in its replay."""

from tests.ui.story import Story
from tui_agent.ui.replay.replay_timeline import LONGEST_PAUSE, ReplayTimeline


def timeline_of(*seconds: float) -> ReplayTimeline:
    """Return the timeline of events at these times."""
    story = Story()
    envelopes = [story.envelopes[0]] * len(seconds)
    return ReplayTimeline(envelopes, [round(one * 1_000) for one in seconds])


def test_events_keep_their_distances_but_a_long_pause_is_short() -> None:
    timeline = timeline_of(100, 101.5, 101.5, 4_000, 4_001)

    assert timeline.moments == [0.0, 1.5, 1.5, 1.5 + LONGEST_PAUSE, 2.5 + LONGEST_PAUSE]
    assert timeline.length == 2.5 + LONGEST_PAUSE
    assert [timeline.count_until(at) for at in (0.0, 1.4, 1.5, 6.4, 6.5, 99.0)] == [1, 1, 3, 3, 4, 5]


def test_clocks_stay_true_in_a_long_pause() -> None:
    timeline = timeline_of(100, 101.5, 101.5, 1_101.5)

    assert [timeline.time_at(at) for at in (-1.0, 0.0, 0.75, 1.5, 4.0, 6.5, 9.0)] == [
        *(100.0, 100.0, 100.75, 101.5),
        *(601.5, 1_101.5, 1_101.5),
    ]
    assert timeline.event(3).mono == 1_101.5


def test_time_never_goes_back_with_the_clock_of_the_machine() -> None:
    timeline = timeline_of(100, 40, 101)

    assert timeline.moments == [0.0, 0.0, 1.0]
    assert [timeline.event(place).mono for place in range(3)] == [100.0, 100.0, 101.0]
