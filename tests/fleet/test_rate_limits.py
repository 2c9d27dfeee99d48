"""The wait of a whole fleet grows while rate limits last, and decays after a quiet time."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.fleet.unit_progress import FIRST_WAIT, LONGEST_WAIT, QUIET, RateLimits


def test_the_wait_grows_and_starts_again_after_a_quiet_time() -> None:
    now = [1000.0]
    limits = RateLimits(lambda: now[0])

    assert limits.meet(0) == FIRST_WAIT
    assert limits.meet(0) is None, "units that asked at the same time tell nothing new"
    now[0] += FIRST_WAIT
    assert limits.left == 0
    assert limits.meet(0) == 2 * FIRST_WAIT
    now[0] += 2 * FIRST_WAIT
    assert limits.meet(30) == 30, "a longer wait of the server is respected"
    now[0] += 30 + QUIET
    assert limits.meet(0) == FIRST_WAIT


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(0, 200))))
def test_the_wait_has_a_limit_and_never_becomes_shorter(meetings: list[tuple[float, float]]) -> None:
    now = [1000.0]
    limits = RateLimits(lambda: now[0])

    for wait, pause in meetings:
        before = limits.left
        limits.meet(wait)
        assert before <= limits.left <= LONGEST_WAIT + 1e-6
        now[0] += pause
