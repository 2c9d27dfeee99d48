"""The permissions page: rules in force with the calls they decided. The user adds and removes those of the session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.facts.page_facts import RuleFact, RulesInForce
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.ui.base.commands import command
from tui_agent.ui.panel.call_page import state_text
from tui_agent.ui.state.approval_folds import FLOOR_ASKS, RuleHits
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import PartPage
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible, visible_summary
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage

if TYPE_CHECKING:
    from tui_agent.workbench.session_rules import SessionRules

POLL_SECONDS = 0.5
"""Seconds between two looks at rules and decisions while the page is open."""
_NEWEST = 5
"""Calls whose numbers the selected rule names."""
_NUMBER = 4
_VERDICT = 7
_HITS = 10
_WITH_ORIGIN = 72
"""Cells from which a row also has the origin of its rule."""
_LONGEST = 300
"""Most cells shown of a rule below the list."""

_STYLES: dict[Verdict, str] = {"allow": "success", "ask": "warning", "deny": "error"}

_REST: dict[PermissionMode, tuple[Verdict, str]] = {
    PermissionMode.ASK: ("ask", "every other change, and what leads outside"),
    PermissionMode.ACCEPT_EDITS: ("ask", "changes other than of files here, and what leads outside"),
    PermissionMode.PLAN: ("deny", "every other change"),
    PermissionMode.ALLOW: ("allow", "every other call"),
    PermissionMode.DENY: ("deny", "every other change, and what leads outside"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that decides about calls: a rule, or what is built in."""

    key: str
    """The name under which decisions cite it."""
    verdict: Verdict
    text: str
    origin: str
    rule: RuleFact | None = None
    """None for what is built in."""
    # A rule that moves is still the same entry, so the cursor stays on it.
    number: int = field(default=0, compare=False)
    """Its place in the order in which everything is checked, from 1."""

    @property
    def is_removable(self) -> bool:
        """True if it is a rule of the session."""
        return self.rule is not None and self.rule.is_session


def entries_of(rules: RulesInForce, mode: PermissionMode) -> list[Entry]:
    """Return everything that decides about calls, in the order in which it is checked."""
    verdict, rest = _REST[mode]
    floor = "edits of protected paths: .git, .husky, node_modules, .mcp.json, tui-agent's own files"
    asks = "what commands change there, and private paths"
    entries = [
        Entry("floor", "deny", floor, "built in"),
        Entry(FLOOR_ASKS, "ask", asks, "built in"),
        *(Entry(rule.cited, rule.verdict, rule.text, rule.origin, rule) for rule in rules.rules),
        Entry("read_only", "allow", "calls that only read inside the workspace", "built in"),
        Entry("mode", verdict, rest, f"mode {mode.words}"),
    ]
    return [replace(entry, number=number) for number, entry in enumerate(entries, 1)]


class PermissionsScreen(ListPage[Entry, None]):
    """The page; it follows the run behind it."""

    WHERE = "permissions"
    KEYS = ("show_calls", "add_rule", "remove_rule", "search", "close")

    def __init__(
        self,
        rules: "SessionRules",
        status: Callable[[], SessionStatus],
        hits: Callable[[], RuleHits],
        ledger: Callable[[], CallLedger],
    ) -> None:
        super().__init__("Permissions")
        self._rules = rules
        self._status = status
        self._hits = hits
        self._ledger = ledger
        self._in_force = RulesInForce()
        self._seen: object = None
        self._longest_origin = 0

    def on_mount(self) -> None:
        self._read()
        self.set_interval(POLL_SECONDS, self._read)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_show_calls(self) -> None:
        """List the calls that the selected rule decided."""
        if (entry := self.selected) is not None:
            text = "\n".join(row.plain.rstrip() for row in self._calls_page(entry, 200))
            self.app.push_screen(PartPage("Calls of a rule", text, lambda width: self._calls_page(entry, width)))

    def action_add_rule(self) -> None:
        """Ask for a new rule."""
        keys = ("add", "cancel")
        self.ask("new rule", self._add, hint="allow bash(make:*)", keys=keys)
        self.say("allow, ask or deny, then a tool with a pattern: deny edit(secret/**)", "muted")

    def action_remove_rule(self) -> None:
        """Remove the selected rule if it belongs to the session; say where any other rule comes from."""
        entry = self.selected
        if entry is None:
            return
        if not entry.is_removable or entry.rule is None:
            self.say(_why_it_stays(entry), "warning")
        elif self._rules.remove(entry.rule.verdict, entry.rule.text):
            self.say(f"Removed: {entry.verdict} {entry.text}. It counts for no further call.")
        self._read(anyway=True)

    def _add(self, typed: str) -> None:
        text = " ".join(typed.split())
        # A refused text stays in the field to be corrected.
        if refused := self._rules.add(text) if text else "":
            self.say(refused, "warning")
            return
        self.end_asking()
        if not text:
            self.say("")
            return
        before = set(self.all_items)
        self._read(anyway=True)
        added = [place for place, entry in enumerate(self.rows.items) if entry not in before]
        if added:
            self.rows.select(added[-1])
        self.say(f"Added for this session: {text}")

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _read(self, *, anyway: bool = False) -> None:
        """Read rules, mode and decisions again, and show what changed."""
        self._in_force, status = self._rules.in_force(), self._status()
        # Drawing twice a second would keep an idle program busy.
        seen = (self._in_force, status.mode, len(status.asking), self._hits().total)
        if seen != self._seen or anyway:
            self._seen = seen
            entries = entries_of(self._in_force, status.mode)
            self._longest_origin = max(len(visible(entry.origin)) for entry in entries)
            self.use(entries)

    def heading_rows(self, width: int) -> Sequence[Line]:
        rules = self._in_force
        place = f" · trial: {visible(rules.sandbox)}" if rules.sandbox else ""
        within = "the strictest rule" if rules.strictest_wins else "the first rule that matches"
        order = (
            f"In each file {within} decides, and the strictest of all files wins. Allow rules of the session come last."
        )
        facts: list[Run] = [("mode ", "muted"), (self._status().mode.words, "strong"), (place, "muted")]
        folders = [(f"also part of the workspace: {', '.join(map(visible, rules.folders))}", "muted")]
        return [
            *wrapped(facts, width),
            *(wrapped(folders, width) if rules.folders else ()),
            *wrapped([(order, "muted")], width),
            Line(),
        ]

    def item_row(self, item: Entry, place: int, width: int) -> Line:
        hits, at_cursor = len(self._hits().of(item.key)), place == self.rows.cursor
        count = count_text(hits, "call") if hits else "–"
        right: list[Run] = [(f"{count:>{_HITS}}", "" if hits else "muted")]
        if room := min(width // 3, self._longest_origin) if width >= _WITH_ORIGIN else 0:
            origin = visible(item.origin)
            # The end of a path has the file and the line.
            shown = origin if len(origin) <= room else f"…{origin[1 - room :]}"
            right.append((f"  {one_line(shown, room):<{room}}", "muted"))
        used = sum(len(text) for text, _ in right) + _NUMBER + _VERDICT + 2
        room = max(8, width - used)
        runs: list[Run] = [self.cursor_sign(place), (f"{item.number:>{_NUMBER - 1}} ", "muted")]
        runs.append((f"{item.verdict:<{_VERDICT}}", _STYLES[item.verdict]))
        style = ("strong" if at_cursor else "") if item.rule is not None else "muted"
        return Line(clipped([*runs, (f"{one_line(visible(item.text), room):<{room}}", style), *right], width))

    def search_text(self, item: Entry) -> str:
        return f"{item.verdict} {item.text} {item.origin}"

    def detail_rows(self, item: Entry, width: int) -> Sequence[Line]:
        if self.has_class("-beside"):
            return self._calls_page(item, width)
        rule = one_line(visible(item.text), _LONGEST)
        runs: list[Run] = [(f"{item.verdict} {rule}", "strong"), (f" · {one_line(visible(item.origin), 120)}", "muted")]
        calls = [self._ledger().find(call_id) for call_id in self._hits().of(item.key)[-_NEWEST:]]
        if numbers := [f"#{call.number}" for call in calls if call is not None]:
            runs.append((f" · newest: {' '.join(numbers)}", "muted"))
        return wrapped(runs, width)

    def _calls_page(self, entry: Entry, width: int) -> list[Line]:
        return call_rows(entry, [self._ledger().find(call_id) for call_id in self._hits().of(entry.key)], width)

    def summary(self) -> Run:
        if asking := len(self._status().asking):
            needs = "needs" if asking == 1 else "need"
            keys = ", then ".join(command(name).key_text for name in ("list.close", "chat.next_approval"))
            return f"▲ {count_text(asking, 'call')} {needs} you · {keys}", "warning"
        own = sum(entry.is_removable for entry in self.all_items)
        return f"{count_text(len(self._in_force.rules), 'rule')}, {own} of this session", "muted"

    def counts(self, name: str) -> bool:
        return name != "remove_rule" or (self.selected is not None and self.selected.is_removable)


def call_rows(entry: Entry, calls: Sequence[LedgerCall | None], width: int) -> list[Line]:
    """Return an entry with the calls that it decided, newest first; None stands for a call that is no longer known."""
    rows = wrapped([(f"{entry.verdict} ", _STYLES[entry.verdict]), (visible(entry.text), "strong")], width)
    rows += [*wrapped([(visible(entry.origin), "muted")], width), Line()]
    if not calls:
        return [*rows, *wrapped([("It has decided no call in this session.", "muted")], width)]
    known = [call for call in calls if call is not None]
    for call in reversed(known):
        state = state_text(call.view)
        name = one_line(visible(call.view.name), 16)
        room = max(8, width - len(state) - len(name) - 9)
        summary = one_line(visible_summary(call.view.summary), room)
        runs: list[Run] = [(f"{f'#{call.number}':>5} ", "muted"), (f"{name} ", "strong"), (f"{summary:<{room}} ", "")]
        rows.append(Line(clipped([*runs, (state, "muted")], width)))
    if len(known) < len(calls):
        left = count_text(len(calls) - len(known), "call")
        rows += wrapped([(f"{left} of an earlier part of the session are not listed.", "muted")], width)
    return rows


def _why_it_stays(entry: Entry) -> str:
    if entry.rule is None:
        return "This is built in. /mode changes the mode." if entry.key == "mode" else "This is built in and stays."
    origin = sanitise(entry.origin)
    if origin.startswith("--"):
        return f"This rule comes from the option {origin}; start without it."
    return f"This rule stays: delete it from {origin}; that applies at once."
