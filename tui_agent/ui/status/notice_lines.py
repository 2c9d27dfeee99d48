"""The single lines above the composer: a question that waits, how to interrupt, what the closed panel would show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import FrozenModel
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.panel.call_ledger import HANDLED_EVENTS, CallLedger
from tui_agent.ui.panel.tool_panel import counts
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.sanitiser import one_line

OPEN_SECONDS = 6.0
"""How long the ways to interrupt are offered."""


class AttentionLine(Widget):
    """Announces a question that did not open, or was put off; a click opens it."""

    DEFAULT_CSS = """
    AttentionLine {
        height: 1;
        display: none;
        color: $warning;
        text-style: bold;
        pointer: pointer;
    }
    """

    @dataclass
    class Clicked(Message):
        """A person wants the question."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._request: ApprovalRequest | None = None
        self._count = 0

    def announce(self, request: ApprovalRequest | None, count: int) -> None:
        """Shows one of `count` questions; None: nothing waits."""
        self._request, self._count = request, count
        self.display = request is not None
        self.refresh()

    def render(self) -> Content:
        """The line."""
        if self._request is None:
            return Content("")
        width = self.size.width
        key = f"{hint('chat.next_approval')} "
        more = f" · {self._count - 1} more" if self._count > 1 else ""
        question = f"▲ {self._request.tool} needs you: {self._request.summary or self._request.reason}"
        left = Content.assemble(" ", one_line(question, max(1, width - len(key) - len(more) - 2)), more)
        gap = max(1, width - left.cell_length - len(key))
        return Content("").join([left, Content(" " * gap), Content(key)])

    def on_click(self) -> None:
        """A click opens the question."""
        self.post_message(self.Clicked())


class InterruptMenu(Widget):
    """How to interrupt, with what comes of it. The keys belong to the screen; this only shows them."""

    DEFAULT_CSS = """
    InterruptMenu {
        height: 1;
        display: none;
        color: $text;
        background: $panel;
    }
    """

    @dataclass
    class Closed(Message):
        """Nobody chose anything for a while."""

    running = reactive(0)
    """Calls a cancellation would end."""
    waiting = reactive(0)
    """Messages that could be sent at once."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._timer: Timer | None = None

    @property
    def is_open(self) -> bool:
        """Whether its keys count."""
        return bool(self.display)

    def open(self, running: int, waiting: int) -> None:
        """Shows the choices; after a while they go, so that a key typed later is only a letter."""
        self.running, self.waiting = running, waiting
        self.display = True
        self._forget_timer()
        self._timer = self.set_timer(OPEN_SECONDS, self._expire)

    def close(self) -> None:
        """Hides the choices."""
        self.display = False
        self._forget_timer()

    def _expire(self) -> None:
        self.close()
        self.post_message(self.Closed())

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def render(self) -> Content:
        """The line; what does not fit is left out from the end."""
        what = f"cancel {count_text(self.running, 'tool')} and stop" if self.running else "cancel and stop"
        choices: list[tuple[str, str]] = [(f"{command('interrupt.cancel').key_text} again", what)]
        choices.append((command("interrupt.stop").key_text, command("interrupt.stop").text))
        if self.waiting:
            choices.append((command("interrupt.now").key_text, command("interrupt.now").text))
        return _fitted(
            [
                Content.assemble((key, "$warning bold"), f": {text}" if number == 0 else f" {text}")
                for number, (key, text) in enumerate(choices)
            ],
            self.size.width,
        )


class PanelStrip(CoalescedRefresh):
    """What the tool panel would say, while a narrow window keeps it closed; a click opens and closes it."""

    DEFAULT_CSS = """
    PanelStrip {
        height: 1;
        color: $text-muted;
        pointer: pointer;
    }
    """

    @dataclass
    class Clicked(Message):
        """A person wants the panel, or no longer."""

    HANDLED_EVENTS: ClassVar[frozenset[type[FrozenModel]]] = HANDLED_EVENTS

    panel_open = reactive(False)
    """Whether the panel is there already."""

    def __init__(self, ledger: CallLedger, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._ledger = ledger

    def apply(self, envelope: Envelope) -> None:
        """Takes one event that the ledger took before."""
        self.changed()

    def render(self) -> Content:
        """The line."""
        width = self.size.width
        key = f" {hint('chat.toggle_panel', 'close' if self.panel_open else 'open')} "
        left = Content.assemble(("─ ", "$border-blurred"), "tools  ", counts(self._ledger, width - 10), " ")
        right = Content(key if left.cell_length + len(key) <= width else "")
        rule = max(0, width - left.cell_length - right.cell_length)
        return Content("").join([left, Content.styled("─" * rule, "$border-blurred"), right])

    def on_click(self) -> None:
        """A click opens the panel, another one closes it."""
        self.post_message(self.Clicked())


def _fitted(parts: Sequence[Content], width: int) -> Content:
    """As many parts as fit, the first one always."""
    line = Content(" ")
    for number, part in enumerate(parts):
        longer = line + (Content.styled(" · ", "$text-muted") if number else Content("")) + part
        if number and longer.cell_length > width:
            break
        line = longer
    return line
