"""Without superseded events, every part of the screen ends up the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.played_sessions import FULL_SESSION, PlayedRun, play, played_sessions
from tests.support.examples import examples
from tests.support.protocol_strategies import of_model
from tests.support.table import table
from tests.ui.row_kit import FoldWithLedger
from tests.ui.test_any_order import TOLD
from tui_agent.protocol.envelope import Envelope, Origin, event_classes
from tui_agent.protocol.events import MessageDelta, RequestBuilt, StatusChanged
from tui_agent.protocol.past_session import LAST_COUNTS, drop_superseded
from tui_agent.ui.state import call_ledger, queued_messages, run_times
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.transcript.transcript_builder import HANDLED_EVENTS
from tui_agent.ui.transcript.transcript_model import Transcript


@dataclass
class Screen:
    """The folds behind the screen."""

    transcript: Transcript = field(default_factory=Transcript)
    status: SessionStatus = field(default_factory=SessionStatus)

    def shows(self, envelopes: Sequence[Envelope]) -> "Screen":
        fold = FoldWithLedger(self.transcript)
        for envelope in envelopes:
            for part in (fold, self.status):
                part.apply(envelope)
        fold.flush()
        self.status.since = 0.0
        return self

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """All drawn rows."""
        return [(type(part), part.gap, part.call_ids, part.layout(60)) for part in self.transcript.parts]


def assert_looks_the_same(past: Sequence[Envelope]) -> None:
    whole, short = Screen().shows(past), Screen().shows(list(drop_superseded(past)))
    assert short.rows == whole.rows
    assert short.status == whole.status


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(played_sessions, st.data())
def test_any_past_that_ends_anywhere_looks_the_same(script: tuple[PlayedRun, ...], data: st.DataObject) -> None:
    past = play(script)
    assert_looks_the_same(past[: data.draw(st.integers(0, len(past)))])


@given(st.integers(0, len(TOLD)))
def test_a_past_of_all_kinds_of_events_looks_the_same(size: int) -> None:
    assert_looks_the_same(TOLD[:size])


@table("part", [call_ledger, run_times, queued_messages])
def test_the_other_parts_hear_nothing_of_what_is_left_out(part: ModuleType) -> None:
    assert not part.HANDLED_EVENTS & (LAST_COUNTS | {MessageDelta})


def test_states_that_were_left_and_calls_being_written_are_left_out() -> None:
    past = play(FULL_SESSION)

    kept = list(drop_superseded(past))

    assert sum(isinstance(one.event, StatusChanged | RequestBuilt) for one in kept) <= 2
    assert not any(isinstance(one.event, MessageDelta) and one.event.kind == "toolcall" for one in kept)
    assert [one for one in past if one in kept] == kept


@table("kind", sorted(set(event_classes().values()) - HANDLED_EVENTS, key=lambda kind: kind.__name__))
def test_what_the_conversation_does_not_hear_would_change_nothing_in_it(kind: type) -> None:
    @settings(max_examples=5)
    @given(of_model(kind))
    def changes_nothing(event: object) -> None:
        transcript = Transcript()
        fold = FoldWithLedger(transcript)
        for envelope in TOLD:
            fold.apply(envelope)
        before = [(part, part.text) for part in transcript.parts]
        fold.apply(Envelope(event, 1_000, 0, 0.0, Origin()))  # pyright: ignore[reportArgumentType]
        assert [(part, part.text) for part in transcript.parts] == before

    changes_nothing()
