"""A failed service is reported and does not affect the run."""

import asyncio
import logging

import pytest

from tests.support.table import table
from tui_agent.protocol.background import run_service
from tui_agent.protocol.errors import ConfigurationError


@table(
    ("error", "reason"),
    [
        (OSError(24, "Too many open files"), "Too many open files"),
        (OSError("no regular file"), "no regular file"),
        (MemoryError(), "out of memory"),
        (RuntimeError("can't start\n new thread"), "can't start new thread"),
        (ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError()]), OSError(2, "gone")]), "KeyError"),
        (RuntimeError("x" * 1_000), "x" * 300),
        (ConfigurationError("no such file"), "no such file"),
    ],
)
async def test_an_error_is_reported_and_logged_unless_it_was_raised_on_purpose(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[str] = []
    caplog.clear()

    async def work() -> None:
        raise error

    assert await run_service("watching", work(), reasons.append) is None
    assert await run_service("watching", work()) is None

    assert reasons == [reason]
    logged = [(record.getMessage(), record.levelno) for record in caplog.records]
    assert logged == ([] if isinstance(error, ConfigurationError) else [("watching failed", logging.ERROR)] * 2)


async def test_cancelling_passes_through() -> None:
    never = asyncio.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_service("waiting", never.wait())
