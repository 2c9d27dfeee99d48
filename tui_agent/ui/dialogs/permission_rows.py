"""Rows of the permissions page: everything that decides about calls, in order, with the calls it decided. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.facts.rule_facts import RuleFact, RulesInForce
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.state.rule_hits import FLOOR_ASKS
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

_NUMBER = 4
_VERDICT = 7
_HITS = 10
_WITH_ORIGIN = 72
"""Cells from which a row also has the origin of its rule."""
_LONGEST = 300
"""Most cells shown of a rule."""

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

    @property
    def is_removable(self) -> bool:
        """True if it is a rule of the session."""
        return self.rule is not None and self.rule.is_session


def entries_of(rules: RulesInForce, mode: PermissionMode) -> list[Entry]:
    """Return everything that decides about calls, in the order in which it is checked."""
    verdict, rest = _REST[mode]
    floor = "edits of protected paths: .git, .husky, node_modules, .mcp.json, tui-agent's own files"
    asks = "what commands change there, and private paths"
    return [
        Entry("floor", "deny", floor, "built in"),
        Entry(FLOOR_ASKS, "ask", asks, "built in"),
        *(Entry(rule.cited, rule.verdict, rule.text, rule.origin, rule) for rule in rules.rules),
        Entry("read_only", "allow", "calls that only read inside the workspace", "built in"),
        Entry("mode", verdict, rest, f"mode {mode.value}"),
    ]


def heading_rows(rules: RulesInForce, mode: PermissionMode, width: int) -> list[Line]:
    """Return mode, place of commands, and how rules combine."""
    place = f" · trial: {visible(rules.sandbox)}" if rules.sandbox else ""
    within = "the strictest rule" if rules.strictest_wins else "the first rule that matches"
    order = f"In each file {within} decides, and the strictest of all files wins. Allow rules of the session come last."
    facts: list[Run] = [("mode ", "muted"), (mode.value, "strong"), (place, "muted")]
    return [*wrapped(facts, width), *wrapped([(order, "muted")], width), Line()]


def origin_room(entries: Sequence[Entry], width: int) -> int:
    """Return the cells for the origins of all entries; 0 if a row has no room for them."""
    longest = max((len(visible(entry.origin)) for entry in entries), default=0)
    return min(width // 3, longest) if width >= _WITH_ORIGIN else 0


def entry_row(number: int, entry: Entry, hits: int, width: int, origin_width: int, *, at_cursor: bool) -> Line:
    """Return the row of one entry: its place, verdict and rule, then the calls it decided and its origin."""
    count = count_text(hits, "call") if hits else "–"
    right: list[Run] = [(f"{count:>{_HITS}}", "" if hits else "muted")]
    if origin_width:
        origin = visible(entry.origin)
        # The end of a path has the file and the line.
        shown = origin if len(origin) <= origin_width else f"…{origin[1 - origin_width :]}"
        right.append((f"  {one_line(shown, origin_width):<{origin_width}}", "muted"))
    used = sum(len(text) for text, _ in right) + _NUMBER + _VERDICT + 2
    room = max(8, width - used)
    text = one_line(visible(entry.text), room)
    runs: list[Run] = [("› " if at_cursor else "  ", "key"), (f"{number:>{_NUMBER - 1}} ", "muted")]
    runs.append((f"{entry.verdict:<{_VERDICT}}", _STYLES[entry.verdict]))
    style = ("strong" if at_cursor else "") if entry.rule is not None else "muted"
    return Line(clipped([*runs, (f"{text:<{room}}", style), *right], width))


def detail_rows(entry: Entry, numbers: Sequence[str], width: int, height: int) -> list[Line]:
    """Return the selected entry in full: rule, origin, and the numbers of its newest calls."""
    rule = one_line(visible(entry.text), _LONGEST)
    runs: list[Run] = [(f"{entry.verdict} {rule}", "strong"), (f" · {one_line(visible(entry.origin), 120)}", "muted")]
    if numbers:
        runs.append((f" · newest: {' '.join(numbers)}", "muted"))
    return wrapped(runs, width)[:height]


def call_rows(
    entry: Entry, calls: Sequence[LedgerCall | None], state_of: Callable[[LedgerCall], str], width: int
) -> list[Line]:
    """Return the calls that an entry decided, newest first; None stands for a call that is no longer known."""
    rows = [*wrapped([(f"{entry.verdict} ", _STYLES[entry.verdict]), (visible(entry.text), "strong")], width)]
    rows += [*wrapped([(visible(entry.origin), "muted")], width), Line()]
    if not calls:
        return [*rows, *wrapped([("It has decided no call in this session.", "muted")], width)]
    known = [call for call in calls if call is not None]
    for call in reversed(known):
        state = state_of(call)
        name = one_line(visible(call.view.name), 16)
        room = max(8, width - len(state) - len(name) - 9)
        summary = one_line(visible(call.view.summary), room)
        runs: list[Run] = [(f"{f'#{call.number}':>5} ", "muted"), (f"{name} ", "strong"), (f"{summary:<{room}} ", "")]
        rows.append(Line(clipped([*runs, (state, "muted")], width)))
    if len(known) < len(calls):
        left = count_text(len(calls) - len(known), "call")
        rows += wrapped([(f"{left} of an earlier part of the session are not listed.", "muted")], width)
    return rows
