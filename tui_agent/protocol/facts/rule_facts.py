"""Rules and tools of a session."""

from dataclasses import dataclass

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
    folders: tuple[str, ...] = ()
    """Folders that count as part of the workspace."""


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
