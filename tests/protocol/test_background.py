"""A failed service is reported and does not affect the run."""

import asyncio
import logging

import pytest

from tui_agent.protocol.background import reason_of, run_service
from tui_agent.protocol.errors import ConfigurationError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(24, "Too many open files"), "Too many open files"),
        (OSError("no regular file"), "no regular file"),
        (MemoryError(), "out of memory"),
        (RecursionError("maximum recursion depth exceeded"), "maximum recursion depth exceeded"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad byte"), "'utf-8' codec can't decode byte 0xff in position 0"),
        (RuntimeError("can't start\n new thread"), "can't start new thread"),
        (ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError()]), OSError(2, "gone")]), "KeyError"),
        (RuntimeError("x" * 1_000), "x" * 300),
    ],
)
async def test_an_error_is_logged_and_reported_but_not_raised(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[str] = []

    async def work() -> None:
        raise error

    assert await run_service("watching", work(), reasons.append) is None
    assert await run_service("watching", work()) is None

    assert [told.startswith(reason) for told in reasons] == [True]
    assert [record.getMessage() for record in caplog.records] == ["watching failed"] * 2
    assert all(record.levelno == logging.ERROR for record in caplog.records)


async def test_an_error_raised_on_purpose_needs_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ConfigurationError("there is no such file")

    reasons: list[str] = []
    await run_service("opening", work(), reasons.append)

    assert reasons == ["there is no such file"] == [reason_of(ConfigurationError("there is no such file"))]
    assert caplog.records == []


async def test_cancelling_passes_through() -> None:
    never = asyncio.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_service("waiting", never.wait())
