"""An exception of a listener reaches neither the caller nor the next listener."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import pytest

from tests.support.table import table
from tui_agent.protocol.callbacks import Crash, Listener, failure_text, log_failure, name_of, notify


def failing(fact: object) -> None:
    raise ValueError(f"cannot use {fact}")


def test_a_failure_is_returned_and_its_trace_begins_in_the_callback() -> None:
    crash = notify(failing, 3)

    assert isinstance(crash, Crash)
    assert crash.text == "cannot use 3"
    assert "in failing" in crash.trace
    assert "callbacks.py" not in crash.trace.replace("test_callbacks.py", "")


def test_a_callback_that_returns_has_no_failure_and_its_result_is_dropped() -> None:
    heard: list[object] = []

    assert notify(heard.append, 3) is None
    assert notify(lambda fact: fact, "answer") is None
    assert heard == [3]


def test_an_async_listener_is_a_failure_and_leaves_no_coroutine_behind() -> None:
    async def listener(fact: object) -> None: ...

    crash = notify(listener, 3)

    assert crash is not None
    assert "async" in crash.text


@table("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_exceptions_for_the_whole_program_pass_through(error: type[BaseException]) -> None:
    def listener(fact: object) -> None:
        raise error

    with pytest.raises(error):
        notify(listener, 3)


def test_a_listener_is_called_each_time_and_reported_once() -> None:
    heard: list[int] = []

    def listener(fact: int) -> None:
        heard.append(fact)
        if fact > 1:
            raise ValueError(fact)

    registered = Listener(listener)
    failures = [registered.notify(fact) for fact in (1, 2, 3)]

    assert heard == [1, 2, 3]
    assert [crash.text if crash else None for crash in failures] == [None, "2", None]


@pytest.mark.parametrize(
    ("callback", "name"),
    [
        (failing, f"{__name__}.failing"),
        (partial(failing), "functools.partial"),
    ],
)
def test_a_listener_is_named_by_the_best_available_name(callback: Callable[[object], object], name: str) -> None:
    assert name_of(callback) == name
    assert Listener(callback).name == name


class Nameless:
    """An object that raises on every attribute access."""

    def __call__(self, fact: object) -> None: ...

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


def test_a_listener_without_readable_attributes_is_named_by_its_type() -> None:
    assert Listener(Nameless()).name == "Nameless"


def test_a_report_names_listener_and_error_without_repetition() -> None:
    assert "listener a.b failed (ValueError: broken)" in failure_text("a.b", Crash(ValueError("broken")))
    assert "listener a.b failed (ValueError)." in failure_text("a.b", Crash(ValueError()))


def test_without_a_bus_the_failure_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    crash = notify(failing, 3)
    assert crash is not None

    log_failure("a.b", crash)

    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "a.b failed (ValueError: cannot use 3)" in caplog.text
    assert "in failing" in caplog.text
