"""Cancellation reaches descendants and no other token."""

import asyncio
import weakref

import pytest

from tui_agent.protocol.cancellation import CancellationToken


async def test_s0_30_cancelling_a_parent_reaches_every_child_and_a_child_no_other() -> None:
    run = CancellationToken()
    first, second = run.child(), run.child()
    grandchild = first.child()

    second.cancel("timeout")
    assert (run.is_set(), first.is_set(), second.is_set()) == (False, False, True)

    run.cancel("user")
    assert (first.reason, grandchild.reason, second.reason) == ("user", "user", "timeout")


async def test_finished_children_are_not_kept() -> None:
    run = CancellationToken()
    children = [weakref.ref(run.child()) for _ in range(100)]

    assert not any(child() for child in children)


async def test_a_callback_that_raises_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    run = CancellationToken()
    first, second = run.child(), run.child()
    called: list[str] = []

    def failing() -> None:
        raise ValueError("the connection was gone")

    first.on_cancel(failing)
    run.on_cancel(failing)
    run.on_cancel(lambda: called.append("run"))
    second.on_cancel(lambda: called.append("call"))

    run.cancel("user")

    assert sorted(called) == ["call", "run"]
    assert "the connection was gone" in caplog.text


async def test_threads_may_add_callbacks_while_it_is_cancelled_and_each_is_called_once() -> None:
    token, called = CancellationToken(), list[int]()

    def add(first: int) -> None:
        for number in range(first, first + 200):
            token.on_cancel(lambda number=number: called.append(number))

    async with asyncio.TaskGroup() as group:
        for first in (0, 200, 400):
            group.create_task(asyncio.to_thread(add, first))
        await asyncio.sleep(0)
        token.cancel()

    assert sorted(called) == list(range(600))
