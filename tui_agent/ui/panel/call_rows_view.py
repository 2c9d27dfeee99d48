"""Drawing of the tool panel's rows, line by line: 10,000 calls cost as much as the visible ones."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.steady_scrollbar import SteadyScrollView
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.call_ledger import CallFilter, CallLedger
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.state.tool_kinds import TOOL_KINDS

from .call_rows import CLOCK_ROOM, RowContext
from .panel_rows import PanelRows

TICK = 0.2
"""Seconds between two updates of the clocks."""
IDLE_TICK = 1.0
"""Seconds between two updates with reduced motion."""
MOST_KEPT = 150
"""Most calls whose rows are kept."""
_BELOW = -1
"""Place of the empty rows below all calls."""
SIGN_ROOM = 12
"""Cells at the left end of a row that contain the spinner, for any depth of the agent."""

STYLES = (
    *("waiting", "asking", "running", "ok", "failed", "stopped"),
    *("number", "summary", "amount", "tail", "step", "rule", "cursor"),
    *(f"tool-{kind}" for kind in TOOL_KINDS),
)


class CallRowsView(CoalescedRefresh, SteadyScrollView):
    """One row a call, live output under running ones, and a line between steps. Follows the newest call."""

    DEFAULT_CSS = """
    CallRowsView {
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        overflow-x: hidden;
        overflow-y: scroll;
        & > .call--waiting { color: $text-muted; }
        & > .call--asking { color: $warning; text-style: bold; }
        & > .call--running { color: $primary; }
        & > .call--ok { color: $success; }
        & > .call--failed { color: $error; }
        & > .call--stopped { color: $text-muted; }
        & > .call--number { color: $text-disabled; }
        & > .call--tool-read, & > .call--tool-other { color: $text; text-style: bold; }
        & > .call--tool-change { color: $accent; text-style: bold; }
        & > .call--tool-run { color: $primary; text-style: bold; }
        & > .call--tool-agent { color: $accent; text-style: bold italic; }
        & > .call--summary { color: $text; }
        & > .call--amount { color: $text-muted; }
        & > .call--tail { color: $text-muted; }
        & > .call--step { color: $text-disabled; }
        & > .call--rule { color: $border-blurred; }
        & > .call--cursor { background: $block-cursor-blurred-background; }
        &:focus > .call--cursor { background: $block-cursor-background; }
        &:nocolor > .call--cursor { text-style: reverse; }
    }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"call--{name}" for name in STYLES}

    def __init__(self, ledger: CallLedger, surroundings: TerminalEnvironment, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._surroundings = surroundings
        self._rows = PanelRows(ledger)
        self._cursor: int | None = None
        self._follows = True
        self._moved = False
        self._blocks: set[int] = set()
        self._frame = 0
        self._timer: Timer | None = None
        self._styles: dict[str, Style] = {}
        self._base: Style | None = None
        self._kept: dict[int, dict[tuple[int, bool, bool], Strip]] = {}
        """Rows of calls that are over: by place of the call, then row within it, and whether selected and unfolded."""
        self._kept_for = (0, 0)

    @property
    def ledger(self) -> CallLedger:
        """All calls."""
        return self._rows.ledger

    @property
    def selected(self) -> LedgerCall | None:
        """Call under the cursor."""
        return self._rows.call(self._cursor) if self._cursor is not None and self._cursor < len(self._rows) else None

    def on_mount(self) -> None:
        """Create the timer, paused."""
        pace = IDLE_TICK if self._surroundings.reduced_motion else TICK
        self._timer = self.set_interval(pace, self._tick, pause=True)

    def update(self, changed: Sequence[int]) -> None:
        """Show the calls at these indexes of the ledger, which an event has changed or added."""
        selected = self.selected
        for place in changed:
            self._forget(place)
        change = self._rows.update(changed)
        if change.moved and (self._rows.chosen != "all" or self._rows.unfolded):
            self._cursor = self._rows.index_of(selected)
        self._moved = self._moved or change.moved
        self._blocks.update(change.blocks)
        self.changed()

    def settle(self) -> None:
        """Draw the changed rows, or all if some have moved; start or pause the timer."""
        moved, blocks = self._moved, self._blocks
        self._moved, self._blocks = False, set()
        if moved:
            self._lay_out()
        else:
            self._refresh_blocks(blocks)
        if self._timer is not None:
            moving = self.ledger.places["running"] or self.ledger.places["needs_you"]
            (self._timer.resume if moving else self._timer.pause)()

    def show(self, ledger: CallLedger) -> None:
        """Show another ledger; the cursor stays on the same call if both have it."""
        selected = self.selected
        self._rows.unfolded.clear()
        self._rows.ledger = ledger
        self._kept.clear()
        self._rows.rebuild(self._rows.chosen, self._rows.width)
        self._cursor = self._rows.index_of(self.ledger.find(selected.view.call_id)) if selected is not None else None
        self._moved = True
        self.changed()

    def show_rows(self, chosen: CallFilter, width: int) -> None:
        """Lay out the rows for a filter and a width."""
        selected = self.selected
        self._rows.rebuild(chosen, width)
        self._cursor = self._rows.index_of(selected)
        self._blocks.clear()
        self._lay_out()

    def move_to(self, index: int) -> None:
        """Move the cursor to a row and scroll it into view; the last row is followed."""
        if len(self._rows):
            self._cursor = max(0, min(index, len(self._rows) - 1))
            self._follows = self._cursor == len(self._rows) - 1
            start, height = self._rows.block(self._cursor)
            region = Region(0, start, self.size.width, height)
            self.scroll_to_region(region, animate=False, force=True, immediate=True)
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of a region; those of calls that are over are kept."""
        base, form = self.rich_style, (self.size.width, len(str(self.ledger.total)))
        if base != self._base or form != self._kept_for or len(self._kept) > MOST_KEPT:
            self._base, self._kept_for = base, form
            self._kept.clear()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one line of the widget."""
        row = y + self.scroll_offset.y
        at = self._rows.at(row)
        if at is None:
            place, key = _BELOW, (0, False, False)
        else:
            call, line = self._rows.call(at[0]), at[1]
            place, key = call.place, (line, at[0] == self._cursor and line >= 0, call.place in self._rows.unfolded)
            if not call.view.ended:
                return self._draw(row, is_selected=key[1])
        kept = self._kept.setdefault(place, {})
        if key not in kept:
            kept[key] = self._draw(row, is_selected=key[1])
        return kept[key]

    def notify_style_update(self) -> None:
        """Drop cached colours after a change of theme or focus."""
        super().notify_style_update()
        self._styles.clear()
        self._base = None

    def on_resize(self, event: Resize) -> None:
        """Lay out the rows for the new width."""
        self.show_rows(self._rows.chosen, event.size.width)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the newest call only while it is visible."""
        super().watch_scroll_y(old_value, new_value)
        if new_value >= self.max_scroll_y:
            self._follows = True
        elif new_value < old_value:
            self._follows = False

    def _draw(self, row: int, *, is_selected: bool) -> Strip:
        still, (width, digits) = self._surroundings.reduced_motion, self._kept_for
        frame = 0 if still else self._frame
        context = RowContext(width, self._surroundings.clock(), frame, not still, digits, self.ledger.find)
        base = self._base or self.rich_style
        if is_selected:
            base += self._style("cursor")
        runs = self._rows.runs(row, context)
        segments = [Segment(text, base + self._style(name) if name else base) for text, name in runs if text]
        return Strip(segments).adjust_cell_length(width, base)

    def _forget(self, place: int | None) -> None:
        """Drop the rows of a call, and of the sub-agents above it, which count their calls."""
        while place is not None:
            self._kept.pop(place, None)
            place = self.ledger.calls[place].parent

    def _lay_out(self) -> None:
        follows, size = self._follows, self.size
        if not size.height:
            return
        rows = Size(size.width, self._rows.total)
        if rows != self.virtual_size:
            # Setting `virtual_size` directly would lay out the whole screen, although nothing around the list moves.
            self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), rows)
            self._scroll_update(rows)
        if follows:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()

    def _refresh_blocks(self, indexes: Iterable[int]) -> None:
        top, size = self.scroll_offset.y, self.size
        for index in indexes:
            start, height = self._rows.block(index)
            if start < top + size.height and start + height > top:
                self.refresh(Region(0, start - top, size.width, height))

    def _tick(self) -> None:
        """Update clocks and spinners; only their cells are drawn."""
        self._frame += 1
        top, size = self.scroll_offset.y, self.size
        left = max(0, size.width - CLOCK_ROOM)
        for row in self._rows.moving(top, top + size.height - 1):
            self.refresh(Region(0, row - top, SIGN_ROOM, 1), Region(left, row - top, CLOCK_ROOM, 1))

    def _style(self, name: str) -> Style:
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self.get_component_rich_style(f"call--{name}", partial=True)
        return found
