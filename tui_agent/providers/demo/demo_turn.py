"""One turn of the offline model: text, calls, and the goal that receives the results of the calls."""

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
    """State of a task of the offline model. Goals are immutable and return their successor."""

    def proceed(self, outcomes: tuple[Outcome, ...]) -> "DemoTurn":
        """Return the turn after the results of its calls."""
        ...

    def skip(self) -> "DemoTurn":
        """Return the turn if its calls are skipped."""
        ...


@dataclass(frozen=True, slots=True)
class DemoTurn:
    """One answer, or a part of one."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()
    waits: Goal | None = None
    """Goal that receives the results; set exactly when there are calls."""
    thinking: str = ""
    fresh_sample: bool = False
    """True if the sample project must be copied anew before the calls run."""
    tools: frozenset[str] = field(default_factory=frozenset[str])
    """Tools that the whole goal needs."""

    def after(self, text: str) -> "DemoTurn":
        """Return the turn with a text before its own."""
        return replace(self, text="\n\n".join(part for part in (text, self.text) if part))
