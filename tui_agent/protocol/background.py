"""Work beside a run or in threads of its own: services, functions of tools, and imports.

An error ends a service, never the run or the program.
"""

import asyncio
import contextlib
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeGuard, TypeVar, cast

from .errors import TuiAgentError

T = TypeVar("T")

_LONGEST_REASON = 300
_LOG = logging.getLogger(__name__)


async def run_service(service: str, work: Awaitable[T], failed: Callable[[str], object] | None = None) -> T | None:
    """Run a service or an optional step and return its result; on an error report it and return None.

    Errors other than `TuiAgentError` are bugs and are logged with their traceback. `failed` gets the reason, one line
    without a full stop. A cancellation passes through.
    """
    try:
        return await work
    except Exception as error:
        if not isinstance(error, TuiAgentError):
            _LOG.error("%s failed", service, exc_info=error)
        if failed is not None:
            failed(reason_of(error))
        return None


def reason_of(error: Exception) -> str:
    """Return the reason of an error in one line; of a group, that of its first error."""
    error = first_error(error)
    if isinstance(error, TuiAgentError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__


def first_error(error: Exception) -> Exception:
    """Return the first error of a group, however deeply nested; another error as it is."""
    return first_error(error.exceptions[0]) if _is_group(error) else error


def _is_group(error: Exception) -> TypeGuard[ExceptionGroup[Exception]]:
    return isinstance(error, ExceptionGroup)


IMPORTING = threading.RLock()
"""Held by a thread while it imports parts of the engine that the first screen does not need."""


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a new daemon thread and return its result.

    If the caller is cancelled, it does not wait: Python cannot stop a thread, so `work` continues and its result is
    dropped.

    Raises:
        BaseException: the exception that `work` raised.
        CancelledError: the caller was cancelled.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def deliver(value: T | None, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((value, error))
        # Or Python would warn that it was never awaited.
        elif inspect.iscoroutine(value):
            value.close()

    def body() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = work()
        except BaseException as caught:
            error = caught
        # A closed loop has no caller left.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, value, error)

    # The function sees the context variables of its caller, as an async one does.
    context = contextvars.copy_context()
    # A pool would fill up with threads that hang, and the interpreter would wait for its threads at exit.
    threading.Thread(target=context.run, args=(body,), name="tool-function", daemon=True).start()
    value, error = await ended
    if error is not None:
        raise error
    return cast(T, value)


def on_loop(function: Callable[..., T], otherwise: T) -> Callable[..., T]:
    """Return a function for other threads that runs `function` on the current loop and waits for its result.

    The result is `otherwise` if `function` raises or the loop is closed. Called on the loop itself it never returns.
    """
    loop = asyncio.get_running_loop()

    def ask(*arguments: object) -> T:
        answers: list[T] = []
        answered = threading.Event()

        def answer() -> None:
            try:
                answers.append(function(*arguments))
            finally:
                answered.set()

        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(answer)
            answered.wait()
        return answers[0] if answers else otherwise

    return ask


async def run_shielded_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread and return its result; wait for its end, however often the caller is cancelled meanwhile.

    Raises:
        BaseException: the exception that `work` raised.
        CancelledError: the caller was cancelled; `work` has finished all the same, and its result or error is dropped.
    """
    # A new thread: all threads of the shared pool may be waiting for this work.
    thread = ThreadPoolExecutor(1, thread_name_prefix="tool-work")
    waiting = asyncio.wrap_future(thread.submit(work))
    thread.shutdown(wait=False)
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        waiting.exception()  # Retrieved, or asyncio would log it as lost.
        raise cancelled
    return waiting.result()
