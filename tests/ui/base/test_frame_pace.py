"""Frames that only the agent causes wait for one another; those after an input do not."""

from tui_agent.ui.base.app_type import (
    FRAME_SECONDS,
    HEAD_SECONDS,
    IDLE_SHARE,
    INPUT_SECONDS,
    LONGEST_PAUSE,
    MESSAGE_SECONDS,
    TYPED_SECONDS,
    FramePace,
)


class Frames:
    """Frames of a given duration on a clock that the test moves."""

    def __init__(self) -> None:
        self.now, self.duration, self.painted = 100.0, 0.0, 0
        self.pace = FramePace(lambda: self.now)

    def is_painted(self, *, after: float, typed: bool = False) -> bool:
        self.now += after
        before = self.painted
        (self.pace.paint_typed if typed else self.pace.paint)(self._frame)
        return self.painted > before

    def _frame(self) -> None:
        self.painted += 1
        self.now += self.duration


def test_a_frame_waits_for_the_one_before_unless_the_user_types() -> None:
    frames = Frames()

    assert frames.is_painted(after=0.0)
    assert not frames.is_painted(after=FRAME_SECONDS / 2)
    assert frames.is_painted(after=FRAME_SECONDS)
    frames.pace.note_input()
    assert frames.is_painted(after=HEAD_SECONDS)
    assert frames.is_painted(after=FRAME_SECONDS / 2)
    assert frames.is_painted(after=INPUT_SECONDS)
    assert not frames.is_painted(after=FRAME_SECONDS / 2)


def test_a_slow_frame_is_followed_by_a_longer_pause_but_not_by_any() -> None:
    frames = Frames()
    frames.duration = 2 * FRAME_SECONDS / IDLE_SHARE

    assert frames.is_painted(after=0.0)
    assert not frames.is_painted(after=FRAME_SECONDS)
    assert frames.is_painted(after=FRAME_SECONDS)
    frames.duration = LONGEST_PAUSE
    assert frames.is_painted(after=LONGEST_PAUSE)
    assert frames.is_painted(after=LONGEST_PAUSE)


def test_typed_text_is_painted_before_the_rest_but_not_in_each_moment() -> None:
    frames = Frames()

    assert not frames.is_painted(after=0.0, typed=True)
    frames.pace.note_input()
    assert not frames.is_painted(after=HEAD_SECONDS / 2)
    assert frames.is_painted(after=0.0, typed=True)
    assert not frames.is_painted(after=TYPED_SECONDS / 2, typed=True)
    assert frames.is_painted(after=HEAD_SECONDS)
    assert frames.is_painted(after=TYPED_SECONDS, typed=True)
    assert not frames.is_painted(after=INPUT_SECONDS, typed=True)


def test_a_message_leaves_before_it_is_painted() -> None:
    frames = Frames()

    frames.pace.note_input()
    frames.pace.note_message()
    assert not frames.is_painted(after=MESSAGE_SECONDS / 2, typed=True)
    assert not frames.is_painted(after=0.0)
    assert frames.is_painted(after=MESSAGE_SECONDS)
