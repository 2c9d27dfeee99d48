import asyncio

from tui_agent.execution.contained_calls import Crash, asked, contained


async def failing() -> None:
    raise ValueError("broken")


async def test_a_timeout_error_of_its_own_is_not_a_timeout() -> None:
    async def failing_with_timeout(_: None) -> None:
        raise TimeoutError("the server is slow")

    crash = await asked(failing_with_timeout, None, timeout=30.0)

    assert isinstance(crash, Crash)
    assert not crash.timed_out


async def test_each_error_of_a_group_is_described() -> None:
    async def several() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            group.create_task(failing())

    crash = await contained(several())

    assert isinstance(crash, Crash)
    assert crash.text == "broken"
