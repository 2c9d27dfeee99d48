"""The permissions page: all rules in force with the calls they decided; rules of the session come and go here."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.facts.rule_facts import RulesInForce
from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.panel.call_page import state_text
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.rule_hits import RuleHits
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.input_fields import LineInput
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Layout
from tui_agent.ui.text.sanitiser import sanitise

from .list_page import ListPage
from .permission_rows import Entry, call_rows, detail_rows, entries_of, entry_row, heading_rows, origin_room

if TYPE_CHECKING:
    from tui_agent.workbench.session_rules import SessionRules

POLL_SECONDS = 0.5
"""Seconds between two looks at rules and decisions while the page is open."""
_NEWEST = 5
"""Calls whose numbers the selected rule names."""
_LOW = 14
"""Rows of the window below which the page shortens its foot."""


class PermissionsScreen(ListPage[Entry, None]):
    """The page; it follows the run behind it."""

    WHERE = "permissions"
    KEYS = ("show_calls", "add_rule", "remove_rule", "close")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("permissions")]
    DEFAULT_CSS = """
    PermissionsScreen {
        & #permissions-rule { height: 1; border: none; padding: 0; display: none; background: $panel; }
        &.-adding #permissions-rule { display: block; }
        &.-low .list-detail { height: 1; margin-top: 0; }
    }
    """

    def __init__(
        self,
        rules: "SessionRules",
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
        super().__init__("Permissions")
        self._rules = rules
        self._status = status
        self._hits = hits
        self._ledger = ledger
        self._in_force = RulesInForce()
        self._calls_of: Entry | None = None
        self._seen: object = None
        self._origin_room = 0
        self._input = LineInput(
            placeholder="allow bash(make:*)", id="permissions-rule", compact=True, select_on_focus=False
        )

    def fields(self) -> Iterable[Widget]:
        """Return the line for a new rule."""
        return (self._input,)

    def on_mount(self) -> None:
        """Show the rules, and follow their changes."""
        # A blinking cursor wakes an idle program twice a second.
        self._input.cursor_blink = False
        self._read()
        self.set_interval(POLL_SECONDS, self._read)

    def on_resize(self, event: Resize) -> None:
        """Shorten the foot in a low window."""
        self.set_class(event.size.height < _LOW, "-low")

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_show_calls(self) -> None:
        """List the calls that the selected rule decided."""
        if self._calls_of is None and self.selected is not None:
            self._calls_of, self._message = self.selected, ("", "")
            self.show(anew=True)

    def action_add_rule(self) -> None:
        """Open the line for a new rule."""
        if self._calls_of is None:
            self.add_class("-adding")
            self._input.focus()
            self.say("allow, ask or deny, then a tool with a pattern: deny edit(secret/**)", "muted")

    def action_remove_rule(self) -> None:
        """Remove the selected rule if it belongs to the session; say where any other rule comes from."""
        entry = self.selected
        if self._calls_of is not None or entry is None:
            return
        if not entry.is_removable or entry.rule is None:
            self.say(_why_it_stays(entry), "warning")
        elif self._rules.remove(entry.rule.verdict, entry.rule.text):
            self.say(f"Removed: {entry.verdict} {entry.text}. It counts for no further call.")
        self._read(anyway=True)

    def action_close(self) -> None:
        """Close the line for a new rule, or return to the rules, or close the page."""
        if self._is_adding:
            self._end_input()
        elif self._calls_of is not None:
            self._calls_of = None
            self.show(anew=True)
            self.rows.reveal()
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
            self.say(refused, "warning")
            return
        before = set(self.rows.items)
        self._end_input()
        self.say(f"Added for this session: {text}")
        self._read(anyway=True)
        added = [place for place, entry in enumerate(self.rows.items) if entry not in before]
        if added:
            self.rows.select(added[-1])
            self.show()

    def may_click(self, action: str) -> bool:
        """Return True unless the user types a rule."""
        return not self._is_adding

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def _is_adding(self) -> bool:
        return self.has_class("-adding")

    def _end_input(self) -> None:
        self.remove_class("-adding")
        self._input.clear()
        self.set_focus(None)
        self.say("")

    def _read(self, *, anyway: bool = False) -> None:
        """Read rules, mode and decisions again, and show what changed."""
        self._in_force, status = self._rules.in_force(), self._status()
        seen = (self._in_force, status.mode, len(status.asking), self._hits().total)
        if seen != self._seen or anyway:
            self._seen = seen
            self.use(entries_of(self._in_force, status.mode))

    def layout_rows(self, width: int) -> Layout:
        """Return the rules, or the calls that one of them decided."""
        if (entry := self._calls_of) is None:
            self._origin_room = origin_room(self.rows.items, width)
            return super().layout_rows(width)
        calls = [self._ledger().find(call_id) for call_id in self._hits().of(entry.key)]
        return call_rows(entry, calls, lambda call: state_text(call.view), width), ()

    def heading_rows(self, width: int) -> Sequence[Line]:
        """Return the mode, and how rules combine."""
        return heading_rows(self._in_force, self._status().mode, width)

    def item_row(self, item: Entry, place: int, width: int) -> Line:
        """Return the row of an entry, with the number of calls that it decided."""
        hits, at_cursor = len(self._hits().of(item.key)), place == self.rows.cursor
        return entry_row(place + 1, item, hits, width, self._origin_room, at_cursor=at_cursor)

    def detail_rows(self, item: Entry, width: int) -> Sequence[Line]:
        """Return the selected entry in full, with the numbers of its newest calls."""
        if self._calls_of is not None:
            return ()
        calls = [self._ledger().find(call_id) for call_id in self._hits().of(item.key)[-_NEWEST:]]
        return detail_rows(item, [f"#{call.number}" for call in calls if call is not None], width, 2)

    def summary(self) -> Run:
        """Return how many calls need the user, else the number of rules."""
        if asking := len(self._status().asking):
            needs = "needs" if asking == 1 else "need"
            keys = ", then ".join(command(name).key_text for name in ("permissions.close", "chat.next_approval"))
            return f"▲ {count_text(asking, 'call')} {needs} you · {keys}", "warning"
        own = sum(entry.is_removable for entry in self.rows.items)
        return f"{count_text(len(self._in_force.rules), 'rule')}, {own} of this session", "muted"

    def counts(self, name: str) -> bool:
        """Return True for the key that removes a rule only if the selected one belongs to the session."""
        return name != "remove_rule" or (self.selected is not None and self.selected.is_removable)

    def key_runs(self) -> list[Run]:
        """Return the keys of the rules, of the line for a new one, or of the list of calls."""
        if self._is_adding:
            return [("enter", "key"), (" add   ", ""), (command("permissions.close").key_text, "key"), (" cancel", "")]
        if self._calls_of is not None:
            return [(hint("permissions.close", "back to the rules"), "muted")]
        return super().key_runs()


def _why_it_stays(entry: Entry) -> str:
    """Return why an entry cannot be removed here."""
    if entry.rule is None:
        return "This is built in. /mode changes the mode." if entry.key == "mode" else "This is built in and stays."
    origin = sanitise(entry.origin)
    if origin.startswith("--"):
        return f"This rule comes from the option {origin}; start without it."
    return f"This rule stays: delete it from {origin}; that applies at once."
