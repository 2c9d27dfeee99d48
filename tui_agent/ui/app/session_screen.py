"""The list of sessions: search, preview, resume, rename, copy, delete. One screen, before the app and in it."""

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_agent.protocol.background import run_service
from tui_agent.protocol.messages import now_ms
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.dialogs.list_page import act_on_key
from tui_agent.ui.text.amounts import bytes_text
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import NARROWEST, Line
from tui_agent.ui.text.rows_view import CursorKeys, ItemRows, Layout, LazyRows, RowsView
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import key_rows

from .session_list import SessionList
from .session_rows import entry_row, heading_row, preview_rows, title_of
from .session_shelf import Preview, SessionEntry, SessionShelf

QUESTION = "Resume which session?"
BESIDE = 100
"""Columns from which the preview is beside the list."""
BELOW = 20
"""Rows from which the preview is below the list in a narrower window."""
PREVIEW_DELAY = 0.06
"""Seconds that the cursor rests on a session before its journal is read."""
_KEYS = ("choose", "rename", "fork", "delete", "back")


class SessionScreen(CursorKeys, ModalScreen[str | None]):
    """The list. Returns the id of the session to resume, or None if the user goes back."""

    app = getters.app(any_app)
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("sessions")]
    DEFAULT_CSS = """
    SessionScreen {
        background: $background;
        & > #session-head {
            height: 1;
            padding: 0 1;
            & > #session-question { width: auto; text-style: bold; }
        }
        & #session-state {
            width: 1fr;
            height: 1;
            color: $text-muted;
            text-align: right;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & > #session-search {
            height: 1;
            background: $panel;
            & > Static { width: auto; color: $accent; text-style: bold; }
            & > Input { width: 1fr; background: transparent; }
        }
        & #session-body { height: 1fr; min-height: 1; margin: 1 0; }
        & #session-list { height: 1fr; min-height: 1; }
        & #session-columns { height: 1; color: $text-muted; text-wrap: nowrap; }
        & #session-rows { height: 1fr; min-height: 1; }
        & #session-empty { height: 1fr; padding: 0 1; color: $text-muted; display: none; }
        & RowsView { scrollbar-size-vertical: 1; }
        & #session-preview { height: 45%; border-top: solid $border-blurred; padding: 0 1; overflow-y: auto; }
        & #session-note { height: auto; padding: 0 1; color: $warning; }
        & #session-keys { height: auto; min-height: 1; padding: 0 1; }
        &.-beside #session-body { layout: horizontal; }
        &.-beside #session-preview { width: 38%; height: 1fr; border-top: none; border-left: solid $border-blurred; }
        &.-empty #session-empty { display: block; }
        &.-empty #session-list, &.-empty #session-preview { display: none; }
        &.-bare #session-preview { display: none; }
        &.-low #session-head, &.-low #session-columns { display: none; }
        &.-low #session-body { margin: 0; }
    }
    """

    def __init__(
        self,
        shelf: SessionShelf,
        *,
        current: str = "",
        words: str = "",
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = now_ms,
    ) -> None:
        """Create the list; nothing is read yet.

        Args:
            shelf: the sessions.
            current: id of the session on the screen; empty before the app.
            words: first text of the search.
            clock: monotonic seconds.
            now: milliseconds since the epoch.
        """
        super().__init__()
        self._shelf = shelf
        self._current = current
        self._clock = clock
        self._now = now()
        self._sessions = SessionList()
        self.is_reading = True
        """True until all sessions are read."""
        self._renaming: SessionEntry | None = None
        self._search_before = ""
        self._previewed: tuple[str, int] | None = None
        self._preview: Preview | None = None
        self._is_previewing = False
        self._words = words
        self._drawn: tuple[object, ...] = ()
        self._sessions.search(words)
        self._sign = Static(" / ", markup=False)
        self._input = LineInput(placeholder="search titles, branches, folders", compact=True)
        self._input.cursor_blink = False
        # Cheaper than a view of rows, for which Textual computes the styles of some 45 components.
        self._columns = Static(id="session-columns", markup=False)
        self._rows: ItemRows[SessionEntry] = ItemRows(
            self._layout_rows, key=lambda entry: entry.summary.id, id="session-rows"
        )
        self._side = RowsView(self._preview_rows, id="session-preview")
        self._state = Static(id="session-state", markup=False)
        self._empty = Static(id="session-empty", markup=False)
        self._note = Static(id="session-note", markup=False)
        self._keys = Static(id="session-keys", markup=False)

    def compose(self) -> ComposeResult:
        """Yield heading, search, list, preview and keys."""
        self._place(self.app.size)
        with Horizontal(id="session-head"):
            yield Static(QUESTION, id="session-question", markup=False)
            yield self._state
        with Horizontal(id="session-search"):
            yield self._sign
            yield self._input
        with Vertical(id="session-body"):
            with Vertical(id="session-list"):
                yield self._columns
                yield self._rows
            yield self._side
            yield self._empty
        for view in (self._rows, self._side):
            view.can_focus = False
        yield self._note
        yield self._keys

    def on_mount(self) -> None:
        """Read the sessions, a part at a time."""
        self._input.value = self._words
        self._note.display = False
        self.run_worker(self._read(), group="read", exit_on_error=False)

    def on_resize(self, event: Resize) -> None:
        """Place the preview where there is room for it."""
        self._place(event.size)
        self.call_after_refresh(self._show)

    def _place(self, size: Size) -> None:
        beside = size.width >= BESIDE
        self.set_class(beside, "-beside")
        self.set_class(not beside and size.height < BELOW, "-bare")
        self.set_class(size.height < 8, "-low")

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        await run_service("listing sessions", self._read_all(), self._notify_failure)
        self.is_reading = False
        self._sessions.finish()
        self._show()
        await run_service("counting messages", self._count_messages())

    async def _read_all(self) -> None:
        async for entries in self._shelf.read():
            self._sessions.add(entries)
            self._show()

    async def _count_messages(self) -> None:
        async for entries in self._shelf.count(self._sessions.entries):
            self._sessions.replace(entries)
            self._show()
            self._side.show(self._preview_rows)

    def _notify_failure(self, reason: str) -> None:
        if reason or self._note.display:
            self._note.update(Content(visible(reason)))
            self._note.display = bool(reason)

    def _chosen_changed(self) -> None:
        entry = self._rows.selected
        key = (entry.summary.id, entry.summary.size) if entry is not None else None
        if key is not None and key == self._previewed:
            return
        self._previewed, self._preview, self._is_previewing = key, None, True
        self._side.show(self._preview_rows, anew=True)
        if entry is not None:
            self.set_timer(PREVIEW_DELAY, lambda: self._begin_preview(entry, key))

    def _begin_preview(self, entry: SessionEntry, key: object) -> None:
        if key == self._previewed:
            self.run_worker(self._load_preview(entry, key), group="preview", exclusive=True, exit_on_error=False)

    async def _load_preview(self, entry: SessionEntry, key: object) -> None:
        preview = await run_service("previewing a session", self._shelf.preview(entry))
        if key == self._previewed:
            self._preview, self._is_previewing = preview, False
            self._side.show(self._preview_rows, anew=True)

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if not self.is_attached:
            return
        self.set_class(not self._sessions.shown and not self.is_reading, "-empty")
        if not self._sessions.shown:
            self._empty.update(Content(self._sessions.empty_text()))
        headings = heading_row(max(NARROWEST, self._rows.row_width), folders=self._sessions.all_folders)
        _replace(self._columns, Content(headings.plain))
        self._rows.use(self._sessions.shown)
        drawn, self._drawn = self._drawn, (self._sessions.shown, self._rows.cursor, self._sessions.all_folders)
        if drawn != self._drawn:
            self._rows.redraw()
            self._rows.reveal()
        toggle = command("sessions.toggle_all").key_text
        _replace(self._state, Content(self._sessions.state_text(toggle, is_reading=self.is_reading)))
        self._show_keys()
        self._chosen_changed()

    def _layout_rows(self, width: int) -> Layout:
        entries, folders = self._sessions.shown, self._sessions.all_folders

        def row(place: int) -> Line:
            chosen = place == self._rows.cursor
            return entry_row(entries[place], width, self._now, chosen=chosen, current=self._current, folders=folders)

        return LazyRows(len(entries), row), range(len(entries))

    def _preview_rows(self, width: int) -> Sequence[Line]:
        entry = self._rows.selected
        if entry is None:
            return ()
        return preview_rows(
            entry, self._preview, width, self._now, current=self._current, is_loading=self._is_previewing
        )

    def _show_keys(self) -> None:
        colours = {"key": "$primary bold"}
        text = Content("\n").join(
            Content.assemble(*((text, colours.get(style, "")) for text, style in row.runs)) for row in self._key_rows()
        )
        if text != self._keys.content:
            self._keys.update(text)

    def _key_rows(self) -> Sequence[Line]:
        if self._renaming is not None:
            texts = {"choose": "rename", "back": "keep the name"}
            keys = [(command(f"sessions.{name}").key_text, text, True) for name, text in texts.items()]
        else:
            names = _KEYS if self._rows.selected is not None else ("back",)
            keys = [(one.key_text, one.text, True) for one in (command(f"sessions.{name}") for name in names)]
        return key_rows(keys, self.size.width - 2)

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if self._renaming is None:
            self._notify_failure("")
            self._sessions.search(event.value)
            self._rows.begin(self._sessions.shown)
            self._show()

    def on_click(self, event: Click) -> None:
        """Select the session under the mouse, or resume it if it is selected; a key's label acts as the key."""
        if event.widget is self._keys:
            rows, row = self._key_rows(), int(event.screen_y) - self._keys.content_region.y
            column = int(event.screen_x) - self._keys.content_region.x
            act_on_key(self, "sessions", rows[row] if 0 <= row < len(rows) else None, column)
        place = self._rows.place_at(event.screen_offset) if event.widget is self._rows else None
        if place == self._rows.cursor:
            self.action_choose()
        elif place is not None:
            self.move(place - self._rows.cursor)

    @property
    def cursor_rows(self) -> ItemRows[SessionEntry]:
        """The list."""
        return self._rows

    def move(self, by: int) -> None:
        """Select the session some rows below."""
        if self._renaming is None:
            super().move(by)

    def cursor_moved(self) -> None:
        """Show the selected session."""
        self._notify_failure("")
        self._show()

    def action_page_up(self) -> None:
        """Select the session a page above."""
        self.move(-self.page_rows)

    def action_page_down(self) -> None:
        """Select the session a page below."""
        self.move(self.page_rows)

    def action_toggle_all(self) -> None:
        """List the sessions of this folder, or of all folders."""
        if self._renaming is None:
            self._sessions.toggle_all()
            self._show()

    def action_choose(self) -> None:
        """Resume the selected session; while renaming, rename it."""
        entry = self._rows.selected
        if self._renaming is not None:
            self._work(self._rename(self._renaming, self._input.value))
        elif entry is None:
            return
        elif entry.is_open and entry.summary.id != self._current:
            copies = f"{command('sessions.fork').key_text} resumes a copy"
            self._notify_failure(f"This session is open in another tui-agent; {copies}.")
        else:
            self.dismiss(entry.summary.id)

    def action_back(self) -> None:
        """Stop renaming; else clear the search; else go back."""
        if self._renaming is not None:
            self._end_renaming()
        elif self._input.value:
            self._input.value = ""
        else:
            self.dismiss(None)

    # --- changes ------------------------------------------------------------------------------------------------------

    def action_rename(self) -> None:
        """Type a new name for the selected session."""
        entry = self._writable("/rename NAME renames this session.")
        if entry is not None and self._renaming is None:
            self._renaming, self._search_before = entry, self._input.value
            self._sign.update(Content(" new name "))
            self._input.value = entry.summary.title
            self._input.select_all()
            self._show_keys()

    def action_fork(self) -> None:
        """Copy the selected session, and resume the copy."""
        entry = self._rows.selected
        if entry is None or self._renaming is not None:
            return
        if entry.summary.id == self._current:
            self._notify_failure("/fork copies this session.")
        else:
            self._work(self._fork(entry))

    def action_delete(self) -> None:
        """Ask, then delete the selected session."""
        entry = self._writable("This session is on the screen; it cannot be deleted.")
        if entry is None or self._renaming is not None:
            return
        text = (
            f"“{title_of(entry, 60)}”, {bytes_text(entry.summary.size)}: its conversation, and the saved contents of "
            "files that it changed. Files of your workspace stay. This cannot be undone."
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(self._delete(entry))

        self.app.push_screen(
            ConfirmScreen("Delete this session?", text, "delete", clock=self._clock, no="keep"), answered
        )

    def _writable(self, here: str) -> SessionEntry | None:
        """Return the selected session if no program has it open; otherwise say why it cannot be changed."""
        entry = self._rows.selected
        if entry is None:
            return None
        if entry.summary.id == self._current:
            self._notify_failure(here)
        elif entry.is_open:
            self._notify_failure("This session is open in another tui-agent. Close it there first.")
        else:
            return entry
        return None

    async def _rename(self, entry: SessionEntry, title: str) -> None:
        renamed = await self._shelf.rename(entry, title)
        self._end_renaming()
        if renamed is not None:
            self._sessions.replace((renamed,))
            self._show()

    async def _fork(self, entry: SessionEntry) -> None:
        self.dismiss(await self._shelf.fork(entry))

    async def _delete(self, entry: SessionEntry) -> None:
        await self._shelf.delete(entry)
        self._sessions.remove(entry)
        self._show()

    def _end_renaming(self) -> None:
        self._renaming = None
        self._sign.update(Content(" / "))
        self._input.value = self._search_before
        self._show()

    def _work(self, work: Coroutine[object, object, None]) -> None:
        """Change sessions in the background, one change at a time; a failure is shown, and the list stays usable."""
        self._notify_failure("")
        self.run_worker(
            run_service("changing a session", work, self._notify_failure), group="change", exit_on_error=False
        )


def _replace(view: Static, text: Content) -> None:
    """Show a text, which keeps its height; the same text again is not drawn."""
    if text != view.content:
        view.update(text, layout=False)
