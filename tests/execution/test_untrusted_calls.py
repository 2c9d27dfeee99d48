import asyncio
import contextlib
import sys
from typing import Any

import pytest

from tests.support.virtual_clock import run_virtual
from tui_agent.execution.untrusted_calls import (
    CLEANUP_SECONDS,
    Crash,
    Killable,
    asked,
    call_or_default,
    contained,
    copy_of,
    now,
    try_call,
)


async def failing() -> None:
    raise ValueError("broken")


async def cancelling_itself() -> None:
    raise asyncio.CancelledError


async def test_an_exception_becomes_a_value() -> None:
    crash = await contained(failing())

    assert isinstance(crash, Crash)
    assert crash.text == "broken"
    assert "failing" in crash.trace
    assert "/foreign_code.py" not in crash.trace


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


def test_a_function_that_exceeds_its_time_is_abandoned() -> None:
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


def test_a_predicate_that_raises_counts_as_the_safer_answer() -> None:
    def broken(_: int) -> bool:
        raise KeyError

    assert call_or_default(broken, 1, otherwise=False) is False
    assert call_or_default(lambda n: n > 0, 1, otherwise=False) is True


def test_a_copy_shares_no_mutable_data() -> None:
    value = {"a": [{"b": 1}], "c": "text"}
    copied = copy_of(value)
    copied["a"][0]["b"] = 2

    assert value == {"a": [{"b": 1}], "c": "text"}


class Stubborn:
    """Coroutine that ignores every cancellation."""

    def __init__(self, *, tidies: bool = False) -> None:
        self.swallowed = 0
        self.closed = False
        self._tidies = tidies

    async def run(self) -> str:
        try:
            while True:
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    self.swallowed += 1
        finally:
            self.closed = True
            if self._tidies:
                raise ValueError("tidying failed")


@pytest.mark.parametrize("tidies", [False, True])
def test_a_coroutine_that_ignores_its_cancellation_is_closed_when_killed(tidies: bool) -> None:
    stubborn = Stubborn(tidies=tidies)

    async def work() -> float:
        kill = asyncio.timeout(3)
        try:
            async with asyncio.timeout(1), kill:
                await Killable(stubborn.run(), kill.expired)
        except TimeoutError:
            pass
        return asyncio.get_running_loop().time()

    assert run_virtual(work()) == 1003.0
    assert stubborn.swallowed == 1
    assert stubborn.closed


async def test_a_killable_coroutine_returns_its_result_and_raises_its_errors() -> None:
    async def fine() -> int:
        await asyncio.sleep(0)
        return 5

    assert await Killable(fine(), lambda: False) == 5
    with pytest.raises(ValueError, match="broken"):
        await Killable(failing(), lambda: False)


async def test_a_killable_coroutine_may_clean_up_when_it_is_cancelled() -> None:
    tidied = asyncio.Event()

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.set()

    async def waiting() -> None:
        await Killable(tidy(), lambda: False)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()

    assert tidied.is_set()
    assert task.cancelled()


async def test_code_that_exits_the_process_only_fails() -> None:
    async def leaving() -> None:
        sys.exit(3)

    crash = await contained(leaving())

    assert isinstance(crash, Crash)
    assert "exit code 3" in crash.text
    assert isinstance(await asked(lambda question: sys.exit(3), None, timeout=60.0), Crash)


class OfNoKind(BaseException):
    """Exception that is neither an `Exception` nor known to asyncio."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (GeneratorExit(), "GeneratorExit"),
        (BaseExceptionGroup("several", [GeneratorExit(), ValueError("broken")]), "broken"),
        (OfNoKind("odd"), "odd"),
    ],
)
async def test_unusual_exceptions_only_fail_wherever_they_are_raised(error: BaseException, words: str) -> None:
    def raising(question: object) -> None:
        raise error

    async def raising_later(question: object) -> None:
        await asyncio.sleep(0)
        raise error

    for crash in (
        await contained(raising_later(None)),
        await asked(raising, None, timeout=60.0),
        await asked(raising_later, None, timeout=60.0),
        try_call(raising, None),
    ):
        assert isinstance(crash, Crash)
        assert words in crash.text


@pytest.mark.parametrize("ask", [lambda work: contained(work()), lambda work: asked(work, timeout=None)])
async def test_a_caller_that_is_closed_closes_the_foreign_code_and_ends(ask: Any) -> None:
    closed: list[bool] = []

    async def working() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    asking = ask(working)
    asking.send(None)
    asking.close()

    assert closed == [True]


async def test_each_error_of_a_group_is_described() -> None:
    async def several() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            group.create_task(failing())

    crash = await contained(several())

    assert isinstance(crash, Crash)
    assert crash.text == "broken"


@pytest.mark.parametrize("timeout", [None, 1000.0])
def test_a_function_that_ignores_a_cancellation_from_outside_is_closed_soon_after(timeout: float | None) -> None:
    stubborn = Stubborn()

    async def ask() -> float:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asked(lambda _: stubborn.run(), None, timeout=timeout))
            await asyncio.sleep(1)
            task.cancel()
            began = now()
        assert task.cancelled()
        return now() - began

    assert run_virtual(ask()) == CLEANUP_SECONDS
    assert stubborn.swallowed == 1
    assert stubborn.closed


def test_a_function_that_ignores_its_end_is_closed_soon_after() -> None:
    async def stubborn(question: object) -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)

    async def ask() -> tuple[object, float]:
        began = now()
        return await asked(stubborn, None, timeout=5.0), now() - began

    answer, seconds = run_virtual(ask())

    assert isinstance(answer, Crash)
    assert answer.timed_out
    assert seconds == 5.0 + CLEANUP_SECONDS


@pytest.mark.parametrize(("says", "counts_as"), [(True, True), (None, False), ("yes", False), (1, False)])
def test_an_answer_of_another_type_counts_as_none(says: object, counts_as: bool) -> None:
    predicate: Any = lambda: says  # noqa: E731

    assert call_or_default(predicate, otherwise=False) is counts_as


async def test_foreign_code_handles_failures_of_its_own_awaits() -> None:
    def fail() -> None:
        raise OSError("no such thing")

    async def careful_callee(question: str) -> str:
        try:
            await asyncio.to_thread(fail)
        except OSError as error:
            return f"{question}: {error}"
        return "it did not fail"

    assert await asked(careful_callee, "well", timeout=5.0) == "well: no such thing"


async def test_an_error_whose_message_raises_has_a_name() -> None:
    class Wordless(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def raising() -> None:
        raise Wordless

    crash = await contained(raising())

    assert isinstance(crash, Crash)
    assert crash.text == "Wordless"
    assert "Wordless" in crash.trace
