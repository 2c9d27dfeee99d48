"""A page with a list: its rows, the selected item in full, a line of state, and the keys.

A page defines columns, detail and actions; cursor, clicks, messages and second presses are the same on all of them.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Click
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from tui_agent.ui.base.command_type import Where
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, RowsPage, RowsView, command_at
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import clipped, key_runs

from .answer_rules import AnswerGuard, AnswerPointer

T = TypeVar("T")
CONFIRM_SECONDS = 3.0
"""Seconds after the first press within which a second one confirms."""


class SecondPress:
    """The action and its target that wait for their second press, if any."""

    def __init__(self, screen: Screen[Any], clock: Callable[[], float]) -> None:
        """Create the state in which nothing waits.

        Args:
            screen: the page, which says what a second press would do.
            clock: monotonic seconds.
        """
        self._screen = screen
        self._clock = clock
        self._guard = AnswerGuard(clock)
        self._pointer = AnswerPointer(lambda: self._guard.asked_at, clock)
        self._asked: tuple[str, str] | None = None
        self._asked_at = 0.0

    def begin(self, app: DOMNode) -> None:
        """Watch the focus of the app's window, once the page is mounted."""
        self._screen.watch(app, "app_focus", self._pointer.focused, init=False)

    def waits_for(self, action: tuple[str, str]) -> bool:
        """Return True if a second press would confirm the action, now or after the quiet moment."""
        return self._asked == action and self._clock() - self._asked_at <= CONFIRM_SECONDS

    def ask(self, action: tuple[str, str]) -> None:
        """Let the action wait for its second press; the caller shows what that would do."""
        self._asked, self._asked_at = action, self._clock()
        self._guard.withdrawn()
        self._screen.call_after_refresh(self._guard.drawn)

    def forget(self) -> None:
        """Let no action wait any more: the page no longer says what a second press would do."""
        self._asked = None

    def confirm(self, action: tuple[str, str]) -> bool:
        """Return True if this press confirms the action that waits; one that comes too early does not."""
        if not self.waits_for(action):
            return False
        if not self._guard.armed:
            if self._guard.was_drawn:
                # A key that is held down comes too early again and again.
                self._guard.drawn()
            return False
        self._asked = None
        return True

    def click_counts(self, action: str) -> bool:
        """Return True unless a click would confirm the action and may be the second half of a double click."""
        asked = self._asked
        return asked is None or asked[0] != action or not self.waits_for(asked) or self._pointer.counts


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


def act_on_key(
    screen: Screen[Any],
    where: Where,
    row: Line | None,
    column: int,
    counts: Callable[[str], bool] = lambda _: True,
) -> None:
    """Act as the key whose label was clicked on a page that is not a question.

    Args:
        screen: the page.
        where: its part of the table of commands.
        row: the row with the keys.
        column: cell of the row, from 0.
        counts: takes an action, and returns False if a click does not give it now.
    """
    entry = command_at(screen, where, row, column)
    if entry is not None and counts(entry.action_name):
        getattr(screen, f"action_{entry.action_name}")()
