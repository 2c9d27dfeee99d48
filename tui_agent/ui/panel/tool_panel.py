"""Tool panel: a heading with counts, the rows of all calls, and the line that replaces it in a narrow window."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.protocol.amounts import count_text
from tui_agent.ui.base.commands import hint
from tui_agent.ui.base.steady_widgets import CoalescedRefresh
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.call_ledger import CallFilter, CallLedger
from tui_agent.ui.state.plan_and_files import Plan

from .call_list import CallList


class PanelHeading(Widget):
    """Heading `TOOLS` with the filter, once there are calls."""

    DEFAULT_CSS = """
    PanelHeading {
        height: 1;
        color: $text-muted;
    }
    """

    chosen: reactive[CallFilter] = reactive("all")
    """Current filter."""
    has_calls: reactive[bool] = reactive(False)
    """True once there is one."""

    def render(self) -> Content:
        if not self.has_calls:
            return Content("")
        title = Content.styled(" TOOLS", "$text bold")
        if self.chosen == "all":
            return title
        return title.append(Content.styled(f" · only {self.chosen.replace('_', ' ')}", "$accent"))


class ToolPanel(CoalescedRefresh, Vertical):
    """Heading and rows of all calls."""

    DEFAULT_CSS = """
    ToolPanel {
        & > CallList { height: 1fr; }
    }
    """

    def __init__(self, ledger: CallLedger, surroundings: TerminalEnvironment) -> None:
        super().__init__(id="panel")
        self._list = CallList(ledger, surroundings)
        self._heading = PanelHeading()

    def compose(self) -> ComposeResult:
        yield self._heading
        yield self._list

    def update(self, changed: Sequence[int]) -> None:
        """Show the calls at these indexes of the ledger, which an event has changed or added."""
        self._list.update(changed)
        self.changed()

    def show(self, ledger: CallLedger) -> None:
        self._list.show(ledger)
        self.changed()

    def settle(self) -> None:
        """Update the heading; the rows update themselves."""
        self._heading.has_calls = bool(self._list.ledger.calls)

    def focus_list(self) -> None:
        """Focus the rows."""
        self._list.focus()

    def select(self, call_id: str) -> None:
        """Move the cursor to a call."""
        self._list.select(call_id)

    @on(CallList.Filtered)
    def _filter_changed(self, event: CallList.Filtered) -> None:
        self._heading.chosen = event.chosen


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

    def __init__(self, ledger: CallLedger, plan: Plan) -> None:
        super().__init__(id="strip")
        self._ledger = ledger
        self._plan = plan

    def show(self, ledger: CallLedger, plan: Plan) -> None:
        self._ledger, self._plan = ledger, plan
        self.changed()

    def settle(self) -> None:
        """Draw the line; while it is hidden, only note that it has to be drawn."""
        if self.display:
            self.refresh()
        else:
            self._set_dirty()

    def render(self) -> Content:
        """Return the counts, the progress of an open plan, a rule and the key that opens the panel."""
        width = self.size.width
        key = f" {hint('chat.toggle_panel', 'close' if self.panel_open else 'open')} "
        left = Content("")
        if self._ledger.total:
            left = Content.assemble(("─ ", "$border-blurred"), "tools  ", counts(self._ledger, width - 10), " ")
        if self._plan.is_open:
            plan = Content.assemble(("─ ", "$border-blurred"), f"plan  {self._plan.count_text} ")
            left = Content("").join([left, plan if left.cell_length + plan.cell_length <= width else Content("")])
        right = Content(key if left.cell_length + len(key) <= width else "")
        rule = max(0, width - left.cell_length - right.cell_length)
        return Content("").join([left, Content.styled("─" * rule, "$border-blurred"), right])

    def on_click(self) -> None:
        self.post_message(self.Clicked())


def counts(ledger: CallLedger, room: int = 1_000) -> Content:
    """Return the number of open calls, and of those of the newest run by their end; good ends only while none is open.

    If `room` cells are not enough, the least important parts are left out.
    """
    open_kinds = ("running", "waiting", "needs_you")
    numbers = {kind: len(found) if kind in open_kinds else ledger.of_run[kind] for kind, found in ledger.places.items()}
    quiet = not (numbers["running"] or numbers["waiting"] or numbers["needs_you"])
    asking = numbers["needs_you"]
    # The outcome of calls before the first one here is not known, and a continued run ends calls of the one before.
    is_known = not ledger.before and (any(numbers.values()) or not ledger.calls)
    done = f"{numbers['done']} done" if is_known else count_text(ledger.total, "call")
    parts = [
        (done, "$text-muted", quiet and (numbers["done"] or not any(numbers.values())), 2),
        (f"{numbers['running']} running", "$primary", numbers["running"], 1),
        (f"{numbers['waiting']} queued", "$text-muted", numbers["waiting"], 3),
        (f"{asking} needs you" if asking == 1 else f"{asking} need you", "$warning bold", asking, 0),
        (f"{numbers['failed']} failed", "$error", numbers["failed"], 2),
        (f"{numbers['unknown']} unknown", "$warning", numbers["unknown"], 3),
        (f"{numbers['denied']} denied", "$text-muted", numbers["denied"], 4),
        (f"{numbers['skipped']} skipped", "$text-muted", quiet and numbers["skipped"], 5),
        (f"{numbers['cancelled']} cancelled", "$text-muted", quiet and numbers["cancelled"], 5),
    ]
    shown = [(text, style, least) for text, style, number, least in parts if number]
    while len(shown) > 1 and sum(len(text) + 3 for text, _, _ in shown) - 3 > room:
        shown.remove(max(shown, key=lambda part: part[2]))
    return Content.styled(" · ", "$text-muted").join([Content.styled(text, style) for text, style, _ in shown])
