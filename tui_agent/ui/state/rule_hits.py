"""Calls by the rule that decided them: the fold behind the permissions page."""

from dataclasses import dataclass, field

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import PermissionDecided
from tui_agent.protocol.messages import FrozenModel
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset((PermissionDecided,))
"""Events that may change the hits."""
FLOOR_ASKS = "floor_asks"
"""Key of the calls that need an answer whatever the rules say, such as reads of private paths."""


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
        for key in (event.rule or _built_in(event), *(part.rule for part in event.parts if part.rule)):
            self._calls.setdefault(key, {})[event.call_id] = None
        return True

    def of(self, key: str) -> tuple[str, ...]:
        """Return the ids of the calls that a rule decided, oldest first.

        Args:
            key: the rule with its origin, or for calls without a rule `floor`, `FLOOR_ASKS` or the source of the
                decision, such as `mode`.
        """
        return tuple(self._calls.get(key, ()))


def _built_in(event: PermissionDecided) -> str:
    """Return the key of a decision without a rule."""
    if event.source != "floor":
        return event.source
    if event.decision == "ask":
        return FLOOR_ASKS
    return "mode" if event.reason.startswith(PLAN_MODE_DENIAL) else "floor"
