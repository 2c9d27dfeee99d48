"""A page with a list: its rows, the selected item in full, a line of state, and the keys.

A page defines columns, detail and actions; cursor, clicks, messages and second presses are the same on all of them.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.screen import ScreenResultType
from textual.widget import Widget

from tui_agent.ui.base.command_type import Where
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, RowsPage, RowsView
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import clipped, key_runs

from .answer_guard import SecondPress, act_on_key

T = TypeVar("T")


class ListPage(CursorKeys, RowsPage[ScreenResultType], Generic[T, ScreenResultType]):
    """The page; a class below it has the columns, the detail and the actions."""

    WHERE: ClassVar[Where]
    """Its part of the table of commands, and the prefix of the ids of its parts."""
    KEYS: ClassVar[Sequence[str]]
    """Commands in the row of keys; a second click on an item acts as the first one."""
    DEFAULT_CSS = """
    ListPage {
        & RowsView { height: 1; overflow: hidden; }
        & .list-rows { height: 1fr; min-height: 1; overflow-y: auto; }
        & .list-detail { height: 2; margin-top: 1; }
    }
    """

    def __init__(
        self,
        title: str,
        *,
        key: Callable[[T], object] = lambda item: item,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the page.

        Args:
            title: title in the frame.
            key: returns what identifies an item of one list in the next one.
            clock: monotonic seconds, for second presses.
        """
        super().__init__()
        self._title = title
        self._message: Run = ("", "")
        self._second_press = SecondPress(self, clock)
        self.rows: ItemRows[T] = ItemRows(self.layout_rows, key=key, id=f"{self.WHERE}-body")
        """The list."""
        self.rows.add_class("list-rows")
        self._detail = RowsView(self._detail_rows, id=f"{self.WHERE}-detail")
        self._detail.add_class("list-detail")
        self._state = RowsView(self._state_rows, id=f"{self.WHERE}-state")
        self._keys = RowsView(self._key_rows, id=f"{self.WHERE}-keys")

    # --- what a page defines ------------------------------------------------------------------------------------------

    @abstractmethod
    def item_row(self, item: T, place: int, width: int) -> Line:
        """Return the row of the item at a place of the list."""

    @abstractmethod
    def summary(self) -> Run:
        """Return what the state line says unless a message takes its place."""

    def heading_rows(self, width: int) -> Sequence[Line]:
        """Return the rows above the first item, which scroll with them."""
        return ()

    def detail_rows(self, item: T, width: int) -> Sequence[Line]:
        """Return the selected item in full."""
        return ()

    def counts(self, name: str) -> bool:
        """Return True if a command of the row of keys works for the selected item; any other is dim."""
        return True

    def fields(self) -> Iterable[Widget]:
        """Return what is between the line of state and the keys."""
        return ()

    def may_click(self, action: str) -> bool:
        """Return True if a click on the label of a key acts as the key now."""
        return self._second_press.click_counts(action)

    # --- what all pages share -----------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Yield the list, the selected item in full, the line of state and the keys."""
        with Vertical() as page:
            page.border_title = Content(f" {self._title} ")
            for view in (self.rows, self._detail, self._state):
                view.can_focus = False
                yield view
            yield from self.fields()
            self._keys.can_focus = False
            yield self._keys

    def on_mount(self) -> None:
        """Watch the focus of the window, for second clicks."""
        self._second_press.begin(self.app)

    @property
    def cursor_rows(self) -> ItemRows[T]:
        """The list."""
        return self.rows

    @property
    def selected(self) -> T | None:
        """The item at the cursor."""
        return self.rows.selected

    def use(self, items: Sequence[T], first: int = 0) -> None:
        """Show other items; the cursor is on the `first` one until the user moves it."""
        self.rows.use(items, first)
        self.show()

    def say(self, text: str, style: str = "") -> None:
        """Show a message in the line of state until the cursor moves; an empty one removes it."""
        self._message = (sanitise(text), style)
        self.show()

    def show(self, *, anew: bool = False) -> None:
        """Show everything as it is now; `anew` for another list, from its top."""
        self.rows.redraw(anew=anew)
        for view in (self._detail, self._state, self._keys):
            view.redraw()

    def cursor_moved(self) -> None:
        """Show the selected item, and no message any more."""
        self._message = ("", "")
        self._second_press.forget()
        self.show()

    def is_confirmed(self, action: str, target: str, effect: str) -> bool:
        """Return True at the second press in time; at the first, say its effect on the target, such as `stops`."""
        if self._second_press.waits_for((action, target)):
            return self._second_press.confirm((action, target))
        self._second_press.ask((action, target))
        self.say(f"{command(f'{self.WHERE}.{action}').key_text} again {effect} {target}.", "warning")
        return False

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def on_click(self, event: Click) -> None:
        """Select the clicked item; if it is selected, open it. A click on a key's label acts as the key."""
        if event.widget is self._keys:
            act_on_key(self, self.WHERE, self._keys.line_at(event.y), event.x, self.may_click)
        place = self.rows.place_at(event.screen_offset) if event.widget is self.rows else None
        if place is not None:
            again = place == self.rows.cursor
            self.rows.select(place)
            self.cursor_moved()
            if again:
                getattr(self, f"action_{self.KEYS[0]}")()

    def layout_rows(self, width: int) -> Layout:
        """Return all rows, and where each item begins."""
        rows = list(self.heading_rows(width))
        starts = range(len(rows), len(rows) + len(self.rows.items))
        for place, item in enumerate(self.rows.items):
            rows.append(self.item_row(item, place, width))
        return rows, starts

    def _detail_rows(self, width: int) -> Sequence[Line]:
        return self.detail_rows(self.selected, width) if self.selected is not None else ()

    def _state_rows(self, width: int) -> Sequence[Line]:
        return [Line(clipped([self._message if self._message[0] else self.summary()], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        return [Line(clipped(self.key_runs(), width))]

    def key_runs(self) -> list[Run]:
        """Return the row of keys."""
        entries = ((name, command(f"{self.WHERE}.{name}")) for name in self.KEYS)
        return key_runs((one.key_text, one.text, self.counts(name)) for name, one in entries)
