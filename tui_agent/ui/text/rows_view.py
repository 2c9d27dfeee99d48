"""Views that build their rows for a width, for dialogs and pages, one of them with a cursor; and their scroll keys."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, overload

from textual import getters
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.geometry import Offset, Size
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.strip import Strip

from tui_agent.ui.base.app_type import any_app, copy_text
from tui_agent.ui.base.command_type import Command, Where
from tui_agent.ui.base.commands import COMMANDS, bindings_for, commands_for, hint

from .line import NARROWEST, Line
from .line_view import LineView
from .styled_lines import key_at

Build: TypeAlias = Callable[[int], Sequence[Line]]
"""Builds the rows for a width in cells."""
Layout: TypeAlias = tuple[Sequence[Line], Sequence[int]]
"""All rows, and the row at which each item begins, ascending."""
T = TypeVar("T")


class RowsView(LineView):
    """Scrollable rows that know if they were read to the end."""

    has_answers = False
    """True for the answers of a dialog that asks, which the mouse can give."""

    @dataclass
    class Moved(Message):
        """Other rows are visible, or all rows were read."""

        view: "RowsView"

        @property
        def control(self) -> "RowsView":
            """The view itself."""
            return self.view

    def __init__(
        self,
        build: Build = lambda _: (),
        *,
        end_counts: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Create the view.

        Args:
            build: builds the rows.
            end_counts: True if the rows count as read once the user has scrolled to their end, even past others.
            id: the widget's id.
        """
        super().__init__(id=id)
        self._build = build
        self._end_counts = end_counts
        self._lines: Sequence[Line] = ()
        self._read_to = 0
        self._read_all = False
        self._made_for = 0
        self._scrolled_down = False
        self.skipped = 0
        """Number of rows that the user scrolled past before they were drawn."""

    @property
    def total(self) -> int:
        """Number of all rows."""
        return len(self._lines)

    @property
    def rows_below(self) -> int:
        """Number of rows below the visible ones."""
        return max(0, self.total - self.scroll_offset.y - self.row_count)

    @property
    def read_to_end(self) -> bool:
        """True if the last row was drawn, and every other one before it, each after the one above it.

        With `end_counts`, also if the user scrolled down to the last row and it was drawn.
        """
        return self._read_all

    def show(self, build: Build, *, anew: bool = False) -> None:
        """Show other rows; `anew` for another text, which starts at its top and is unread."""
        self._build = build
        self.redraw(anew=anew)

    def redraw(self, *, anew: bool = False) -> None:
        """Build the rows again; `anew` if they are another text."""
        if anew:
            self._forget()
            self.scroll_to(y=0, animate=False, immediate=True)
        self._make()

    def read_on(self, rows: int) -> None:
        """Scroll down by some rows at once, but never past undrawn rows: keys may come faster than drawing."""
        top = self.scroll_offset.y
        target = top + rows if top > self._read_to else min(top + rows, self._read_to)
        self._scrolled_down = True
        self.scroll_to(y=target, animate=False, immediate=True)
        self.refresh()

    def read_end(self) -> None:
        """Scroll to the end because the user wants to."""
        self._scrolled_down = True
        self.scroll_end(animate=False)
        # At the end already, nothing else would draw the last row again, which is when it counts.
        self.refresh()

    def lead_to(self, row: int) -> None:
        """Scroll to a row that the user did not scroll to, so that the rows before it stay unread."""
        self.scroll_to(y=row, animate=False, immediate=True)
        self._scrolled_down = False

    def line_at(self, row: int) -> Line | None:
        return self._lines[row] if 0 <= row < len(self._lines) else None

    def render_line(self, y: int) -> Strip:
        """Return one row of the widget; it counts as read once the rows above it were drawn, or at the end."""
        row = y + self.scroll_offset.y
        if row == self._read_to < self.total:
            self._read_to += 1
            if self._read_to == self.total and (self.skipped or not self._read_all):
                self._finish(skipped=0)
        elif self._end_counts and self._scrolled_down and row == self.total - 1 and not self._read_all:
            self._finish(skipped=max(0, self.scroll_offset.y - self._read_to))
        return super().render_line(y)

    def on_resize(self, event: Resize) -> None:
        """Build the rows for the new width."""
        self._make()

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        # A frame is drawn between a new layout and its `Resize`: it must not be empty.
        is_new = super()._size_updated(size, virtual_size, container_size, layout)
        if self.row_width != self._made_for:
            self._make()
        return is_new

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Post that other rows are visible."""
        super().watch_scroll_y(old_value, new_value)
        # A window that grows moves the rows, too, but only up.
        self._scrolled_down = self._scrolled_down or new_value > old_value
        self.post_message(self.Moved(self))

    def _make(self) -> None:
        if self.row_width:
            if self.row_width != self._made_for and (self.skipped or not self._read_all):
                self._forget()  # Rows of another width are other rows.
            self._made_for = self.row_width
            # Layouts need some room; a narrower window cuts their rows off.
            self._lines = self._build(max(NARROWEST, self.row_width))
            self.set_rows(len(self._lines))
            self.refresh()
            self.post_message(self.Moved(self))

    def _finish(self, *, skipped: int) -> None:
        self._read_all, self.skipped = True, skipped
        self.post_message(self.Moved(self))

    def _forget(self) -> None:
        self._read_to, self._read_all, self.skipped, self._scrolled_down = 0, False, 0, False


class LazyRows(Sequence[Line]):
    """Rows of a long list, each of which is built when it is drawn."""

    def __init__(self, count: int, build: Callable[[int], Line]) -> None:
        """Create `count` rows; `build` takes the index of one."""
        self._count = count
        self._build = build
        self._built: dict[int, Line] = {}

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    @overload
    def __getitem__(self, index: int) -> Line: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...

    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        """Return a row, or some."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        if index not in self._built:
            self._built[index] = self._build(index)
        return self._built[index]


class ItemRows(RowsView, Generic[T]):
    """Rows of items, one of which is at the cursor. The cursor follows its item when the list changes."""

    def __init__(
        self,
        layout: Callable[[int], Layout],
        *,
        key: Callable[[T], object] = lambda item: item,
        end_counts: bool = False,
        is_read: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        """Create the view of an empty list.

        Args:
            layout: builds the rows for a width.
            key: returns what identifies an item of one list in the next one.
            end_counts: as for all rows.
            is_read: True if the rows must be read before an answer: the cursor never leads past undrawn ones.
            id: the widget's id.
        """
        super().__init__(self._build_layout, end_counts=end_counts, id=id)
        self.items: Sequence[T] = ()
        """The items, in their order."""
        self.cursor = 0
        """Index of the item at the cursor; 0 if there is none."""
        self._layout = layout
        self._key = key
        self._is_read = is_read
        self._starts: Sequence[int] = ()
        self._was_moved = False

    @property
    def has_items(self) -> bool:
        """True if the rows that are shown are those of items."""
        return bool(self.items and self._starts)

    @property
    def has_single_rows(self) -> bool:
        """True if each item has one row."""
        return self.has_items and self.total - self._starts[0] == len(self.items)

    @property
    def selected(self) -> T | None:
        """The item at the cursor; None without items."""
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    def use(self, items: Sequence[T], first: int = 0) -> None:
        """Replace the items; the cursor stays on its item, or is on the `first` one until the user moves it."""
        kept = self._key(self.items[self.cursor]) if self._was_moved and self.items else None
        places = (place for place, item in enumerate(items) if kept is not None and self._key(item) == kept)
        self.cursor = next(places, min(self.cursor, max(0, len(items) - 1)) if self._was_moved else first)
        self.items = items

    def begin(self, items: Sequence[T], place: int = 0) -> None:
        """Use another list, with the cursor on the item at a place."""
        self._was_moved = False
        self.use(items, place)

    def select(self, place: int) -> None:
        """Move the cursor to an item, at most to an end, and scroll to it."""
        self._was_moved = True
        self.cursor = min(max(0, place), max(0, len(self.items) - 1))
        self.redraw()
        self.reveal()

    def place_at(self, offset: Offset) -> int | None:
        """Return the index of the item at a cell of the screen; None if no item is there."""
        row = offset.y - self.region.y + self.scroll_offset.y
        place = bisect_right(self._starts, row) - 1
        return place if 0 <= place < len(self.items) and row < self.total else None

    def reveal(self) -> None:
        """Scroll to the item at the cursor: to all of it if the window has room, else to its beginning."""
        if not self.cursor < len(self._starts) or not self.row_count:
            return
        start, top = self._starts[self.cursor], self.scroll_offset.y
        end = self._starts[self.cursor + 1] if self.cursor + 1 < len(self._starts) else self.total
        if start < top or (self.cursor == 0 and start < self.row_count):
            # Above the first item may be a heading.
            self.scroll_to(y=start if self.cursor else 0, animate=False, immediate=True)
        elif (target := min(start, end - self.row_count)) > top:
            if self._is_read:
                self.read_on(target - top)
            else:
                self.scroll_to(y=target, animate=False, immediate=True)

    def _build_layout(self, width: int) -> Sequence[Line]:
        rows, self._starts = self._layout(width)
        return rows


class Paging:
    """Mixin of a screen with the actions of its paging keys."""

    @property
    def paged(self) -> RowsView:
        """Rows that the keys scroll."""
        raise NotImplementedError

    def action_line_up(self) -> None:
        """Scroll up one row."""
        self.paged.scroll_relative(y=-1, animate=False)

    def action_line_down(self) -> None:
        """Scroll down one row."""
        self.paged.read_on(1)

    def action_page_up(self) -> None:
        """Scroll up one page."""
        self.paged.scroll_relative(y=1 - self.paged.row_count, animate=False)

    def action_page_down(self) -> None:
        """Scroll down one page, with an overlap of one row."""
        self.paged.read_on(max(1, self.paged.row_count - 1))

    def action_scroll_top(self) -> None:
        """Scroll to the top."""
        self.paged.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the end."""
        self.paged.read_end()


class CursorKeys(Paging):
    """Mixin of a screen with the actions of the keys that move the cursor of its rows."""

    @property
    def cursor_rows(self) -> ItemRows[Any]:
        """The rows with the cursor."""
        raise NotImplementedError

    @property
    def paged(self) -> RowsView:
        return self.cursor_rows

    @property
    def page_rows(self) -> int:
        """Number of items that a page of one-row items moves the cursor by."""
        return max(2, self.cursor_rows.row_count) - 1

    def action_cursor_up(self) -> None:
        """Move to the item above."""
        self.move(-1)

    def action_cursor_down(self) -> None:
        """Move to the item below."""
        self.move(+1)

    def move(self, by: int) -> None:
        """Move the cursor by some items, at most to an end; rows without items scroll instead."""
        rows = self.cursor_rows
        if rows.has_items:
            rows.select(rows.cursor + by)
        else:
            rows.scroll_relative(y=by, animate=False)
        self.cursor_moved()

    def cursor_moved(self) -> None:
        """Show what depends on the cursor."""


class ListKeys(CursorKeys):
    """Mixin of a screen that is a list: paging keys move the cursor, too."""

    def action_page_up(self) -> None:
        """Move a page up; scroll where an item has several rows."""
        if self.cursor_rows.has_single_rows:
            self.move(-self.page_rows)
        else:
            super().action_page_up()

    def action_page_down(self) -> None:
        """Move a page down; scroll where an item has several rows."""
        if self.cursor_rows.has_single_rows:
            self.move(self.page_rows)
        else:
            super().action_page_down()

    def action_first(self) -> None:
        """Move to the first item."""
        self.move(-self.cursor_rows.cursor)

    def action_last(self) -> None:
        """Move to the last item."""
        self.move(len(self.cursor_rows.items) - 1 - self.cursor_rows.cursor)


class RowsPage(Paging, ModalScreen[ScreenResultType]):
    """A framed page over the chat, whose rows the paging keys scroll."""

    app = getters.app(any_app)
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    RowsPage {
        background: $background;
        & > Vertical {
            border: round $border;
            border-title-color: $text;
            border-subtitle-color: $text-muted;
            padding: 0 1;
            background: $surface;
        }
        & RowsView { background: $surface; }
    }
    """


def command_at(screen: Screen[Any], where: Where, row: Line | None, column: int) -> Command | None:
    """Return the command whose label is at a cell of a row of keys.

    None if no label is there, `row` is None, or the command does not work now.
    """
    label = key_at(row, column) if row is not None else ""
    entries = (entry for entry in commands_for(where) if label and entry.key_text == label)
    return next((entry for entry in entries if screen.check_action(entry.action_name, ())), None)


_OWN_KEYS = ("close", "line_up", "line_down", "page_up", "page_down", "scroll_top", "scroll_end", "copy")


class PartPage(RowsPage[None]):
    """All rows of one part; a key copies its text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for("detail", [command for command in COMMANDS if command.action_name in _OWN_KEYS])
    ]

    def __init__(self, title: str, text: str, rows: Callable[[int], Sequence[Line]]) -> None:
        """Create the page.

        Args:
            title: its title.
            text: text to copy.
            rows: builds its rows for a width in cells.
        """
        super().__init__()
        self._title = title
        self._text: str = text
        self._page = RowsView(rows)

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            self._page.can_focus = False
            frame.border_title = Content(f" {self._title} ")
            frame.border_subtitle = Content(f" {hint('detail.close')} · {hint('detail.copy')} ")
            yield self._page

    @property
    def paged(self) -> RowsView:
        return self._page

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the text of the part."""
        copy_text(self.app, self._text)
