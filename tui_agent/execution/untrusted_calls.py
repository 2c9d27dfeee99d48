"""Calls into untrusted code: tools, hooks, guardrails and predicates. Whatever they raise becomes a `Crash` value.

The engine catches `Exception` only here and in `protocol/callbacks.py`, which calls listeners. A callee may raise
`CancelledError` or `SystemExit` itself, or something that is not an `Exception`: only its own call fails. A real
cancellation always passes through. Callees get copies of arguments, calls and results, which they may change.
"""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from tui_agent.protocol.callbacks import Crash, error_message
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import AssistantMessage, ToolCall, ToolResultMessage, is_array, is_object
from tui_agent.protocol.tool import ToolResult

T = TypeVar("T")
V = TypeVar("V")

CLEANUP_SECONDS = 2.0
"""Seconds that a callee may clean up after its time is over or it was cancelled; then it is closed."""

_UNCHANGEABLE = frozenset({str, int, float, bool, type(None)})


def now() -> float:
    """Return the event loop's time in seconds. Every time and duration of the engine is measured with it."""
    return asyncio.get_running_loop().time()


def kind_of(crash: Crash) -> str:
    """Return the type name of the error."""
    return type(crash.error).__name__


async def contained(work: Awaitable[T]) -> T | Crash:
    """Return the result of `work`, or a `Crash`."""
    try:
        return await (work if isinstance(work, Killable) else Killable(_awaited(work), _never))
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except (Exception, SystemExit) as error:
        return Crash(error)


async def asked(function: Callable[..., object], *questions: Any, timeout: float | None) -> object:
    """Return the answer of a plain or async function, or a `Crash`.

    Args:
        function: returns the answer or an awaitable.
        questions: its arguments; JSON, calls and results are copied.
        timeout: seconds until it counts as failed; None: no limit.

    Raises:
        CancelledError: the caller was cancelled; raised at most `CLEANUP_SECONDS` later.
    """
    limit, kill = asyncio.timeout(timeout), asyncio.timeout(None)

    def begin_to_end() -> None:
        if kill.when() is None:
            kill.reschedule(now() + CLEANUP_SECONDS)

    try:
        async with limit, kill:
            return await Killable(_answer(function, questions), kill.expired, begin_to_end)
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except (Exception, SystemExit) as error:
        return Crash(error, timed_out=limit.expired())


async def in_time(work: Awaitable[T], run: CancellationToken, grace: float) -> T:
    """Return the result of `work`, which is cancelled `grace` seconds after the run was.

    Raises:
        TimeoutError: it was cancelled.
    """
    async with asyncio.timeout(None) as limit:
        forget = run.on_cancel(lambda: limit.reschedule(now() + grace))
        try:
            return await work
        finally:
            forget()


def try_call(function: Callable[..., V], *arguments: Any) -> V | Crash:
    """Return the result of a plain function, or a `Crash`; JSON, calls and results among its arguments are copied."""
    try:
        return function(*map(copy_of, arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Crash(error)


def call_or_default(predicate: Callable[..., V], *arguments: Any, otherwise: V, kind: type[Any] | None = None) -> V:
    """Return the result of a plain function, or `otherwise` if it raises or returns something of another kind.

    Args:
        predicate: untrusted function.
        arguments: its arguments, copied as in `try_call`.
        otherwise: the default.
        kind: required type of the result; None: the type of `otherwise`.
    """
    answer = try_call(predicate, *arguments)
    return otherwise if isinstance(answer, Crash) or not isinstance(answer, kind or type(otherwise)) else answer


def is_being_cancelled() -> bool:
    """Return True if the current task is being cancelled, as opposed to code in it raising `CancelledError`."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def copy_of(value: Any) -> Any:
    """Return a deep copy of a JSON value, a call, a result or a message; anything else is returned as it is."""
    if is_object(value):
        # Most arguments are flat, and each call copies them several times.
        if _UNCHANGEABLE.issuperset(map(type, value.values())):
            return dict(value)
        return {key: copy_of(inner) for key, inner in value.items()}
    if is_array(value):
        return list(value) if _UNCHANGEABLE.issuperset(map(type, value)) else [copy_of(inner) for inner in value]
    if isinstance(value, ToolCall):
        return value.model_copy(update={"arguments": copy_of(value.arguments)})
    if isinstance(value, AssistantMessage):
        return value.model_copy(update={"content": tuple(map(copy_of, value.content))})
    if isinstance(value, ToolResult | ToolResultMessage) and value.details is not None:
        return value.model_copy(update={"details": copy_of(value.details)})
    return value


class Killable(Generic[T]):
    """Awaitable around a coroutine that can be ended even if it suppresses its cancellation.

    Once `is_killed` returns True, the next cancellation closes the coroutine: it gets `GeneratorExit`, its `finally`
    blocks run up to their first await, and it is not resumed. No task is left behind.
    """

    def __init__(
        self, work: Coroutine[Any, Any, T], is_killed: Callable[[], bool], on_cancel: Callable[[], None] | None = None
    ) -> None:
        self._work = work
        self._is_killed = is_killed
        self._on_cancel = on_cancel

    def __await__(self) -> Generator[Any, None, T]:
        work = self._work
        resume: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                awaited = resume()
            except StopIteration as end:
                return end.value
            except (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                # Passed on, `GeneratorExit` would look as if the awaiting coroutine were being closed.
                raise RuntimeError(f"it raised {error_message(error)}") from error
            try:
                yield awaited
            except asyncio.CancelledError as error:
                if self._is_killed():
                    _close(work)
                    raise
                if self._on_cancel is not None:
                    self._on_cancel()
                resume = partial(work.throw, error)
            except Exception as error:
                # The awaited future failed, which the coroutine may handle.
                resume = partial(work.throw, error)
            else:
                resume = partial(work.send, None)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _answer(function: Callable[..., object], questions: tuple[Any, ...]) -> object:
    answer = function(*map(copy_of, questions))
    return await answer if inspect.isawaitable(answer) else answer


def _never() -> bool:
    return False


def _close(work: Coroutine[Any, Any, Any]) -> None:
    # A coroutine that awaits while it is closed raises RuntimeError; it is not resumed either way.
    with contextlib.suppress(Exception):
        work.close()
