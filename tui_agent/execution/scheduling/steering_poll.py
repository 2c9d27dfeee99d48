"""Polling for steering messages while calls run: one poll at a time, and none after one that found messages."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias, cast

from tui_agent.execution.contained_calls import Crash, asked
from tui_agent.execution.json_coercion import replace_lone_surrogates
from tui_agent.execution.outcomes import SkipReason
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import UserMessage, user_message
from tui_agent.protocol.value_checks import shown_value

SteeringAnswer: TypeAlias = str | UserMessage | Iterable[str | UserMessage] | None
"""One message or several, each a text or a `UserMessage`; None, an empty list and blank text mean no message."""

SteeringGetter = Callable[[], SteeringAnswer | Awaitable[SteeringAnswer]]
"""Plain or async; returns the waiting messages and forgets them."""


class SteeringPoll:
    """Poller that receives waiting messages, at most once a batch."""

    def __init__(
        self, getter: SteeringGetter | None, publisher: Publisher, run: CancellationToken, grace: float
    ) -> None:
        """
        Args:
            getter: returns waiting messages.
            publisher: publishes a warning if the getter fails.
            run: token of the run; once it is cancelled, the getter has `grace` seconds left, so that it cannot delay
                the cancellation.
            grace: seconds.
        """
        self.found: tuple[UserMessage, ...] = ()
        """Messages received; they belong after the results of the batch."""
        self._getter = getter
        self._publisher = publisher
        self._run = run
        self._grace = grace
        self._turn = asyncio.Lock()

    async def poll(self) -> bool:
        """Return True if messages were found, now or before.

        If the getter raises, no message counts as found; anything in its answer that is not a message is dropped. A
        warning reports both.
        """
        if self._getter is None or self.found:
            return bool(self.found)
        async with self._turn:
            if not self.found:
                await self._receive(self._getter)
        return bool(self.found)

    @property
    def reason(self) -> SkipReason:
        """Reason for skipped calls: their text must not attribute a system notice to the user."""
        return "notice" if all(message.kind == "notice" for message in self.found) else "steering"

    async def _receive(self, getter: SteeringGetter) -> None:
        try:
            answer = await self._run.within_grace(asked(getter, timeout=None), self._grace)
        except TimeoutError:
            return
        if isinstance(answer, Crash):
            text = f"Could not read queued messages ({answer.text}). They stay queued; running tools continue."
            self._publisher.publish(Warned(code="steering_failed", text=text))
            return
        self.found, wrong = _messages_of(answer)
        if wrong:
            text = f"Steering must be texts or user messages, got {wrong}. It was dropped; running tools continue."
            self._publisher.publish(Warned(code="steering_failed", text=text))


def _messages_of(answer: object) -> tuple[tuple[UserMessage, ...], str]:
    """Return the messages, and the first item of the answer that is not one, in words."""
    found: list[UserMessage] = []
    wrong = ""
    # Text, and the dict that is a message in other libraries, are iterable but count as one item.
    is_one = isinstance(answer, str | bytes | Mapping | UserMessage) or not isinstance(answer, Iterable)
    one = (cast(object, answer),)
    for item in one if is_one else cast(Iterable[object], answer):
        if isinstance(item, UserMessage):
            found.append(item)
        elif isinstance(item, str):
            # A blank message cannot be sent.
            found += [user_message(replace_lone_surrogates(item), "steer")] if item.strip() else []
        elif item is not None:
            wrong = wrong or shown_value(item)
    return tuple(found), wrong
