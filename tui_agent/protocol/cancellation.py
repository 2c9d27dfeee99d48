"""A tree of cancellation tokens: run → step → call → child run (P33).

The token is for co-operative work (processes, threads); task cancellation is for everything else.
"""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable

from .callbacks import log_failure, name_of, notify
from .errors import OperationCancelledError

PROGRAM_QUIT = "the program was left"
"""How a reason begins where nobody took anything back: the program ends, and the session may go on later."""

NOT_BEGUN = "not_begun"
"""Error kind of a call that had not started when the program was left: it is taken up when the session goes on."""

ASKED_AGAIN = "asked_again"
"""Error kind of the end of a call that waited for a person when the program ended: nothing came of it, and the question
comes again."""

_ADDING = threading.RLock()
"""Held while a callback is added and while callbacks are taken, so that no thread adds one that is never called. One
lock for all tokens, because most never have a callback; re-entrant, because a signal handler may cancel."""


class CancellationToken:
    """Set once, with a reason; setting it sets every descendant and nothing else (S0-30).

    Duck-compatible with `asyncio.Event`: `is_set()` and `await wait()` (C54). `is_set`, `raise_if_set` and `on_cancel`
    may be called from any thread; everything else belongs to the event loop.
    """

    def __init__(self, parent: "CancellationToken | None" = None) -> None:
        self._is_set = False
        # Every call has a token, and hardly any has somebody who waits or is below it.
        self._event: asyncio.Event | None = None
        self._children: weakref.WeakSet[CancellationToken] | None = None
        self._callbacks: list[Callable[[], None]] = []
        self.parent = parent
        """The token whose cancellation reaches this one."""
        self.reason = ""
        """Why it was cancelled; empty until then."""
        if parent is not None:
            parent.adopt(self)

    def adopt(self, child: "CancellationToken") -> None:
        """Links `child`: it is cancelled when this token is, at once if it already is."""
        if self._children is None:
            self._children = weakref.WeakSet()
        self._children.add(child)
        if self._is_set:
            child.cancel(self.reason)

    def child(self) -> "CancellationToken":
        """A fresh token below this one."""
        return CancellationToken(self)

    def cancel(self, reason: str = "cancelled") -> None:
        """Sets this token and its descendants; later calls change nothing."""
        with _ADDING:
            if self._is_set:
                return
            self.reason = reason
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        if self._event is not None:
            self._event.set()
        for child in list(self._children or ()):
            child.cancel(reason)
        for callback in callbacks:
            crash = notify(callback)
            if crash is not None:
                log_failure(name_of(callback), crash)

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` on the event loop once this token is cancelled; at once, here, if it already is.

        If a callback raises, the error is logged, the other callbacks are called, and the run is aborted all the same.

        Returns:
            A function that forgets the callback again.
        """
        with _ADDING:
            is_late = self._is_set
            if not is_late:
                self._callbacks.append(callback)
        if is_late:
            callback()
            return _nothing_to_forget

        def forget() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return forget

    def is_set(self) -> bool:
        """Whether it was cancelled."""
        return self._is_set

    async def wait(self) -> None:
        """Returns once it is cancelled."""
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()

    def raise_if_set(self) -> None:
        """Raises `OperationCancelledError` if it was cancelled."""
        if self._is_set:
            raise OperationCancelledError(self.reason)


def _nothing_to_forget() -> None:
    """Stands for a callback that was already called."""
