import asyncio

import pytest

from tests.support.virtual_clock import run_virtual
from tui_agent.execution.joinable_task_group import JoinableTaskGroup


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def test_a_task_may_wait_for_all_others_and_continue_with_some() -> None:
    async def work() -> list[float]:
        times: list[float] = []
        clock = asyncio.get_running_loop().time
        began = clock()
        async with JoinableTaskGroup() as crew:
            assert await crew.until_idle()
            for seconds in (1, 2):
                crew.start(sleep(seconds))
            assert crew.is_busy
            assert not await crew.until_idle(0.5)
            assert await crew.until_idle()
            times.append(clock() - began)
            crew.start(sleep(3))
            assert await crew.until_idle()
            times.append(clock() - began)
        return times

    assert run_virtual(work()) == [2.0, 5.0]


async def test_an_error_of_the_body_propagates_once_all_tasks_are_done() -> None:
    stop = asyncio.Event()
    done: list[bool] = []

    async def obey() -> None:
        await stop.wait()
        done.append(True)

    async def work() -> None:
        async with JoinableTaskGroup() as crew:
            crew.start(obey())
            stop.set()
            raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        await work()
    assert done == [True]


async def test_no_task_starts_after_a_failure_or_during_the_exit() -> None:
    async def break_() -> None:
        raise OSError("broken")

    async def work() -> None:
        async with JoinableTaskGroup() as crew:
            assert crew.takes_work
            crew.start(break_())
            try:
                await crew.until_idle()
            finally:
                heard.append(crew.takes_work)

    heard: list[bool] = []
    with pytest.raises(ExceptionGroup):
        await work()
    async with JoinableTaskGroup() as crew:
        pass

    assert heard == [False]
    assert not crew.takes_work


async def test_a_task_cancelled_before_it_starts_counts_as_done() -> None:
    begun: list[bool] = []

    async def begin() -> None:
        begun.append(True)

    crew = JoinableTaskGroup()

    async def work() -> None:
        async with crew:
            crew.start(begin())
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await work()

    assert begun == []
    assert not crew.is_busy


async def test_a_cancellation_cancels_all_tasks() -> None:
    done: list[bool] = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            done.append(True)

    async def work() -> None:
        async with JoinableTaskGroup() as crew:
            crew.start(never())
            await crew.until_idle()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()

    assert task.cancelled()
    assert done == [True]
