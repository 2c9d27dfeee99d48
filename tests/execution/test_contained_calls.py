import asyncio
import sys
from typing import Any

import pytest

from tests.support.virtual_clock import run_virtual
from tui_agent.execution.contained_calls import Crash, asked, contained, copy_of


async def failing() -> None:
    raise ValueError("broken")


async def cancelling_itself() -> None:
    raise asyncio.CancelledError


async def test_an_exception_becomes_a_value() -> None:
    crash = await contained(failing())

    assert isinstance(crash, Crash)
    assert crash.text == "broken"
    assert "failing" in crash.trace
    assert "tui_agent/execution" not in crash.trace


async def test_an_exception_without_a_message_is_named_by_its_type() -> None:
    assert Crash(ValueError()).text == "ValueError"


async def test_code_that_cancels_itself_affects_no_other_code() -> None:
    crash = await contained(cancelling_itself())

    assert isinstance(crash, Crash)
    assert crash.text == "it cancelled itself"


async def test_a_real_cancellation_passes_through() -> None:
    async def waiting() -> None:
        await contained(asyncio.Event().wait())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()

    assert task.cancelled()


@pytest.mark.parametrize("answer", [lambda n: n + 1, None])
async def test_synchronous_and_async_functions_can_be_called(answer: Any) -> None:
    async def later(n: int) -> int:
        return n + 1

    assert await asked(answer or later, 1, timeout=60.0) == 2


async def test_a_function_that_raises_gives_a_crash() -> None:
    crash = await asked(lambda question: 1 / 0, None, timeout=60.0)

    assert isinstance(crash, Crash)
    assert not crash.timed_out


def test_a_function_that_exceeds_its_time_is_cancelled() -> None:
    async def never(_: None) -> None:
        await asyncio.Event().wait()

    crash = run_virtual(asked(never, None, timeout=30.0))

    assert isinstance(crash, Crash)
    assert crash.timed_out


async def test_a_timeout_error_of_its_own_is_not_a_timeout() -> None:
    async def failing_with_timeout(_: None) -> None:
        raise TimeoutError("the server is slow")

    crash = await asked(failing_with_timeout, None, timeout=30.0)

    assert isinstance(crash, Crash)
    assert not crash.timed_out


async def test_a_called_function_that_cancels_itself_gives_a_crash() -> None:
    crash = await asked(lambda _: cancelling_itself(), None, timeout=60.0)

    assert isinstance(crash, Crash)


async def test_a_cancellation_during_the_call_passes_through() -> None:
    async def waiting() -> None:
        await asked(lambda _: asyncio.Event().wait(), None, timeout=None)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()

    assert task.cancelled()


def test_a_copy_shares_no_mutable_data() -> None:
    value = {"a": [{"b": 1}], "c": "text"}
    copied = copy_of(value)
    copied["a"][0]["b"] = 2

    assert value == {"a": [{"b": 1}], "c": "text"}


async def test_code_that_exits_the_process_only_fails() -> None:
    async def leaving() -> None:
        sys.exit(3)

    crash = await contained(leaving())

    assert isinstance(crash, Crash)
    assert "exit code 3" in crash.text
    assert isinstance(await asked(lambda question: sys.exit(3), None, timeout=60.0), Crash)


async def test_each_error_of_a_group_is_described() -> None:
    async def several() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            group.create_task(failing())

    crash = await contained(several())

    assert isinstance(crash, Crash)
    assert crash.text == "broken"
