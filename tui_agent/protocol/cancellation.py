"""A tree of cancellation tokens: run → step → call → child run.

Tokens stop co-operative work (processes, threads); everything else is stopped by cancelling its task.
"""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .callbacks import log_failure, name_of, notify
from .errors import OperationCancelledError

T = TypeVar("T")

PROGRAM_QUIT = "the program exited"
"""Start of the reason if calls are cancelled because the program exits, not by the user; a resumed session runs
them."""

NOT_BEGUN = "not_begun"
"""Error kind of a call that had not started when the program exited: it runs when the session is resumed."""

ASKED_AGAIN = "asked_again"
"""Error kind of a call that waited for approval when the program exited: a resumed session asks again."""

_ADDING = threading.RLock()
"""Held while a callback is added and while `cancel` takes the callbacks: otherwise a thread could add one in between
that is never called. One lock for all tokens, because most never have a callback; re-entrant, because a signal handler
may cancel."""


class CancellationToken:
    """A flag that is set once, with a reason, together with all its descendants (S0-30).

    Has `is_set()` and `await wait()` like `asyncio.Event`. `is_set`, `raise_if_set` and `on_cancel` may be called from
    any thread, everything else on the event loop only.
    """

    def __init__(self, parent: "CancellationToken | None" = None) -> None:
        self._is_set = False
        # Created on first use: every call has a token, and hardly any has a waiter or a child.
        self._event: asyncio.Event | None = None
        self._children: weakref.WeakSet[CancellationToken] | None = None
        self._callbacks: list[Callable[[], None]] = []
        self.parent = parent
        """Token whose cancellation also cancels this one."""
        self.reason = ""
        """Reason of the cancellation; empty until then."""
        if parent is not None:
            parent.adopt(self)

    def adopt(self, child: "CancellationToken") -> None:
        """Link `child`: it is cancelled with this token, at once if this token already is."""
        if self._children is None:
            # Weak, because a run outlives thousands of calls.
            self._children = weakref.WeakSet()
        self._children.add(child)
        if self._is_set:
            child.cancel(self.reason)

    def child(self) -> "CancellationToken":
        """Return a new token that is cancelled with this one, but can be cancelled alone."""
        return CancellationToken(self)

    def cancel(self, reason: str = "cancelled") -> None:
        """Set this token and its descendants, and call their callbacks before returning; later calls change nothing."""
        with _ADDING:
            if self._is_set:
                return
            self.reason = reason
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        if self._event is not None:
            self._event.set()
        # A copy, because a callback may add a child.
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
            A function that removes the callback.
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
        """True if it was cancelled."""
        return self._is_set

    async def wait(self) -> None:
        """Wait until this token is cancelled; return at once if it is."""
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()

    async def within_grace(self, work: Awaitable[T], grace: float) -> T:
        """Return the result of `work`, which is cancelled `grace` seconds after this token was.

        Raises:
            TimeoutError: it was cancelled.
        """
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(None) as limit:
            forget = self.on_cancel(lambda: limit.reschedule(clock() + grace))
            try:
                return await work
            finally:
                forget()

    def raise_if_set(self) -> None:
        """Raise `OperationCancelledError` if it was cancelled."""
        if self._is_set:
            raise OperationCancelledError(self.reason)


def _nothing_to_forget() -> None:
    """Do nothing: the callback was already called."""
