"""A failed service does not affect the run, and no one waits for a thread that hangs."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from tests.support.table import table
from tui_agent.protocol.background import on_loop, run_in_thread, run_service
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


async def test_a_cancelled_caller_does_not_wait_and_the_late_result_is_dropped() -> None:
    go_on, ended = threading.Event(), threading.Event()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    late: list[object] = []

    async def never_awaited() -> None: ...

    def work() -> object:
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(60)
        late.append(never_awaited())  # closed by the runner, or else the interpreter warns
        ended.set()
        return late[0]

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run_in_thread(work))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        go_on.set()
    assert await asyncio.to_thread(ended.wait, 60)
    while late[0].cr_frame is not None:  # type: ignore[attr-defined] — a coroutine; closed on the loop
        await asyncio.sleep(0)


async def test_a_function_that_raises_on_the_loop_and_a_closed_loop_give_the_fallback() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context["exception"]))

    def fails() -> str:
        raise ValueError("no")

    assert await asyncio.to_thread(on_loop(fails, "deny")) == "deny"
    assert [str(fault) for fault in faults] == ["no"]

    async def made() -> Callable[[], str]:
        return on_loop(lambda: "allow", "deny")

    closed = await asyncio.to_thread(asyncio.run, made())
    assert closed() == "deny"


@pytest.mark.slow
def test_neither_the_loop_nor_the_program_waits_for_a_thread_that_hangs() -> None:
    program = """
import asyncio, threading
from tui_agent.protocol import ToolCall, EventBus
from tui_agent.protocol.function_tool import tool
from tui_agent.execution import ExecutionOptions, execute_tool_calls

@tool(timeout=0.01)
def hang() -> str:
    '''Hang.'''
    threading.Event().wait()
    return ""

async def main():
    options, call = ExecutionOptions(grace=0), ToolCall(id="1", name="hang", arguments={})
    ran = await execute_tool_calls([hang], [call], bus=EventBus(), options=options)
    print(ran.tool_results[0].text)

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (
        "Tool hang timed out after 0.01 s. It may have done a part of its work. Its function runs in a thread that "
        "cannot be stopped and may still be working.\n"
    )
