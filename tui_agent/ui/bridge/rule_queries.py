"""Rules and tools of the session as the pages show them, and changes of the session's own rules."""

from dataclasses import dataclass
from typing import Protocol

from tui_agent.protocol.permissions import Verdict


@dataclass(frozen=True, slots=True)
class RuleFact:
    """One rule in force."""

    verdict: Verdict
    text: str
    """Rule as written, without the verdict."""
    origin: str
    """File and line, option, or grant."""
    is_session: bool = False
    """True if it ends with the session and can be removed."""

    @property
    def cited(self) -> str:
        """The rule with its origin, as decisions name it."""
        return f"{self.text} ({self.origin})" if self.origin else self.text


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """All rules in the order in which they are checked, and what else decides."""

    rules: tuple[RuleFact, ...] = ()
    strictest_wins: bool = False
    """True if the strictest rule of a list decides; False: the first that matches."""
    sandbox: str = ""
    """Place where shell commands run, and why no better place works; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class ToolFact:
    """One tool that the model can call."""

    name: str
    description: str
    """First line of its description."""
    is_read_only: bool
    """True if no call of it changes anything."""
    is_parallel: bool
    """True if its calls run beside others."""
    rules: tuple[str, ...] = ()
    """Rules that apply to some of its calls, each with its verdict."""


class RuleService(Protocol):
    """The permission policy and the tools, as far as pages show and change them."""

    def in_force(self) -> RulesInForce:
        """Return the rules in force."""
        ...

    def add(self, rule: str, /) -> str:
        """Add a rule such as `allow bash(make:*)` for the session; return why that is impossible, or an empty text."""
        ...

    def remove(self, verdict: Verdict, text: str, /) -> bool:
        """Remove a rule of the session; False if the session has no such rule."""
        ...

    def tools(self) -> tuple[ToolFact, ...]:
        """Return the tools that the model can call."""
        ...


class RuleQueries:
    """Asks for rules and tools; without a service there are none."""

    def __init__(self, service: RuleService | None = None) -> None:
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
