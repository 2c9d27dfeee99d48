"""Items of the pages of changed files, tools, definitions and hooks, and the choices of a review."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.protocol.facts.change_facts import Revision
from tui_agent.protocol.facts.page_facts import DefinitionFact, HookFact, ToolFact
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.state.plan_and_files import ChangedFiles
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible
from tui_agent.ui.text.styled_lines import clipped

from .chooser_page import Item

if TYPE_CHECKING:
    pass

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
            change.diff for change in call.view.changes.files if change.path == path or change.path.endswith(f"/{path}")
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
