"""Choice of failures to retry, and their delays."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.agent.limit_settings import RetryPolicy
from tui_agent.protocol.errors import ProviderError, ProviderErrorKind


def _failure(kind: ProviderErrorKind = "overloaded", retry_after: float | None = None) -> ProviderError:
    return ProviderError("no", kind=kind, retry_after=retry_after)


@table("kind", get_args(ProviderErrorKind))
def test_what_was_refused_as_such_is_never_sent_again(kind: ProviderErrorKind) -> None:
    wait = RetryPolicy().wait_before(2, _failure(kind))

    assert (wait is not None) is (kind in {"rate_limit", "overloaded", "server", "network", "timeout", "stream_cut"})


def test_delays_double_up_to_the_longest() -> None:
    policy = RetryPolicy(max_attempts=8, first_wait=0.5, longest_wait=6)

    waits = [policy.wait_before(attempt, _failure()) for attempt in range(2, 10)]

    assert waits == [0.5, 1, 2, 4, 6, 6, 6, None]


@table(("status", "attempts"), [(None, 3), (200, 3), (504, 10)])
def test_a_silent_server_gets_fewer_attempts(status: int | None, attempts: int) -> None:
    failure = ProviderError("nothing arrived", kind="timeout", status=status)

    waits = [RetryPolicy().wait_before(attempt, failure) for attempt in range(2, 12)]

    assert sum(wait is not None for wait in waits) == attempts - 1


@given(st.integers(2, 10), st.floats(0, 120))
def test_the_server_is_never_asked_earlier_than_it_said(attempt: int, retry_after: float) -> None:
    wait = RetryPolicy().wait_before(attempt, _failure(retry_after=retry_after))

    assert wait is not None
    assert wait >= retry_after


def test_a_server_that_demands_hours_is_not_retried() -> None:
    assert RetryPolicy().wait_before(2, _failure(retry_after=3_600)) is None
