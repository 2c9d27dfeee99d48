"""No key meant for something else answers a question."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.ui.dialogs.answer_guard import AFTER_KEY_SECONDS, QUIET_SECONDS, AnswerGuard


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nothing_counts_before_it_was_drawn() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    clock.now = 100.0

    assert not guard.armed
    assert not guard.accepts()


def test_an_answer_counts_after_a_quiet_moment() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()

    clock.now = QUIET_SECONDS - 0.001
    assert not guard.armed
    clock.now = QUIET_SECONDS
    assert guard.armed
    assert guard.accepts()


def test_an_early_answer_does_not_begin_the_quiet_moment_anew() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()

    clock.now = 0.1
    assert not guard.accepts()
    assert guard.too_early
    clock.now = QUIET_SECONDS
    assert guard.accepts()


def test_an_answer_shortly_after_an_early_one_does_not_count() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()

    clock.now = QUIET_SECONDS - 0.01
    assert not guard.accepts()
    clock.now += AFTER_KEY_SECONDS - 0.01
    assert not guard.accepts()
    clock.now += AFTER_KEY_SECONDS
    assert guard.accepts()


def test_no_answer_counts_shortly_after_a_key_that_means_nothing_here() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()
    clock.now = 5.0
    assert guard.armed

    guard.disturbed()

    assert not guard.accepts()
    clock.now += AFTER_KEY_SECONDS
    assert guard.accepts()


def test_the_guard_reports_when_answers_no_longer_count() -> None:
    clock, told = FakeClock(), list[float]()
    guard = AnswerGuard(clock, lambda: told.append(clock.now))
    guard.disturbed()
    assert told == []

    for clock.now, event in ((1.0, guard.drawn), (1.1, guard.accepts), (2.0, guard.accepts), (3.0, guard.disturbed)):
        event()

    assert told == [1.0, 1.1, 3.0]


def test_disturbing_what_is_not_drawn_does_not_begin_anything() -> None:
    guard = AnswerGuard(FakeClock())

    guard.disturbed()

    assert not guard.was_drawn


def test_another_question_in_its_place_begins_anew() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()
    clock.now = 1.0
    assert guard.accepts()

    guard.drawn()

    assert not guard.accepts()


def test_nothing_counts_until_another_question_is_drawn() -> None:
    clock, told = FakeClock(), list[float]()
    guard = AnswerGuard(clock, lambda: told.append(clock.now))
    guard.drawn()
    clock.now = 1.0

    guard.withdrawn()
    clock.now = 9.0
    assert not guard.armed
    assert not guard.accepts()
    guard.drawn()
    clock.now += QUIET_SECONDS

    assert guard.accepts()
    assert told == [0.0, 1.0, 9.0]


def test_no_answer_counts_shortly_after_a_paste() -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()
    clock.now = 0.2
    guard.disturbed()

    clock.now = 0.39
    assert not guard.armed
    clock.now = 0.41
    assert guard.accepts()


@given(st.lists(st.floats(0, AFTER_KEY_SECONDS - 0.01), max_size=50))
def test_fast_typing_and_held_keys_never_get_through(pauses: list[float]) -> None:
    clock = FakeClock()
    guard = AnswerGuard(clock)
    guard.drawn()

    for pause in pauses:
        clock.now += pause
        assert not guard.accepts()
