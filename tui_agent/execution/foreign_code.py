"""Calls into code that is not ours: tools, hooks, guardrails, predicates. What they do wrong becomes a value here.

The only place that catches `Exception`. A callee that raises `CancelledError` by itself hurts nobody (C25, P41); a
real cancellation always passes through.
"""

import asyncio
import contextlib
import inspect
import os
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from tui_agent.protocol.messages import is_array, is_object

T = TypeVar("T")
V = TypeVar("V")

_ENGINE = os.path.dirname(__file__) + os.sep


@dataclass(frozen=True, slots=True)
class Crash:
    """Foreign code raised, or did not answer in time."""

    error: BaseException
    timed_out: bool = False

    @property
    def text(self) -> str:
        """What it said, or the kind of error where it said nothing (S2-20)."""
        if isinstance(self.error, asyncio.CancelledError):
            return "it cancelled itself"
        return str(self.error) or type(self.error).__name__

    @property
    def trace(self) -> str:
        """The traceback, without the frames of the engine above the foreign code."""
        frames = self.error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_ENGINE) and frames.tb_next:
            frames = frames.tb_next
        return "".join(traceback.format_exception(type(self.error), self.error, frames))


async def contained(work: Awaitable[T]) -> T | Crash:
    """What `work` gives, or how it failed."""
    try:
        return await work
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except Exception as error:
        return Crash(error)


async def asked(function: Callable[[T], object], question: T, timeout: float | None) -> object:
    """The answer of a plain or async function to one question, or a `Crash`.

    Args:
        function: may answer at once or with an awaitable.
        question: its only argument.
        timeout: seconds until it counts as failed; None: no limit.
    """
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            answer = function(question)
            return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        return Crash(error)
    except Exception as error:
        return Crash(error, timed_out=limit.expired())


def careful(predicate: Callable[..., V], *arguments: Any, otherwise: V) -> V:
    """What a plain function says, or `otherwise` if it raises (C3)."""
    try:
        return predicate(*arguments)
    except Exception:
        return otherwise


def is_being_cancelled() -> bool:
    """Whether somebody outside cancels the current task; not so when the code it runs raised by itself (P41)."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def copy_of(value: Any) -> Any:
    """A copy of a JSON value that shares nothing changeable with it: foreign code may write into what it is given."""
    if is_object(value):
        return {key: copy_of(inner) for key, inner in value.items()}
    if is_array(value):
        return [copy_of(inner) for inner in value]
    return value


class Killable(Generic[T]):
    """Awaits a coroutine and can end it even if it swallows its cancellation (P35).

    Once `is_killed` says so, the next cancellation closes the coroutine: it gets `GeneratorExit`, its `finally` blocks
    run up to their first await, and nobody drives it any more. No task is left behind.
    """

    def __init__(self, work: Coroutine[Any, Any, T], is_killed: Callable[[], bool]) -> None:
        self._work = work
        self._is_killed = is_killed

    def __await__(self) -> Generator[Any, None, T]:
        work = self._work
        go_on: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                awaited = go_on()
            except StopIteration as end:
                return end.value
            try:
                yield awaited
            except asyncio.CancelledError as error:
                if self._is_killed():
                    _close(work)
                    raise
                go_on = partial(work.throw, error)
            else:
                go_on = partial(work.send, None)


def _close(work: Coroutine[Any, Any, Any]) -> None:
    # A coroutine that awaits while it is closed raises RuntimeError; it is not driven any further either way.
    with contextlib.suppress(Exception):
        work.close()
