"""Findings of the newest review: a fold behind their page."""

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import RunEnded, RunStarted, SessionSwitched, ToolEnded
from tui_agent.protocol.facts.finding_facts import Finding, findings_of, in_order
from tui_agent.protocol.messages import FrozenModel

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset((ToolEnded, RunStarted, RunEnded, SessionSwitched))
"""Events that may change the findings."""


class ReviewFindings:
    """The findings of the last run that reported some, the worst first. Changed by `apply` only."""

    def __init__(self) -> None:
        self.items: tuple[Finding, ...] | None = None
        """The findings; None if no review has ended."""
        self._of_run: tuple[Finding, ...] | None = None

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return True if a run has ended that reported findings."""
        match envelope.event:
            case ToolEnded() as event:
                if (found := findings_of(event)) is not None:
                    self._of_run = (*(self._of_run or ()), *found)
                    self.items = in_order(self._of_run)
            case RunStarted() if not envelope.origin.depth:
                self._of_run = None
            case RunEnded() if not envelope.origin.depth:
                has_reported, self._of_run = self._of_run is not None, None
                return has_reported
            case SessionSwitched():
                self.items = self._of_run = None
            case _:
                pass
        return False
