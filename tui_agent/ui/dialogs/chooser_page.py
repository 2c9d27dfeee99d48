"""Choosers and lists of facts: one page for all of them, and the items of each.

A chooser returns the id of the chosen item; a list of facts opens the selected one in full.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import count_text, tokens_text
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.facts.change_facts import Revision
from tui_agent.protocol.facts.page_facts import DefinitionFact, HookFact, ModelFact, ServerFact, ToolFact
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.state.plan_and_files import ChangedFiles
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import PartPage
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .list_page import ListPage
from .text_page import POLL_SECONDS, TextPage

if TYPE_CHECKING:
    from tui_agent.workbench.session_servers import SessionServers


SAMPLE: tuple[tuple[Run, ...], ...] = (
    (("You", "you"),),
    (("  fix the failing price test", ""),),
    (("Assistant", "assistant"),),
    (("  The rounding happens ", ""), ("twice", "strong"), (" in ", ""), ("price.py", "code"), (".", "")),
    (("✔ ", "success"), ("pytest ", "tool-run"), ("12 passed", "muted")),
    (("▲ ", "warning"), ("git commit ", "tool-run"), ("needs you", "warning")),
    (("✖ ", "error"), ("mypy ", "tool-run"), ("exit code 1", "error")),
)
"""Rows that show the colours of a theme."""
SAMPLE_DIFF = Diff(
    "--- a/price.py\n+++ b/price.py\n@@ -7,2 +7,2 @@\n def total(items):\n"
    "-    return round(sum(items), 2)\n+    return sum(items)\n"
)


def _no_rows(width: int) -> Iterable[Line]:
    return ()


_WIDEST = 120
"""Most columns of a chooser."""
_SAID = ("name", "note")
"""Paragraphs that a row shows, too."""


@dataclass(frozen=True, slots=True)
class Item:
    """One choice or fact."""

    id: str
    name: str
    note: str = ""
    """Text right of the name, without hidden characters."""
    sign: Run = ("", "")
    """Character before the name."""
    paragraphs: tuple[tuple[Run, ...], ...] = ()
    """The item in full, wrapped to the width."""
    diffs: Callable[[int], Iterable[Line]] = _no_rows
    """Builds the rows below the paragraphs."""

    def rows(self, width: int) -> list[Line]:
        """Return the item in full."""
        rows = [row for runs in self.paragraphs for row in (wrapped(runs, width) if runs else [Line()])]
        return [*rows, *self.diffs(width)]


class ChooserPage(ListPage[Item, str]):
    """The page; letters search. Returns the id of the chosen item, or None if the user closes it."""

    WHERE = "items"
    KEYS = ("choose", "close")
    SEARCHES = True
    DETAIL_ROWS = 8

    def __init__(
        self,
        title: str,
        items: Callable[[], Sequence[Item]],
        state: str,
        *,
        opens: bool = False,
        follows: bool = False,
        selected: str = "",
        moved: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create the page.

        Args:
            opens: True if enter opens the selected item in full; else it chooses the item.
            selected: id of the item at the cursor at first.
            moved: called with the id of the selected item whenever the cursor moves.
        """
        super().__init__(title, key=lambda item: item.id)
        self._read = items
        self._text = state
        self._opens = opens
        self._follows = follows
        self._first = selected
        self._moved_to = moved

    def on_mount(self) -> None:
        self._use_items()
        if self._follows:
            self.set_interval(POLL_SECONDS, self._use_items)
        self.call_after_refresh(self.rows.reveal)

    def update(self, state: str) -> None:
        """Show the items as they are now, and another state."""
        self._text = state
        self._use_items()

    def _use_items(self) -> None:
        items = self._read()
        self.use(items, next((place for place, item in enumerate(items) if item.id == self._first), 0))

    def has_preview(self) -> bool:
        return any(len(item.paragraphs) > len(_SAID) or item.diffs is not _no_rows for item in self._read())

    def body_rows(self, width: int) -> int:
        """Return the rows of all choices, or of the highest preview beside them; facts fill the window."""
        if self._opens:
            return 0
        items = self._read()
        beside = width >= self.BESIDE and self.has_preview()
        # The share of the preview in the style sheet of `ListPage`, without its border and padding.
        previews = (len(item.rows(min(width, _WIDEST) * 38 // 100 - 4)) for item in items if beside)
        return max(1, len(items), *previews)

    def action_choose(self) -> None:
        """Return the selected item, or open it."""
        if (item := self.selected) is None:
            return
        if self._opens:
            # What the user copies has no line ends of a narrow window.
            text = "\n".join(row.plain.rstrip() for row in item.rows(200))
            self.app.push_screen(PartPage(one_line(visible(item.name), 60), text, item.rows))
        else:
            self.dismiss(item.id)

    def cursor_moved(self) -> None:
        super().cursor_moved()
        if self.selected is not None:
            self._moved_to(self.selected.id)

    def item_row(self, item: Item, place: int, width: int) -> Line:
        has_signs = any(one.sign[0] for one in self.all_items)
        column = min(width // 2, 2 + max(len(visible(one.name)) for one in self.all_items))
        sign: list[Run] = [(f"{item.sign[0]:<2}", item.sign[1])] if has_signs else []
        name = f"{one_line(visible(item.name), column - 2):<{column}}"
        runs = [self.cursor_sign(place), *sign, (name, "strong" if place == self.rows.cursor else "")]
        return Line(clipped([*runs, (one_line(item.note, 300), "muted")], width))

    def detail_rows(self, item: Item, width: int) -> Sequence[Line]:
        return item.rows(width)

    def search_text(self, item: Item) -> str:
        return " ".join((item.name, item.note, *(text for runs in item.paragraphs for text, _ in runs)))

    def search_name(self, item: Item) -> str:
        return item.name

    def summary(self) -> Run:
        return self._text, "muted"

    def key_answers(self) -> list[tuple[str, str, bool]]:
        (enter, _, counts), *others = super().key_answers()
        return [(enter, "open" if self._opens else "use it", counts), *others]


def choices(
    texts: Mapping[str, str], current: str, rows: Sequence[tuple[Run, ...]] = (), diff: Diff | None = None
) -> list[Item]:
    """Return choices with what each does; a sign marks the current one. `rows` and `diff` follow the text of each."""

    def diffs(width: int) -> Iterable[Line]:
        return [Line(), *diff_rows(diff.files, width, split=False)] if diff is not None else ()

    return [
        Item(
            name,
            name.replace("_", " "),
            text,
            ("●" if name == current else "", "key"),
            (((name.replace("_", " "), "strong"),), ((text, "muted"),), *(((), *rows) if rows else ())),
            _no_rows if diff is None else diffs,
        )
        for name, text in texts.items()
    ]


def model_items(models: Sequence[ModelFact]) -> list[Item]:
    """Return the models with window and price for a million tokens."""
    more = "/model NAME uses a model that is not listed; --default makes it that of new sessions, too."
    return [
        Item(
            model.name,
            model.name,
            f"{tokens_text(model.window):>6}{'?' if model.is_assumed else ' '} {model.price}",
            ("●" if model.is_current else "", "key"),
            (
                ((visible(model.name), "strong"),),
                ((visible(model.provider), "muted"),),
                ((f"context of {model.window_text}", ""),),
                ((model.price, ""),),
                (),
                ((more, "muted"),),
            ),
        )
        for model in models
    ]


_SERVER_STATES = {
    "ready": ("ready", "success"),
    "failed": ("failed", "error"),
    "degraded": ("starting again", "warning"),
}
"""Words and style for the state of a server."""


class ServersPage(ChooserPage):
    """The tool servers: enter shows the log of one, and a key starts it anew."""

    WHERE = "servers"
    KEYS = ("open_log", "restart", "close")

    def __init__(self, servers: "SessionServers") -> None:
        """Create the page for the servers of a session."""
        rules = "rules for one: allow mcp__NAME__*"
        super().__init__("Tool servers", lambda: server_items(servers.list()), rules, follows=True)
        self._servers = servers

    def action_open_log(self) -> None:
        """Show the last lines of the selected server."""
        if (item := self.selected) is not None:
            name, missing = item.id, f"There are no lines of a server {item.id}."
            log = TextPage(
                f"Log of {name}", lambda _: Content(sanitise(self._servers.log(name)) or missing), follows=True
            )
            self.app.push_screen(log)

    def action_restart(self) -> None:
        """Start the selected server anew."""
        if (item := self.selected) is not None:
            refused = self._servers.restart(item.id)
            self.say(refused or f"{item.id} starts anew.", "warning" if refused else "")

    def key_answers(self) -> list[tuple[str, str, bool]]:
        # Enter opens a log here, it chooses nothing.
        return ListPage[Item, str].key_answers(self)


def server_items(servers: Sequence[ServerFact]) -> list[Item]:
    """Return each tool server with its state, its target, and what it offers."""
    items: list[Item] = []
    for server in servers:
        state, style = _SERVER_STATES.get(server.state, (server.state, "muted"))
        offers = (
            ("tools", server.tools),
            *(("left out", (problem,)) for problem in server.left_out),
            ("prompts", server.prompts),
            ("resources", server.resources),
        )
        paragraphs = (
            ((server.name, "strong"), (f"  {state}", style), (f"  {sanitise(server.info)}", "muted")),
            *((((sanitise(server.error), "error"),),) if server.error else ()),
            ((visible(f"{server.target}  ({server.origin})"), "muted"),),
            *(((f"{heading}: ", "muted"), (visible(", ".join(entries)), "")) for heading, entries in offers if entries),
        )
        note = visible(server.error.partition("\n")[0]) or count_text(len(server.tools), "tool")
        items.append(Item(server.name, server.name, f"{state} · {note}", ("●", style), paragraphs))
    return items


# --- files, tools, definitions, hooks and reviews ---------------------------------------------------------------------

MAX_NUMBERS = 6
"""Calls of one file that its row names, the newest ones."""
_KINDS = ("skill", "command", "sub-agent")


def file_items(files: ChangedFiles, ledger: CallLedger) -> list[Item]:
    """Return every changed file with its counts, the newest first; in full, with the differences of each call."""
    items: list[Item] = []
    for path, totals in reversed(files.files.items()):
        calls = [call for name in files.calls_of(path) if (call := ledger.find(name)) is not None]
        numbers = " ".join(f"#{call.number}" for call in calls[-MAX_NUMBERS:])
        note = f"+{totals.added} −{totals.removed}  {numbers}"
        heading = (((visible(path), "strong"),), ((note, "muted"),))
        items.append(Item(path, path, note, paragraphs=heading, diffs=partial(_diffs_of, path, calls)))
    return items


def _diffs_of(path: str, calls: Sequence[LedgerCall], width: int) -> Iterable[Line]:
    """Yield the differences that each call has made to a file, the newest first."""
    for call in reversed(calls):
        diffs = [
            # A call may name the whole path, the list has it without the workspace.
            change.diff
            for change in call.view.changes.files
            if change.path == path or change.path.endswith(f"/{path}")
        ]
        if any(diffs):
            # The path is above already.
            rest = "" if path in call.view.summary else sanitise(call.view.summary)
            name = one_line(f"{sanitise(call.view.name)} {rest}".rstrip(), width)
            yield Line()
            yield Line(clipped([(f"#{call.number} ", "muted"), (name, "label")], width))
            for diff in filter(None, diffs):
                yield from diff_rows(diff.files, width, clean=visible)


def tool_items(tools: Sequence[ToolFact]) -> list[Item]:
    """Return each tool with its effects, its description, and the rules that apply to some of its calls."""
    items: list[Item] = []
    for tool in tools:
        traits = "only reads" if tool.is_read_only else "can change things"
        rest = "inside the workspace it runs" if tool.is_read_only else "the mode decides"
        paragraphs = (
            ((visible(tool.name), "strong"),),
            ((f"{traits}, runs beside others" if tool.is_parallel else traits, "muted"),),
            ((visible(tool.description), ""),),
            (),
            *(((visible(rule), ""),) for rule in tool.rules or (f"no rule names it; {rest}",)),
        )
        items.append(Item(tool.name, tool.name, traits, paragraphs=paragraphs))
    return items


def definition_items(facts: Sequence[DefinitionFact]) -> list[Item]:
    """Return each skill, command and sub-agent with its file, then those that are not used, with the reason."""
    items: list[Item] = []
    for fact in sorted(facts, key=lambda fact: (bool(fact.problem), _KINDS.index(fact.kind))):
        name = f"/{fact.name}" if fact.kind == "command" else fact.name
        paragraphs = (
            ((visible(name), "strong"), (f"  {fact.kind}", "muted")),
            *((((visible(fact.file), "muted"),),) if fact.file else ()),
            ((visible(fact.problem or fact.description), "warning" if fact.problem else ""),),
        )
        note = f"{fact.kind:<10} {visible(fact.problem or fact.description)}"
        items.append(
            Item(f"{fact.kind} {fact.name} {fact.file} {fact.problem}", name, note, _sign(fact.problem), paragraphs)
        )
    return items


def hook_items(facts: Sequence[HookFact]) -> list[Item]:
    """Return each hook with its command, its file and its last answer, and the entries that are not used."""
    items: list[Item] = []
    for place, fact in enumerate(facts):
        last = f"last: {fact.last}" if fact.last else "has not run yet"
        style = "error" if fact.has_failed else "muted"
        if fact.problem:
            last, style = f"does not run: {fact.problem}" if fact.event else fact.problem, "warning"
        origin = f"for {fact.matcher} · {fact.origin}" if fact.matcher else fact.origin
        paragraphs = (
            ((visible(fact.command), "strong"),),
            ((visible(fact.event or "not used"), ""),),
            ((visible(origin), "muted"),),
            ((visible(last), style),),
        )
        sign = ("✖", "error") if fact.has_failed else _sign(fact.problem)
        name = fact.event or "not used"
        items.append(Item(f"{place} {fact.command}", name, visible(fact.command or fact.problem), sign, paragraphs))
    return items


def _sign(problem: str) -> Run:
    return ("▲", "warning") if problem else ("", "")


WORK_TREE = "work tree"
"""Choice of a review that needs no argument; no branch has this name."""


def review_items(revisions: Sequence[Revision]) -> list[Item]:
    """Return what can be reviewed: the work tree, the last commit, other branches, earlier commits."""
    commits = [one for one in revisions if one.kind == "commit"]
    chosen = [("HEAD", "last commit", commits[0].text)] if commits else []
    chosen += [(one.name, f"branch {one.name}", one.text) for one in revisions if one.kind == "branch"]
    chosen += [(one.name, f"commit {one.name}", one.text) for one in commits[1:]]
    items = [Item(WORK_TREE, WORK_TREE, "what is not committed")]
    return items + [Item(name, visible(title), visible(text)) for name, title, text in chosen]
