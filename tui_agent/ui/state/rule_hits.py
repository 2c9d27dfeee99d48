"""Calls by the rule that decided them: the fold behind the permissions page."""

from dataclasses import dataclass, field

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import PermissionDecided
from tui_agent.protocol.messages import FrozenModel

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset((PermissionDecided,))
"""Events that may change the hits."""


@dataclass(slots=True)
class RuleHits:
    """Calls that each rule decided in this session. Changed by `apply` only."""

    total: int = 0
    """Number of decisions."""
    _calls: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        event = envelope.event
        if not isinstance(event, PermissionDecided):
            return False
        self.total += 1
        # A command is decided part by part; each rule behind a part has decided something.
        for key in (event.rule or event.source, *(part.rule for part in event.parts if part.rule)):
            self._calls.setdefault(key, {})[event.call_id] = None
        return True

    def of(self, key: str) -> tuple[str, ...]:
        """Return the ids of the calls that a rule decided, oldest first.

        Args:
            key: the rule with its origin, or for calls without a rule the source of the decision, such as `mode`.
        """
        return tuple(self._calls.get(key, ()))
