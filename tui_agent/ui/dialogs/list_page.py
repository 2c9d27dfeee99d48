"""A page with a list: the search on top, the list left, the selected item in full right of it, a state line and keys.

A page defines columns, detail and actions; search, cursor, preview, clicks, messages, second presses and asking for a
text are the same on all of them, and so are their keys (`list` in `command_table.py`). In a narrow window the preview
is below the list, in a low one it goes.
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Click, Resize
from textual.geometry import Size
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_agent.ui.base.command_type import Command, Where
from tui_agent.ui.base.commands import bindings_for, command, commands_for
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import NARROWEST, Line, Run
from tui_agent.ui.text.rows_view import ItemRows, Layout, LazyRows, ListKeys, RowsPage, RowsView, command_at
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import clipped, key_rows, key_runs, wrapped

from .answer_rules import AnswerGuard, AnswerPointer

T = TypeVar("T")
CONFIRM_SECONDS = 3.0
"""Seconds after the first press within which a second one confirms."""


class SecondPress:
    """The action and its target that wait for their second press, if any."""

    def __init__(self, screen: Screen[Any], clock: Callable[[], float]) -> None:
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
        # The key that asked repeats as long as it is held down.
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


LOW = 14
"""Rows below which a page has no search line until it is used, and keys in one row."""
_FRAME = 6
"""Rows of frame, search, state and keys of a page as high as its items."""
_FIXED = 8
"""Rows that a page needs before it shows the selected item below the list."""


class _SearchField(LineInput):
    """The field of the search; it leaves the keys of the list to the list."""

    is_search = True
    """False while the page asks for a text."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for the keys that lead to the first and the last item, unless the page asks for a text."""
        belongs_to_list = action in ("home", "end") and self.is_search
        return not belongs_to_list and super().check_action(action, parameters)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A text that the page asks for in the search line."""

    then: Callable[[str], None]
    accept: str
    cancel: str


class ListPage(ListKeys, RowsPage[ScreenResultType], Generic[T, ScreenResultType]):
    """The page; a class below it has the columns, the detail and the actions."""

    WHERE: ClassVar[Where]
    """Its part of the table of commands, with the keys that it has beside those of every list; prefix of its ids."""
    KEYS: ClassVar[Sequence[str]]
    """Commands in the row of keys; a second click on an item, and enter in the search, act as the first one."""
    SEARCHES: ClassVar[bool] = False
    """True if letters typed on the page are a search from the start; else only after the key for it."""
    DETAIL_ROWS: ClassVar[int] = 2
    """Most rows of the selected item below the list."""
    BESIDE: ClassVar[int] = 100
    """Columns from which the selected item is beside the list."""
    DEFAULT_CSS = """
    ListPage {
        & RowsView { height: 1; overflow: hidden; }
        & .list-search {
            height: 1;
            & > Static { width: auto; color: $text-muted; }
            & > Input { width: 1fr; background: transparent; }
        }
        & .list-body { height: 1fr; min-height: 1; }
        & .list-rows { height: 1fr; min-height: 1; overflow-y: auto; scrollbar-size-vertical: 1; }
        & .list-detail { margin-top: 1; }
        & .list-left { height: 1fr; min-height: 1; }
        &.-beside .list-body { layout: horizontal; }
        &.-beside .list-left { width: 1fr; }
        &.-beside .list-detail {
            width: 38%;
            margin: 0 0 0 1;
            padding: 0 0 0 1;
            border-left: solid $border-blurred;
            overflow-y: auto;
            scrollbar-size-vertical: 1;
        }
        /* Few choices need no whole window: the conversation stays in sight. */
        &.-compact { align: center middle; background: $background 60%; & > Vertical { max-width: 120; } }
        &.-low .list-search { display: none; }
        &.-typing .list-search { display: block; & > Static { color: $accent; text-style: bold; } }
        &.-low .list-detail { margin-top: 0; }
    }
    """

    def __init__(
        self,
        title: str,
        *,
        key: Callable[[T], object] = lambda item: item,
        clock: Callable[[], float] = time.monotonic,
        query: str = "",
    ) -> None:
        """Create the page; `key` returns what identifies an item in the next list, `query` begins a search."""
        super().__init__()
        self._title = title
        self._query = query
        self._items: Sequence[T] = ()
        self._asked: _Asked | None = None
        self._message: Run = ("", "")
        self._second_press = SecondPress(self, clock)
        self._page = Vertical()
        self._sign = Static("/ ", markup=False)
        self._field = _SearchField(placeholder="search", compact=True, id=f"{self.WHERE}-field", classes="list-field")
        # A blinking cursor wakes an idle program twice a second.
        self._field.cursor_blink = False
        self.rows: ItemRows[T] = ItemRows(self.layout_rows, key=key, id=f"{self.WHERE}-body")
        """The list."""
        self.rows.add_class("list-rows")
        self._heading = RowsView(self._shown_heading, id=f"{self.WHERE}-heading")
        self._detail = RowsView(self._detail_rows, id=f"{self.WHERE}-detail")
        self._detail.add_class("list-detail")
        self._state = RowsView(self._state_rows, id=f"{self.WHERE}-state")
        self._keys = RowsView(self._key_rows, id=f"{self.WHERE}-keys")

    def __init_subclass__(cls) -> None:
        cls.BINDINGS = [*bindings_for("list"), *bindings_for(cls.WHERE)]
        super().__init_subclass__()

    # --- what a page defines ------------------------------------------------------------------------------------------

    @abstractmethod
    def item_row(self, item: T, place: int, width: int) -> Line:
        """Return the row of the item at a place of the list."""

    @abstractmethod
    def summary(self) -> Run:
        """Return what the state line says unless a message takes its place."""

    def search_text(self, item: T) -> str:
        """Return the text that a search looks through; all of its words must be in it."""
        return self.item_row(item, 0, 300).plain

    def search_name(self, item: T) -> str:
        """Return the text whose matches come first; empty to keep the order."""
        return ""

    def heading_rows(self, width: int) -> Sequence[Line]:
        """Return the rows above the list, which a low window does not show."""
        return ()

    def detail_rows(self, item: T, width: int) -> Sequence[Line]:
        """Return the selected item in full."""
        return ()

    def body_rows(self, width: int) -> int:
        """Return the rows that list and preview need in a window; 0 if the page fills any window."""
        return 0

    def has_preview(self) -> bool:
        """Return False if the items in full say no more than their rows in a wide window."""
        return True

    def empty_text(self) -> str:
        """Return why the list shows no item."""
        return f"Nothing matches. {command('list.close').key_text} shows all again." if self._query else ""

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
        """Yield the search, the list, the selected item in full, the line of state and the keys."""
        self._place(self.app.size)
        with self._page as page:
            page.border_title = Content(f" {self._title} ")
            with Horizontal(classes="list-search"):
                yield self._sign
                yield self._field
            with Vertical(classes="list-body"):
                with Vertical(classes="list-left"):
                    yield self._heading
                    yield self.rows
                yield self._detail
            for view in (self._heading, self.rows, self._detail, self._state, self._keys):
                view.can_focus = False
            yield self._state
            yield from self.fields()
            yield self._keys

    def on_mount(self) -> None:
        """Watch the focus of the window, for second clicks."""
        self._second_press.begin(self.app)
        self._field.value = self._query
        if self.SEARCHES:
            self._field.focus()

    def on_resize(self, event: Resize) -> None:
        """Place the selected item where there is room for it."""
        self._place(event.size)
        # The views have their new widths only after the layout.
        self.call_after_refresh(self.show)

    def _place(self, size: Size) -> None:
        is_wide = size.width >= self.BESIDE
        beside = is_wide and self.has_preview()
        self.set_class(beside, "-beside")
        self.set_class(size.height < LOW, "-low")
        most = self.DETAIL_ROWS if self.has_preview() else min(2, self.DETAIL_ROWS)
        below = 0 if is_wide else min(most, (size.height - _FIXED) // 2)
        self._detail.display = beside or below > 0
        self._detail.styles.height = "1fr" if beside else max(1, below)
        rows = self.body_rows(size.width)
        self.set_class(rows > 0, "-compact")
        if rows:
            used = rows if is_wide else rows + below + 1
            self._page.styles.height = min(size.height, max(_FIXED, used + _FRAME))

    @property
    def cursor_rows(self) -> ItemRows[T]:
        return self.rows

    @property
    def selected(self) -> T | None:
        """The item at the cursor; None if the list is empty."""
        return self.rows.selected

    @property
    def shows_whole_detail(self) -> bool:
        """True if all rows of the selected item in full are visible."""
        return self._detail.display and 0 < self._detail.total <= self._detail.row_count

    @property
    def query_text(self) -> str:
        """Text of the search."""
        return self._query

    @property
    def all_items(self) -> Sequence[T]:
        """The items, also those that the search hides."""
        return self._items

    def cursor_sign(self, place: int) -> Run:
        """Return the first cells of a row, which show the cursor."""
        return ("› " if place == self.rows.cursor else "  ", "key")

    def use(self, items: Sequence[T], first: int = 0) -> None:
        """Show other items; the cursor is on the `first` one until the user moves it."""
        self._items = items
        found = self._found()
        chosen = items[first] if first < len(items) else None
        self.rows.use(found, next((place for place, item in enumerate(found) if item is chosen), 0))
        self.show()

    def begin(self, items: Sequence[T], place: int = 0) -> None:
        """Show another list, without a search, with the cursor on the item at a place."""
        self._items, self._query, self._message = items, "", ("", "")
        self._field.value = ""
        self.rows.begin(items, place)
        self.show(anew=True)
        self.rows.reveal()

    def say(self, text: str, style: str = "") -> None:
        """Show a message in the line of state until the cursor moves; an empty one removes it."""
        self._message = (sanitise(text), style)
        self.show()

    def show(self, *, anew: bool = False) -> None:
        """Show everything as it is now; `anew` for another list, from its top."""
        if not self.is_attached:
            return
        self._place(self.app.size)
        self.set_class(bool(self._query) or self._asked is not None or self._field.has_focus, "-typing")
        self.rows.redraw(anew=anew)
        for view in (self._heading, self._detail, self._state, self._keys):
            view.redraw()
        self._keys.styles.height = max(1, self._keys.total)
        # A view that is not displayed has no width, and would never build its first row.
        heading = len(self._shown_heading(max(NARROWEST, self.rows.row_width)))
        self._heading.styles.height = heading
        self._heading.display = heading > 0

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

    # --- the search, and other texts ----------------------------------------------------------------------------------

    @property
    def is_asking(self) -> bool:
        """True while the user types a text that the page asked for."""
        return self._asked is not None

    def ask(
        self, label: str, then: Callable[[str], None], *, text: str = "", hint: str = "", keys: Sequence[str]
    ) -> None:
        """Ask for a text in the place of the search; `end_asking` ends it.

        Args:
            then: called with the text at enter.
            text: the text to begin with.
            hint: shown while the field is empty.
            keys: words for what enter and esc do.
        """
        self._asked = _Asked(then, keys[0], keys[1])
        self._sign.update(Content(f"{label} "))
        self._field.placeholder, self._field.value, self._field.is_search = hint, text, False
        self._field.select_all()
        self._field.focus()
        self.show()

    def end_asking(self) -> None:
        """Bring the search back."""
        self._asked = None
        self._field.is_search = True
        self._sign.update(Content("/ "))
        self._field.placeholder, self._field.value = "search", self._query
        if not self.SEARCHES:
            self.set_focus(None)
        self.show()

    def _found(self) -> Sequence[T]:
        words = self._query.casefold().split()
        if not words:
            return self._items
        texts = ((item, self.search_text(item).casefold()) for item in self._items)
        found = [item for item, text in texts if all(word in text for word in words)]
        return sorted(found, key=lambda item: not all(word in self.search_name(item).casefold() for word in words))

    def _search(self, query: str) -> None:
        self._query, self._message = query, ("", "")
        self._second_press.forget()
        self.rows.begin(self._found())
        self.show(anew=True)
        self.cursor_moved()

    @on(Input.Changed, ".list-field")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self._asked is None and event.value.startswith("/"):
            # The key that begins a search on other pages; here it has begun already.
            self._field.value = event.value[1:]
            return
        # A change that the page made itself may arrive when the field has another use.
        if self._asked is None and event.value == self._field.value != self._query:
            self._search(event.value)

    @on(Input.Submitted, ".list-field")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._asked is not None:
            self._asked.then(event.value)
        else:
            self._act(self.KEYS[0])

    def action_search(self) -> None:
        """Type into the search."""
        self._field.focus()
        self.call_after_refresh(self.show)

    def action_close(self) -> None:
        """Stop asking; else clear the search; else close the page."""
        if self._asked is not None:
            self.end_asking()
        elif self._query or (self._field.has_focus and not self.SEARCHES):
            self._field.value = ""
            if not self.SEARCHES:
                self.set_focus(None)
            self._search("")
        else:
            self.leave()

    def leave(self) -> None:
        """Close the page without a result."""
        self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for every key of the page but the one that closes while the page asks for a text."""
        own = {entry.action_name for where in ("list", self.WHERE) for entry in commands_for(where)} - {"close"}
        return not (self.is_asking and action in own) and super().check_action(action, parameters)

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Move the cursor, and leave the search line unless the page begins in it."""
        if not self.SEARCHES:
            self.set_focus(None)
        super().move(by)

    def on_click(self, event: Click) -> None:
        """Select the clicked item; if it is selected, open it. A click on a key's label acts as the key."""
        if event.widget is self._keys:
            row = self._keys.line_at(event.y)
            for where in ("list", self.WHERE):
                entry = command_at(self, where, row, event.x)
                if entry is not None and self.may_click(entry.action_name):
                    self._act(entry.action_name)
        place = self.rows.place_at(event.screen_offset) if event.widget is self.rows else None
        if place is not None and not self.is_asking:
            again = place == self.rows.cursor
            self.move(place - self.rows.cursor)
            if again and self.may_click(self.KEYS[0]):
                self._act(self.KEYS[0])

    def _act(self, name: str) -> None:
        getattr(self, f"action_{name}")()

    # --- rows ---------------------------------------------------------------------------------------------------------

    def layout_rows(self, width: int) -> Layout:
        """Return all rows, each built when it is drawn, and where each item begins."""
        items = self.rows.items
        if not items:
            return wrapped([(self.empty_text(), "muted")], width), ()
        # A list of 10,000 items must be drawn as fast as one of ten.
        return LazyRows(len(items), lambda at: self.shown_row(items[at], at, width)), range(len(items))

    def _shown_heading(self, width: int) -> Sequence[Line]:
        # The scrollbar beside the list takes cells, and both must have the same columns.
        return () if self.has_class("-low") else self.heading_rows(min(width, self.rows.row_width or width))

    def shown_row(self, item: T, place: int, width: int) -> Line:
        """Return the row of an item, with a ground of its own at the cursor."""
        row, ground = self.item_row(item, place, width), "code-ground"
        return replace(row.styled(ground), fill=ground) if place == self.rows.cursor else row

    def _detail_rows(self, width: int) -> Sequence[Line]:
        return self.detail_rows(self.selected, width) if self.selected is not None else ()

    def _state_rows(self, width: int) -> Sequence[Line]:
        return [Line(clipped([self._message if self._message[0] else self.summary()], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        answers = self.key_answers()
        return [Line(clipped(key_runs(answers), width))] if self.has_class("-low") else key_rows(answers, width)

    def key_answers(self) -> list[tuple[str, str, bool]]:
        """Return key and text of each command in the row of keys, and True if it works now."""
        if self._asked is not None:
            return [("enter", self._asked.accept, True), (command("list.close").key_text, self._asked.cancel, True)]
        return [
            (one.key_text, one.text, self.counts(name))
            for name, one in ((name, self._command(name)) for name in self.KEYS)
        ]

    def _command(self, name: str) -> Command:
        own = {entry.action_name: entry for where in ("list", self.WHERE) for entry in commands_for(where)}
        return own[name]
