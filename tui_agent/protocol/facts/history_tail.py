"""End of a resumed session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.envelope import Envelope


@dataclass(frozen=True, slots=True)
class HistoryTail:
    """The last events of a resumed session, shown until all of them are read."""

    events: Sequence[Envelope]
    calls_before: int
    """Calls before the first of these events."""
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers of those of them that these events resume, by call id."""
