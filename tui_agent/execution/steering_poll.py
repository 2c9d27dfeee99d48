"""The one owner of polling for steering while calls run (C8, P25): one poll at a time, and none once one found."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import UserMessage

from .foreign_code import Crash, asked, attempted, in_time
from .outcomes import SkipReason

SteeringGetter = Callable[[], Awaitable[Sequence[UserMessage] | None] | Sequence[UserMessage] | None]
"""Plain or async; hands over the messages that wait, and forgets them. Empty or None: there are none."""


class SteeringPoll:
    """Takes waiting messages over, at most once a batch."""

    def __init__(self, getter: SteeringGetter | None, tell: Publisher, run: CancellationToken, grace: float) -> None:
        """
        Args:
            getter: asked for messages.
            tell: hears if that fails.
            run: once it is cancelled, a getter has only `grace` seconds left: it must not hold an abort (P44).
            grace: seconds.
        """
        self.found: tuple[UserMessage, ...] = ()
        """The messages taken over; they belong behind the results of the batch (P02)."""
        self._getter = getter
        self._tell = tell
        self._run = run
        self._grace = grace
        self._turn = asyncio.Lock()

    async def poll(self) -> bool:
        """Whether messages were found, now or before. A getter that raises is told and counts as empty (P21)."""
        if self._getter is None or self.found:
            return bool(self.found)
        async with self._turn:
            if not self.found:
                await self._take_over(self._getter)
        return bool(self.found)

    @property
    def reason(self) -> SkipReason:
        """Whom the text of a skipped call names: never the user for a system's notice (C10, P20)."""
        return "notice" if all(message.kind == "notice" for message in self.found) else "steering"

    async def _take_over(self, getter: SteeringGetter) -> None:
        try:
            answer = await in_time(asked(getter, timeout=None), self._run, self._grace)
        except TimeoutError:
            return
        found = _messages_of(answer)
        if isinstance(found, str):
            text = f"Waiting messages could not be fetched ({found}). They wait on; the calls go on."
            self._tell.publish(Warned(code="steering_failed", text=text))
        else:
            self.found = found


def _messages_of(answer: object) -> tuple[UserMessage, ...] | str:
    """The messages, or what is wrong."""
    if isinstance(answer, Crash):
        return answer.text
    given = attempted(partial(_as_tuple, answer))
    if isinstance(given, Crash) or not all(isinstance(message, UserMessage) for message in given):
        return f"user messages were expected, got a {type(answer).__name__}"
    return cast(tuple[UserMessage, ...], given)


def _as_tuple(answer: Any) -> tuple[object, ...]:
    return tuple(answer or ())
