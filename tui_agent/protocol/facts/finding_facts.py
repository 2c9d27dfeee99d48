"""Findings of a review, as its tool reports them in the event of its call's end."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.messages import FrozenModel

REPORT_TOOL = "report_findings"
"""Name of the tool that reports findings."""

Severity: TypeAlias = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
"""Severities, the worst first."""


class Finding(FrozenModel):
    """One finding of a review."""

    file: str
    """Path relative to the workspace."""
    line: int = 0
    """Line in the file, from 1; 0: the file as a whole."""
    severity: Severity = "medium"
    text: str
    """The problem and why it matters; the first line is a sentence."""

    @property
    def place(self) -> str:
        """File and line, as in `src/cart.py:12`."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def title(self) -> str:
        """The first line of its text."""
        return self.text.strip().partition("\n")[0]

    @property
    def plain(self) -> str:
        """The finding as text for a terminal."""
        return f"{self.place}: {self.severity}: {self.text.strip()}"


_FINDINGS = TypeAdapter(tuple[Finding, ...])


def findings_of(event: ToolEnded) -> tuple[Finding, ...] | None:
    """Return the findings that a call reported; None if it reported none."""
    if event.name != REPORT_TOOL or event.is_error or not event.details:
        return None
    try:
        return _FINDINGS.validate_python(event.details.get("findings"))
    except ValidationError:
        return None  # A tool of another origin has this name.


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings by severity, file and line, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: (SEVERITIES.index(one.severity), one.file, one.line)))
