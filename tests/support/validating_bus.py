"""An event bus that validates its events when its test ends; tests of the engine make no other."""

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar

import pytest

from tests.support.transcript_checks import validate_events
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import AgentEvent


class ValidatingBus(EventBus):
    """Bus that records each event with its serialised line; the fixture `judged` validates them."""

    made: ClassVar[list["ValidatingBus"]] = []
    """Buses of the current test that are not validated yet."""

    def __init__(self, options: ExecutionOptions | None = None, *, whole: bool = True) -> None:
        """
        Args:
            options: options of the engine that publishes; they decide which orders are valid.
            whole: True if this bus receives everything an engine publishes, False if only a stage or a part runs.
        """
        super().__init__()
        self.options = options or ExecutionOptions()
        self.unanswered: Callable[[], Collection[str]] = tuple
        """Callable that returns the calls that need no result message at the end; see `validate_events`."""
        self._whole = whole
        self._told: list[tuple[Envelope, str]] = []
        self._ear = self.subscribe(merge=False)
        self.made.append(self)

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        super().publish(event, origin)
        self._told += [(envelope, envelope.to_json()) for envelope in self._ear.drain()]

    def judge(self) -> None:
        """Check that events are numbered, did not change after publication, and keep every invariant."""
        if self in self.made:
            self.made.remove(self)
        assert [envelope.seq for envelope, _ in self._told] == list(range(1, len(self._told) + 1))
        for envelope, line in self._told:
            assert envelope.to_json() == line, f"{envelope.type} changed after its publication"
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
    """Validate the events of every bus after each test."""
    ValidatingBus.made.clear()
    yield
    for bus in list(ValidatingBus.made):
        bus.judge()
