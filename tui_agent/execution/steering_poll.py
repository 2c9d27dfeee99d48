"""The one owner of polling for steering while calls run (C8, P25): one poll at a time, and none once one found."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import UserMessage

from .foreign_code import Crash, contained
from .outcomes import SkipReason

SteeringGetter = Callable[[], Awaitable[Sequence[UserMessage] | None] | Sequence[UserMessage] | None]
"""Plain or async; hands over the messages that wait, and forgets them. Empty or None: there are none."""


class SteeringPoll:
    """Takes waiting messages over, at most once a batch."""

    def __init__(self, getter: SteeringGetter | None, tell: Publisher) -> None:
        self.found: tuple[UserMessage, ...] = ()
        """The messages taken over; they belong behind the results of the batch (P02)."""
        self._getter = getter
        self._tell = tell
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
        messages = await contained(_fetched(getter))
        if isinstance(messages, Crash):
            text = f"Waiting messages could not be fetched ({messages.text}). They wait on; the calls go on."
            self._tell.publish(Warned(code="steering_failed", text=text))
        else:
            self.found = messages


async def _fetched(getter: SteeringGetter) -> tuple[UserMessage, ...]:
    answer = getter()
    messages = tuple((await answer if isinstance(answer, Awaitable) else answer) or ())
    if not all(map(_is_message, messages)):
        raise TypeError(f"user messages were expected, got {messages[0]!r}")
    return messages


def _is_message(value: object) -> bool:
    return isinstance(value, UserMessage)
