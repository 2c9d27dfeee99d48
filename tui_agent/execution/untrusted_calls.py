"""Calls into code that is not ours: tools, hooks, guardrails, predicates. What they do wrong becomes a value here.

The engine catches `Exception` only here and in `protocol/callbacks.py`, which calls listeners. A callee
that raises `CancelledError` by itself hurts nobody (C25, P41), nor does one that wants to end the process (`sys.exit`)
or raises what is no `Exception` at all; a real cancellation always passes through. What foreign code is given is its
own: it may write into it, and nobody will notice (P48).
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
"""Seconds to tidy up after the time is over or the question is withdrawn; then it is closed, also against its will."""

_UNCHANGEABLE = frozenset({str, int, float, bool, type(None)})


def now() -> float:
    """Return the event loop's time in seconds. Every time and duration of the engine is measured with it."""
    return asyncio.get_running_loop().time()


def kind_of(crash: Crash) -> str:
    """The kind of error it was."""
    return type(crash.error).__name__


async def contained(work: Awaitable[T]) -> T | Crash:
    """What `work` gives, or how it failed."""
    try:
        return await (work if isinstance(work, Killable) else Killable(_awaited(work), _never))
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except (Exception, SystemExit) as error:
        return Crash(error)


async def asked(function: Callable[..., object], *questions: Any, timeout: float | None) -> object:
    """The answer of a plain or async function, or a `Crash`.

    Args:
        function: may answer at once or with an awaitable.
        questions: what it is given; of JSON, calls and results, copies.
        timeout: seconds until it counts as failed; None: no limit.

    Raises:
        CancelledError: the caller was cancelled; at the latest `CLEANUP_SECONDS` later.
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
    """What `work` gives; it is cancelled `grace` seconds after the run was.

    Raises:
        TimeoutError: it was.
    """
    async with asyncio.timeout(None) as limit:
        forget = run.on_cancel(lambda: limit.reschedule(now() + grace))
        try:
            return await work
        finally:
            forget()


def try_call(function: Callable[..., V], *arguments: Any) -> V | Crash:
    """What a plain function gives, or how it failed; of JSON, calls and results it is given copies."""
    try:
        return function(*map(copy_of, arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Crash(error)


def call_or_default(predicate: Callable[..., V], *arguments: Any, otherwise: V, kind: type[Any] | None = None) -> V:
    """What a plain function says, or `otherwise` if it raises, or says what is not of its `kind` (C3).

    Args:
        predicate: foreign code.
        arguments: what it is given.
        otherwise: the call_or_default answer.
        kind: what its answer must be; None: what `otherwise` is.
    """
    answer = try_call(predicate, *arguments)
    return answer if isinstance(answer, kind or type(otherwise)) else otherwise


def is_being_cancelled() -> bool:
    """Whether somebody outside cancels the current task; not so when the code it runs raised by itself (P41)."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def copy_of(value: Any) -> Any:
    """A copy of a JSON value, a call, a result or a message that shares nothing changeable with it; anything else is
    given back as it is."""
    if is_object(value):
        # Arguments are mostly flat; this is asked several times for each call.
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
    """Awaits a coroutine and can end it even if it swallows its cancellation (P35).

    Once `is_killed` says so, the next cancellation closes the coroutine: it gets `GeneratorExit`, its `finally` blocks
    run up to their first await, and nobody drives it any more. No task is left behind.
    """

    def __init__(
        self, work: Coroutine[Any, Any, T], is_killed: Callable[[], bool], on_cancel: Callable[[], None] | None = None
    ) -> None:
        self._work = work
        self._is_killed = is_killed
        self._on_cancel = on_cancel

    def __await__(self) -> Generator[Any, None, T]:
        work = self._work
        go_on: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                awaited = go_on()
            except StopIteration as end:
                return end.value
            except (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                # Like `GeneratorExit`: here it would look as if somebody closed whoever awaits this.
                raise RuntimeError(f"it raised {error_message(error)}") from error
            try:
                yield awaited
            except asyncio.CancelledError as error:
                if self._is_killed():
                    _close(work)
                    raise
                if self._on_cancel is not None:
                    self._on_cancel()
                go_on = partial(work.throw, error)
            except Exception as error:
                # What was awaited failed: it is for the coroutine to handle.
                go_on = partial(work.throw, error)
            else:
                go_on = partial(work.send, None)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _answer(function: Callable[..., object], questions: tuple[Any, ...]) -> object:
    answer = function(*map(copy_of, questions))
    return await answer if inspect.isawaitable(answer) else answer


def _never() -> bool:
    return False


def _close(work: Coroutine[Any, Any, Any]) -> None:
    # A coroutine that awaits while it is closed raises RuntimeError; it is not driven any further either way.
    with contextlib.suppress(Exception):
        work.close()
