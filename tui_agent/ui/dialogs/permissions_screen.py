"""The permissions page: all rules in force with the calls they decided; rules of the session come and go here."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.widgets import Input

from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.bridge.rule_queries import RuleQueries, RulesInForce
from tui_agent.ui.panel.call_page import state_text
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.rule_hits import RuleHits
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import clipped, key_runs, wrapped

from .answer_pointer import act_on_key
from .permission_rows import Entry, call_rows, detail_rows, entries_of, entry_row, heading_rows, origin_room

POLL_SECONDS = 0.5
"""Seconds between two looks at rules and decisions while the page is open."""
_NEWEST = 5
"""Calls whose numbers the selected rule names."""
_LOW = 14
"""Rows of the window below which the page shortens its foot."""


class PermissionsScreen(RowsPage[None]):
    """The page; it follows the run behind it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("permissions")]
    DEFAULT_CSS = """
    PermissionsScreen {
        & RowsView { height: 1; overflow: hidden; }
        & #permissions-body { height: 1fr; min-height: 1; overflow-y: auto; }
        & #permissions-detail { height: 2; margin-top: 1; }
        & #permissions-rule { height: 1; border: none; padding: 0; display: none; background: $panel; }
        &.-adding #permissions-rule { display: block; }
        &.-low #permissions-detail { height: 1; margin-top: 0; }
    }
    """

    def __init__(
        self,
        rules: RuleQueries,
        status: Callable[[], SessionStatus],
        hits: Callable[[], RuleHits],
        ledger: Callable[[], CallLedger],
    ) -> None:
        """Create the page.

        Args:
            rules: lists, adds and removes rules.
            status: returns the session's status, for the mode and open questions.
            hits: returns the decisions so far.
            ledger: returns the session's calls.
        """
        super().__init__()
        self._rules = rules
        self._status = status
        self._hits = hits
        self._ledger = ledger
        self._in_force = RulesInForce()
        self._entries: list[Entry] = []
        self._cursor = 0
        self._first_row = 0
        self._calls_of: Entry | None = None
        self._message: tuple[str, str] = ("", "")
        self._seen: object = None
        self._body = RowsView(self._body_rows, id="permissions-body")
        self._detail = RowsView(self._detail_rows, id="permissions-detail")
        self._state = RowsView(self._state_rows, id="permissions-state")
        self._keys = RowsView(self._key_rows, id="permissions-keys")
        self._input = LineInput(
            placeholder="allow bash(make:*)", id="permissions-rule", compact=True, select_on_focus=False
        )

    def compose(self) -> ComposeResult:
        """Yield the rules, the selected one in full, the last message, the input and the keys."""
        with Vertical() as page:
            page.border_title = Content(" Permissions ")
            for view in (self._body, self._detail, self._state):
                view.can_focus = False
                yield view
            yield self._input
            self._keys.can_focus = False
            yield self._keys

    def on_mount(self) -> None:
        """Show the rules, and follow their changes."""
        # A blinking cursor wakes an idle program twice a second.
        self._input.cursor_blink = False
        self._read()
        self.set_interval(POLL_SECONDS, self._read)

    def on_resize(self, event: Resize) -> None:
        """Shorten the foot in a low window."""
        self.set_class(event.size.height < _LOW, "-low")

    @property
    def paged(self) -> RowsView:
        """The rows that the paging keys move."""
        return self._body

    @property
    def selected(self) -> Entry | None:
        """The entry at the cursor."""
        return self._entries[self._cursor] if self._entries else None

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    def action_cursor_up(self) -> None:
        """Move to the rule above."""
        self._move(-1)

    def action_cursor_down(self) -> None:
        """Move to the rule below."""
        self._move(+1)

    def action_show_calls(self) -> None:
        """List the calls that the selected rule decided."""
        if self._calls_of is None and self.selected is not None:
            self._calls_of, self._message = self.selected, ("", "")
            self._show(anew=True)

    def action_add_rule(self) -> None:
        """Open the line for a new rule."""
        if self._calls_of is None:
            self.add_class("-adding")
            self._message = ("allow, ask or deny, then a tool with a pattern: deny edit(secret/**)", "muted")
            self._input.focus()
            self._show()

    def action_remove_rule(self) -> None:
        """Remove the selected rule if it belongs to the session; say where any other rule comes from."""
        entry = self.selected
        if self._calls_of is not None or entry is None:
            return
        if not entry.is_removable or entry.rule is None:
            self._message = (_why_it_stays(entry), "warning")
        elif self._rules.remove(entry.rule.verdict, entry.rule.text):
            self._message = (f"Removed: {entry.verdict} {sanitise(entry.text)}. It counts for no further call.", "")
        self._read(anyway=True)

    def action_close(self) -> None:
        """Close the line for a new rule, or return to the rules, or close the page."""
        if self.has_class("-adding"):
            self._end_input()
        elif self._calls_of is not None:
            self._calls_of = None
            self._show(anew=True)
            self._move(0)
        else:
            self.dismiss(None)

    @on(Input.Submitted, "#permissions-rule")
    def _add(self, event: Input.Submitted) -> None:
        event.stop()
        text = " ".join(event.value.split())
        if not text:
            self._end_input()
            return
        if refused := self._rules.add(text):
            self._message = (sanitise(refused), "warning")
            self._show()
            return
        before = set(self._entries)
        self._end_input()
        self._message = (f"Added for this session: {sanitise(text)}", "")
        self._read(anyway=True)
        added = [place for place, entry in enumerate(self._entries) if entry not in before]
        if added:
            self._cursor = added[-1]
            self._show_cursor()

    def on_click(self, event: Click) -> None:
        """Select the clicked rule; if it is selected, list its calls. A click on a key's label acts as the key."""
        if event.widget is self._keys and not self.has_class("-adding"):
            act_on_key(self, "permissions", self._keys.line_at(event.y), event.x)
        if event.widget is not self._body or self._calls_of is not None:
            return
        place = int(event.screen_y) - self._body.region.y + self._body.scroll_offset.y - self._first_row
        if 0 <= place < len(self._entries):
            again = place == self._cursor
            self._cursor = place
            self._show()
            if again:
                self.action_show_calls()

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _end_input(self) -> None:
        self.remove_class("-adding")
        self._input.clear()
        self._message = ("", "")
        self.set_focus(None)
        self._show()

    def _read(self, *, anyway: bool = False) -> None:
        """Read rules, mode and decisions again, and show what changed."""
        self._in_force, status = self._rules.in_force(), self._status()
        seen = (self._in_force, status.mode, len(status.asking), self._hits().total)
        if seen == self._seen and not anyway:
            return
        self._seen, chosen = seen, self.selected
        self._entries = entries_of(self._in_force, status.mode)
        if chosen in self._entries:
            self._cursor = self._entries.index(chosen)
        self._cursor = min(self._cursor, len(self._entries) - 1)
        self._show()

    def _show(self, *, anew: bool = False) -> None:
        self._body.show(self._body_rows, anew=anew)
        for view, build in (
            (self._detail, self._detail_rows),
            (self._state, self._state_rows),
            (self._keys, self._key_rows),
        ):
            view.show(build)

    def _move(self, by: int) -> None:
        if self._calls_of is not None or not self._entries:
            self._body.scroll_relative(y=by, animate=False)
            return
        self._cursor = min(max(0, self._cursor + by), len(self._entries) - 1)
        self._message = ("", "")
        self._show_cursor()

    def _show_cursor(self) -> None:
        """Redraw, and scroll to the selected rule."""
        self._show()
        row, top = self._first_row + self._cursor, self._body.scroll_offset.y
        if self._cursor == 0 and row < self._body.row_count:
            self._body.scroll_to(y=0, animate=False, immediate=True)
        elif row < top:
            self._body.scroll_to(y=row, animate=False, immediate=True)
        elif row >= top + self._body.row_count:
            self._body.scroll_to(y=row - self._body.row_count + 1, animate=False, immediate=True)

    def _body_rows(self, width: int) -> Sequence[Line]:
        hits = self._hits()
        if (entry := self._calls_of) is not None:
            calls = [self._ledger().find(call_id) for call_id in hits.of(entry.key)]
            return call_rows(entry, calls, lambda call: state_text(call.view), width)
        rows = heading_rows(self._in_force, self._status().mode, width)
        self._first_row, room = len(rows), origin_room(self._entries, width)
        for place, entry in enumerate(self._entries):
            count = len(hits.of(entry.key))
            rows.append(entry_row(place + 1, entry, count, width, room, at_cursor=place == self._cursor))
        return rows

    def _detail_rows(self, width: int) -> Sequence[Line]:
        if self.selected is None or self._calls_of is not None:
            return ()
        calls = [self._ledger().find(call_id) for call_id in self._hits().of(self.selected.key)[-_NEWEST:]]
        numbers = [f"#{call.number}" for call in calls if call is not None]
        return detail_rows(self.selected, numbers, width, 2)

    def _state_rows(self, width: int) -> Sequence[Line]:
        text, style = self._message
        if text:
            return [Line(clipped([(text, style)], width))]
        if asking := len(self._status().asking):
            needs = "needs" if asking == 1 else "need"
            keys = ", then ".join(command(name).key_text for name in ("permissions.close", "chat.next_approval"))
            answer = f"▲ {count_text(asking, 'call')} {needs} you · {keys}"
            return [Line(clipped([(answer, "warning")], width))]
        own = sum(entry.is_removable for entry in self._entries)
        count = f"{count_text(len(self._in_force.rules), 'rule')}, {own} of this session"
        return [Line(clipped([(count, "muted")], width))]

    def _key_rows(self, width: int) -> Sequence[Line]:
        if self.has_class("-adding"):
            leave = command("permissions.close").key_text
            return [Line(clipped([("enter", "key"), (" add   ", ""), (leave, "key"), (" cancel", "")], width))]
        if self._calls_of is not None:
            return wrapped([(hint("permissions.close", "back to the rules"), "muted")], width)[:1]
        entry, answers = self.selected, list[tuple[str, str, bool]]()
        for name in ("show_calls", "add_rule", "remove_rule", "close"):
            known = command(f"permissions.{name}")
            counts = name != "remove_rule" or (entry is not None and entry.is_removable)
            answers.append((known.key_text, known.text, counts))
        return [Line(clipped(key_runs(answers), width))]


def _why_it_stays(entry: Entry) -> str:
    """Return why an entry cannot be removed here."""
    if entry.rule is None:
        return "This is built in. /mode changes the mode." if entry.key == "mode" else "This is built in and stays."
    origin = sanitise(entry.origin)
    if origin.startswith("--"):
        return f"This rule comes from the option {origin}; start without it."
    return f"This rule stays: delete it from {origin}; that applies at once."
