"""Calls of tools, hooks, guardrails and policies. Whatever they raise becomes a `Crash` value, so that only their own
call fails. They run in this process and are trusted like the rest of it (`docs/decisions/trusted-code.md`).

The engine catches `Exception` only here, around a call's whole pipeline (`ToolExecutor`), and in
`protocol/callbacks.py`, which calls listeners. A callee may raise `CancelledError` itself; a real cancellation always
passes through.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from types import NoneType
from typing import Any, TypeVar

from tui_agent.protocol.callbacks import Crash
from tui_agent.protocol.messages import is_array, is_object

_SCALARS = frozenset((str, int, float, bool, NoneType))

T = TypeVar("T")
V = TypeVar("V")


def kind_of(crash: Crash) -> str:
    """Return the type name of the error."""
    return type(crash.error).__name__


async def contained(work: Awaitable[T]) -> T | Crash:
    """Return the result of `work`, or a `Crash`."""
    try:
        return await work
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except (Exception, SystemExit) as error:
        # A tool that calls a command line parser must not end the program.
        return Crash(error)


async def asked(function: Callable[..., object], *questions: Any, timeout: float | None) -> object:
    """Return the answer of a plain or async function, or a `Crash`.

    Args:
        function: returns the answer or an awaitable.
        questions: its arguments.
        timeout: seconds until it is cancelled and counts as failed; None: no limit.
    """
    limit: asyncio.Timeout | None = None
    try:
        if timeout is None:
            given = function(*questions)
            return await given if inspect.isawaitable(given) else given
        async with asyncio.timeout(timeout) as limit:
            given = function(*questions)
            return await given if inspect.isawaitable(given) else given
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except (Exception, SystemExit) as error:
        return Crash(error, timed_out=limit is not None and limit.expired())


def try_call(function: Callable[..., V], *arguments: Any) -> V | Crash:
    """Return the result of a plain function, or a `Crash`."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        return Crash(error)


def is_being_cancelled() -> bool:
    """Return True if the current task is being cancelled, as opposed to code in it raising `CancelledError`."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def copy_of(value: Any) -> Any:
    """Return a deep copy of a JSON value, for code that may change its arguments while others still use them."""
    if is_object(value):
        return {key: inner if type(inner) in _SCALARS else copy_of(inner) for key, inner in value.items()}
    return [inner if type(inner) in _SCALARS else copy_of(inner) for inner in value] if is_array(value) else value
