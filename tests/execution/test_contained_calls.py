import asyncio

from tests.support.virtual_clock import run_virtual
from tui_agent.execution.contained_calls import Crash, asked, contained, copy_of


async def failing() -> None:
    raise ValueError("broken")


async def test_a_real_cancellation_passes_through() -> None:
    async def waiting() -> None:
        await contained(asyncio.Event().wait())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()

    assert task.cancelled()


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


async def test_each_error_of_a_group_is_described() -> None:
    async def several() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            group.create_task(failing())

    crash = await contained(several())

    assert isinstance(crash, Crash)
    assert crash.text == "broken"
