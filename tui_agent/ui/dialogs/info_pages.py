"""Text of pages: what fills the model's context window, the report of a run, changed files and the tools."""

from collections.abc import Callable, Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import count_text, share_text, tokens_text
from tui_agent.protocol.facts.definition_facts import DefinitionFact
from tui_agent.protocol.facts.rule_facts import ToolFact
from tui_agent.protocol.facts.server_facts import ServerFact
from tui_agent.protocol.report_text import report_text
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.base.commands import hint
from tui_agent.ui.state.changed_files import ChangedFiles
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible

if TYPE_CHECKING:
    from tui_agent.workbench.context_breakdown import ContextBreakdown

MAX_LISTED_CALLS = 12
"""Calls that are listed, the largest first."""

MAX_NUMBERS = 6
"""Calls of one file that are named, the newest ones."""
_NAME = 26
_SIZE = 8
_BAR = 24
"""Cells of the columns, and of the longest bar."""

_MARGIN = 4

_LAYERS = {
    "agentloop.system": "instructions of the agent",
    "agentloop.context": "environment and task",
    "agentloop.output": "format of the answer",
    "_legacy_system": "system prompt",
    "user.append": "text you appended",
}
"""Names of the layers that the agent itself sets."""

_Entry = tuple[str, int]


def context_text(
    breakdown: "ContextBreakdown", window: int, number_of: Callable[[str], int | None], width: int
) -> Content:
    """Return each part of the context with its size, then the largest calls.

    Args:
        breakdown: tokens by part, estimated from characters.
        window: tokens of the context window; 0 if unknown.
        number_of: returns a call's number in the panel.
        width: cells of a row.
    """
    total = breakdown.total
    room = f" of {tokens_text(window)} ({share_text(total, window)})" if window else ""
    calls = sum(call.tokens for call in breakdown.calls)
    spoken = (("you", breakdown.user), ("the model", breakdown.assistant), ("condensed", breakdown.condensed))
    largest = [(_call_name(call.tool_name, number_of(call.call_id)), call.tokens) for call in breakdown.calls]
    parts = [
        _row("estimated tokens", total, max(window, total), f"{tokens_text(total)}{room}", width),
        *_section("System prompt", [(_LAYERS.get(name, name), size) for name, size in breakdown.layers], total, width),
        *_section("Tools", breakdown.tools, total, width),
        *_section("Messages", [entry for entry in spoken if entry[1]], total, width),
        *_section(f"Calls and results  {tokens_text(calls)}" if calls else "", breakdown.by_tool, total, width),
        *_section("Largest calls", largest[:MAX_LISTED_CALLS], total, width),
    ]
    return Content("\n").join(parts)


def run_text(report: AgentRunReport) -> Content:
    """Return a run's report with a line for each step and call."""
    return Content(sanitise(report_text(report)))


def files_text(files: ChangedFiles, number_of: Callable[[str], int | None], width: int) -> Content:
    """Return every changed file with its counts and the calls that changed it, the newest first."""
    heading = f"{count_text(len(files.files), 'file')} changed. {hint('chat.toggle_panel', 'shows the calls')}."
    rows = [Content.styled(heading, "$text-muted"), Content("")]
    for path, totals in reversed(files.files.items()):
        numbers = [number for call_id in files.calls_of(path) if (number := number_of(call_id)) is not None]
        calls = " ".join(f"#{number}" for number in numbers[-MAX_NUMBERS:])
        counts = Content.assemble((f"  +{totals.added}", "$success"), (f" −{totals.removed}", "$error"), f"  {calls}")
        rows.append(Content(one_line(visible(path), max(8, width - counts.cell_length))) + counts)
    return Content("\n").join(rows)


def tools_text(tools: Sequence[ToolFact], width: int) -> Content:
    """Return each tool with its effects, its description, and the rules that apply to some of its calls."""
    rows = [
        Content.styled(
            f"The model can call {len(tools)} tools. {hint('chat.toggle_panel', 'shows the calls')}.", "$text-muted"
        )
    ]
    for tool in tools:
        traits = ["only reads" if tool.is_read_only else "can change things"]
        traits += ["runs beside others"] if tool.is_parallel else []
        name = one_line(visible(tool.name), _NAME)
        rows += [Content(""), Content.assemble((name, "$primary bold"), (f"  {', '.join(traits)}", "$text-muted"))]
        rows += _wrapped(visible(tool.description), width, "$text")
        rules = [one_line(visible(rule), max(8, width - _MARGIN)) for rule in tool.rules]
        rest = "inside the workspace it runs" if tool.is_read_only else "the mode decides"
        rules = rules or [f"no rule names it; {rest}"]
        rows += [Content.styled(f"{' ' * _MARGIN}{rule}", "$text-muted") for rule in rules]
    return Content("\n").join(rows)


def servers_text(servers: Sequence[ServerFact], width: int) -> Content:
    """Return each tool server with its state, its target, and what it offers."""
    rows: list[Content] = []
    for server in servers:
        state = {"ready": "ready", "failed": "failed", "degraded": "starting again"}.get(server.state, server.state)
        style = {"ready": "$success", "failed": "$error", "degraded": "$warning"}.get(server.state, "$text-muted")
        info = f"  {sanitise(server.info)}" if server.info else ""
        rows += [
            Content(""),
            Content.assemble((server.name, "$primary bold"), (f"  {state}", style), (info, "$text-muted")),
        ]
        rows += _wrapped(sanitise(server.error), width, "$error") if server.error else []
        rows += _wrapped(visible(f"{server.target}  ({server.origin})"), width, "$text-muted")
        for heading, entries in (
            ("tools", server.tools),
            *(("left out", (problem,)) for problem in server.left_out),
            ("prompts", server.prompts),
            ("resources", server.resources),
        ):
            rows += _wrapped(visible(f"{heading}: {', '.join(entries)}"), width, "$text") if entries else []
    rows += [
        Content(""),
        Content.styled("/mcp restart NAME · /mcp log NAME · rules: allow mcp__NAME__*", "$text-muted"),
    ]
    return Content("\n").join(rows[1:])


def definitions_text(facts: Sequence[DefinitionFact], width: int) -> Content:
    """Return each skill, command and sub-agent with its file, then those that are not used, with the reason."""
    if not facts:
        where = "skills/, commands/ and agents/ of .tui-agent/ or .claude/, here or in your home directory"
        return Content("\n").join(_wrapped(f"No file defines any. They are Markdown files in {where}.", width, "$text"))
    rows: list[Content] = []
    for kind in ("skill", "command", "sub-agent"):
        entries = [fact for fact in facts if fact.kind == kind and not fact.problem]
        if entries:
            rows += [Content(""), Content.styled(f"{kind}s".capitalize(), "$primary bold")]
        for fact in entries:
            name = f"/{fact.name}" if kind == "command" else fact.name
            file = one_line(visible(fact.file), max(8, width - len(name) - _MARGIN))
            rows.append(
                Content.assemble((f"  {one_line(visible(name), width)}", "$text bold"), (f"  {file}", "$text-muted"))
            )
            rows += _wrapped(visible(fact.description), width, "$text")
    if problems := [fact.problem for fact in facts if fact.problem]:
        rows += [Content(""), Content.styled("Not used", "$warning bold")]
        rows += [row for problem in problems for row in _wrapped(visible(problem), width, "$text")]
    return Content("\n").join(rows[1:])


def _wrapped(text: str, width: int, style: str) -> list[Content]:
    margin = " " * 2
    return [Content.styled(margin + row, style) for row in wrap(text, max(20, width - 2))]


def _section(title: str, entries: Iterable[_Entry], total: int, width: int) -> Iterable[Content]:
    rows = [_row(name, tokens, total, tokens_text(tokens), width) for name, tokens in entries]
    return [Content(""), Content.styled(title, "$primary bold"), *rows] if rows else ()


def _row(name: str, tokens: int, whole: int, words: str, width: int) -> Content:
    """Return name, size, and a bar if there is room for it."""
    bar = "█" * max(round(_BAR * tokens / whole), 1 if tokens else 0) if whole else ""
    head = f"  {one_line(visible(name), _NAME):<{_NAME}}  {words:>{_SIZE}}  "
    return Content.assemble((head, "$text"), (bar if width >= len(head) + _BAR else "", "$text-muted"))


def _call_name(tool: str, number: int | None) -> str:
    return f"#{number} {tool}" if number is not None else tool
