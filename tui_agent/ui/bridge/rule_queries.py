"""Rules and tools of the session as the pages show them, and changes of the session's own rules."""

from typing import TYPE_CHECKING

from tui_agent.protocol.facts.rule_facts import RulesInForce, ToolFact
from tui_agent.protocol.permissions import Verdict

if TYPE_CHECKING:
    from tui_agent.workbench.session_rules import SessionRules


class RuleQueries:
    """Asks for rules and tools; without a service there are none."""

    def __init__(self, service: "SessionRules | None" = None) -> None:
        self._service = service

    def in_force(self) -> RulesInForce:
        """Return the rules in force."""
        return self._service.in_force() if self._service is not None else RulesInForce()

    def add(self, rule: str) -> str:
        """Add a rule for the session; return the reason if that is impossible, else an empty text."""
        return self._service.add(rule) if self._service is not None else "The session has no rules of its own yet."

    def remove(self, verdict: Verdict, text: str) -> bool:
        """Remove a rule of the session; False if the session has no such rule."""
        return self._service is not None and self._service.remove(verdict, text)

    def tools(self) -> tuple[ToolFact, ...]:
        """Return the tools that the model can call, with the rules that apply to them."""
        return self._service.tools() if self._service is not None else ()
