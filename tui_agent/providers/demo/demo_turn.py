"""What the offline model can do next: say something, make calls, or both, and what becomes of the calls' results."""

from dataclasses import dataclass, field, replace
from typing import Protocol

from tui_agent.protocol.messages import JsonObject

from .demo_transcript import Outcome


@dataclass(frozen=True, slots=True)
class DemoCall:
    """A tool call."""

    name: str
    arguments: JsonObject


class Goal(Protocol):
    """Something the offline model works on, at one moment. Goals never change; they give their successor."""

    def proceed(self, outcomes: tuple[Outcome, ...]) -> "DemoTurn":
        """What comes after the calls it waited for."""
        ...

    def skip(self) -> "DemoTurn":
        """What comes if the calls it is about to make are left out."""
        ...


@dataclass(frozen=True, slots=True)
class DemoTurn:
    """One answer, or a part of one."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()
    waits: Goal | None = None
    """Who takes the results; set exactly when there are calls."""
    thinking: str = ""
    fresh_sample: bool = False
    """The sample project must be copied anew before the calls run."""
    tools: frozenset[str] = field(default_factory=frozenset[str])
    """Tools without which this cannot be done."""

    def after(self, text: str) -> "DemoTurn":
        """The same with something said first."""
        return replace(self, text="\n\n".join(part for part in (text, self.text) if part))
