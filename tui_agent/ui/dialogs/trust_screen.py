"""Asks before the start whether a folder's settings and instructions may be applied. The default is no.

A yes counts only after everything was read and a quiet moment passed, as in an approval dialog.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Static

from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.text.argument_rows import labelled_rows
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import Paging, RowsView
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import clipped, key_runs, plain_line, wrapped

from .answer_clicks import AnswerClicks
from .answer_keys import AnswerKeys
from .guarded_answers import GuardedAnswers

TrustChoice: TypeAlias = Literal["no", "tightening", "all"]
"""Apply nothing; everything but allow rules, tool servers and hooks; everything."""

_ANSWERS = frozenset(("refuse", "tighten", "accept"))


@dataclass(frozen=True, slots=True)
class TrustPrompt:
    """The content of the question."""

    folder: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    """Headings, each with its entries word for word."""
    powers: str = ""
    """Contents that need an answer of their own, such as `allow rules`; empty if there are none."""


class TrustScreen(GuardedAnswers, Paging, Screen[TrustChoice | None]):
    """The question. Returns the answer, or None if the user quit."""

    CSS = """
    #trust-heading { padding: 1 2; text-style: bold; }
    #trust-body { height: 1fr; margin: 0 2; overflow-y: auto; }
    #trust-keys { height: 2; margin: 0 2; }
    """
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("trust")]

    def __init__(self, matter: TrustPrompt, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._matter = matter
        self._body = RowsView(self._body_rows, id="trust-body")
        self._keys = AnswerKeys(self._key_rows, clock, id="trust-keys")
        self.guard = self._keys.guard
        """Decides whether an answer counts."""
        self.clicks = AnswerClicks(self, self.guard, "trust", _ANSWERS, lambda _: self.guard.armed)
        """Clicks on the answers."""

    def compose(self) -> ComposeResult:
        """Yield the question, the folder's settings and instructions, and the answers."""
        yield Static("This folder has its own settings or instructions. Apply them?", id="trust-heading", markup=False)
        self._body.can_focus = self._keys.can_focus = False
        yield self._body
        yield self._keys

    def action_refuse(self) -> None:
        """Answer no; the answer is kept until the settings change."""
        if self.guard.accepts():
            self.dismiss("no")

    def action_tighten(self) -> None:
        """Answer yes, without allow rules, tool servers and hooks."""
        if self.guard.accepts() and self._body.read_to_end:
            self.dismiss("tightening")

    def action_accept(self) -> None:
        """Answer yes, with allow rules, tool servers and hooks."""
        if self._matter.powers and self.guard.accepts() and self._body.read_to_end:
            self.dismiss("all")

    def action_leave(self) -> None:
        """Quit without an answer; nothing starts."""
        self.dismiss(None)

    @property
    def paged(self) -> RowsView:
        """The rows that the paging keys move."""
        return self._body

    @on(RowsView.Moved, "#trust-body")
    def _moved(self) -> None:
        self._keys.show_now()

    def _body_rows(self, width: int) -> Sequence[Line]:
        rows = labelled_rows("folder", (self._matter.folder,), width)
        for heading, entries in self._matter.sections:
            rows.append(Line())
            rows.extend(wrapped([(visible(heading), "muted")], width))
            for entry in entries:
                rows.extend(labelled_rows("", (entry,), width))
        return rows

    def _key_rows(self, width: int) -> Sequence[Line]:
        offered = ["trust.refuse", "trust.tighten", *(["trust.accept"] if self._matter.powers else [])]
        answers: list[tuple[str, str, bool]] = []
        for answer in (command(name) for name in offered):
            # "no" counts even if not everything was read.
            counts = self.guard.armed and (answer.id == "trust.refuse" or self._body.read_to_end)
            text = answer.text.replace("allow rules", self._matter.powers)
            text = text if self._matter.powers or answer.id == "trust.refuse" else "yes"
            answers.append((answer.key_text, text, counts))
        more = "" if self._body.read_to_end else f"{self._body.rows_below} lines more: {hint('trust.page_down')}"
        return [Line(clipped(key_runs(answers), width)), plain_line(more, "warning")]
