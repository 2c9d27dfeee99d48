"""A bus whose events are judged when its test is over: the only one that tests of the engine make."""

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar

import pytest

from tests.support.transcript_checks import validate_events
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import AgentEvent


class ValidatingBus(EventBus):
    """Remembers each event, and its line as it was told; fixture `judged` asks for the judgement."""

    made: ClassVar[list["ValidatingBus"]] = []
    """Those of the test that runs now, until they were judged."""

    def __init__(self, options: ExecutionOptions | None = None, *, whole: bool = True) -> None:
        """
        Args:
            options: those of the engine that tells; they say what may come in which order.
            whole: whether all that an engine tells is told here; no where only one stage or one part of it runs.
        """
        super().__init__()
        self.options = options or ExecutionOptions()
        self.unanswered: Callable[[], Collection[str]] = tuple
        """Gives the calls that need no result message when all is over; see `validate_events`."""
        self._whole = whole
        self._told: list[tuple[Envelope, str]] = []
        self._ear = self.subscribe(merge=False)
        self.made.append(self)

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        super().publish(event, origin)
        self._told += [(envelope, envelope.to_json()) for envelope in self._ear.drain()]

    def judge(self) -> None:
        """Every event has its number, and is what it was when it was told; together they keep every invariant."""
        if self in self.made:
            self.made.remove(self)
        assert [envelope.seq for envelope, _ in self._told] == list(range(1, len(self._told) + 1))
        for envelope, line in self._told:
            assert envelope.to_json() == line, f"{envelope.type} was changed after it was told"
        if self._whole:
            options = self.options
            validate_events(
                [envelope for envelope, _ in self._told],
                ordered=options.message_events == "ordered",
                balanced=options.balanced_start or options.start_unknown or options.start_events == "upfront",
                unanswered=self.unanswered(),
            )


@pytest.fixture(autouse=True)
def judged() -> Iterator[None]:
    """After every test, what its engines told is judged."""
    ValidatingBus.made.clear()
    yield
    for bus in list(ValidatingBus.made):
        bus.judge()
