"""Isolated calls of listeners: an exception reaches neither the caller nor the next listener.

It becomes a value, which the caller reports once for each listener.
"""

import asyncio
import contextlib
import inspect
import logging
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_PACKAGE = os.path.dirname(os.path.dirname(__file__))

_ENGINE = tuple(os.path.join(_PACKAGE, room, "") for room in ("protocol", "context", "execution"))


@dataclass(frozen=True, slots=True)
class Crash:
    """Failure of a callback: it raised, or did not return in time."""

    error: BaseException
    timed_out: bool = False

    @property
    def text(self) -> str:
        """Text of the error, or its type if it has no text (S2-20)."""
        return error_message(self.error)

    @property
    def trace(self) -> str:
        """Traceback without the engine's frames above the callback."""
        frames = self.error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_ENGINE) and frames.tb_next:
            frames = frames.tb_next
        return "".join(traceback.format_exception(type(self.error), self.error, frames))


FailureReport = Callable[[str, Crash], None]
"""Function that takes a listener's name and its failure; must not raise."""


def notify(callback: Callable[..., object], *facts: Any) -> Crash | None:
    """Call `callback` and return its failure; None if it succeeded. Its result is dropped.

    An `async` function is a failure, too: nothing would await it. `KeyboardInterrupt`, `SystemExit` and
    `CancelledError` concern the whole program and pass through.
    """
    try:
        answer = callback(*facts)
    except Exception as error:
        return Crash(error)
    if inspect.iscoroutine(answer):
        # Or Python would warn that it was never awaited.
        answer.close()
        return Crash(TypeError("a listener must be a plain function, and this one is async"))
    return None


class Listener(Generic[T]):
    """One registration of a callback. Compared by identity: registering a callback twice makes two of them."""

    def __init__(self, callback: Callable[[T], object]) -> None:
        self._callback = callback
        self._has_failed = False

    def notify(self, fact: T) -> Crash | None:
        """Call the callback and return its first failure; None for later ones, so that each listener is reported once.

        A listener that failed is still called the next time.
        """
        crash = notify(self._callback, fact)
        if crash is None or self._has_failed:
            return None
        self._has_failed = True
        return crash

    @property
    def name(self) -> str:
        """The callback's module and name, for a report."""
        return name_of(self._callback)


def log_failure(name: str, crash: Crash) -> None:
    """Log a listener's failure with its traceback if no bus can report it. Without log handlers it goes to stderr."""
    _LOG.warning("%s\n%s", failure_text(name, crash), crash.trace)


def failure_text(name: str, crash: Crash) -> str:
    """Return the sentences that report a listener's failure to the user."""
    kind, text = type(crash.error).__name__, crash.text
    cause = kind if text == kind else f"{kind}: {text}"
    return f"The listener {name} failed ({cause}). The work continues, and other listeners were called."


def name_of(callback: Callable[..., object]) -> str:
    """Return a callback's module and name, or those of its type if it has none."""
    with contextlib.suppress(Exception):
        named: Any = callback if hasattr(callback, "__qualname__") else type(callback)
        return f"{named.__module__}.{named.__qualname__}"
    return type(callback).__name__


def error_message(error: BaseException) -> str:
    """Return the text of an error; of a group, the texts of its errors."""
    if isinstance(error, asyncio.CancelledError):
        return "it cancelled itself"
    if isinstance(error, SystemExit):
        return f"it tried to end the process (exit code {error.code})"
    if isinstance(error, BaseExceptionGroup):
        # `isinstance` drops the type argument of the group.
        group = cast(BaseExceptionGroup[BaseException], error)
        return "; ".join(dict.fromkeys(map(error_message, group.exceptions)))
    with contextlib.suppress(Exception):
        return str(error) or type(error).__name__
    return type(error).__name__
