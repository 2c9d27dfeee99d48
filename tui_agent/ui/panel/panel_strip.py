"""The line that stands for the tool panel while a narrow window hides it."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive

from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.commands import hint
from tui_agent.ui.state.call_ledger import CallLedger

from .tool_panel import counts


class PanelStrip(CoalescedRefresh):
    """The number of calls in each state; a click opens or closes the panel."""

    DEFAULT_CSS = """
    PanelStrip {
        height: 1;
        color: $text-muted;
        pointer: pointer;
    }
    """

    @dataclass
    class Clicked(Message):
        """The user clicked the line to open or close the panel."""

    panel_open = reactive(False)
    """True while the panel is shown."""

    def __init__(self, ledger: CallLedger, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._ledger = ledger

    def show(self, ledger: CallLedger) -> None:
        """Show another ledger."""
        self._ledger = ledger
        self.changed()

    def render(self) -> Content:
        """Return the counts, a rule and the key that opens the panel."""
        width = self.size.width
        key = f" {hint('chat.toggle_panel', 'close' if self.panel_open else 'open')} "
        left = Content.assemble(("─ ", "$border-blurred"), "tools  ", counts(self._ledger, width - 10), " ")
        right = Content(key if left.cell_length + len(key) <= width else "")
        rule = max(0, width - left.cell_length - right.cell_length)
        return Content("").join([left, Content.styled("─" * rule, "$border-blurred"), right])

    def on_click(self) -> None:
        """Post `Clicked`."""
        self.post_message(self.Clicked())
