"""Sessions of events, and comparison of a journal's conversation with the agent's."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.support.transcript_checks import validate_history
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.messages import Message
from tui_agent.session import StoredSession
from tui_agent.session.history_fold import messages_of


def stored(envelopes: Sequence[Envelope]) -> StoredSession:
    """Return the session whose journal has these events."""
    return StoredSession("s", None, Path("/"), tuple(envelopes), resumed=True)


def same_conversation(told: Iterable[Envelope], messages: Sequence[Message]) -> None:
    """Assert that the events, saved and read again, give these messages."""
    lines = [envelope.to_json() for envelope in told]
    read = [envelope for line in lines if (envelope := read_envelope(line)) is not None]
    folded = messages_of(read)
    validate_history(folded)
    assert list(folded) == list(messages)
