"""Parts of the conversation that show calls where they happened: one row each, with its result, that expands.

Pure: a part draws the state of its calls, which the ledger changes.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import TypeAlias

from rich.cells import cell_len

from tui_agent.protocol.amounts import bytes_text, count_text, seconds_text, tokens_text
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.visible_text import whole_count, without_sequences
from tui_agent.ui.panel.call_rows import change_facts, fitted_summary, sign_of, tail_lines
from tui_agent.ui.state.call_records import FileChange, lines_text, tool_kind
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.text.decision_rows import argument_texts
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import clip, joined_lines, one_line, sanitise, shown_path, without_controls
from tui_agent.ui.text.styled_lines import clipped, prefixed_lines, width_of_runs, wrapped
from tui_agent.ui.text.terminal_output import OutputReader, plain_output

from .transcript_layout import Part, Piece, shifted
from .transcript_parts import BODY, HEAD
from .transcript_words import first_line, outcome_of, state_of

BRIEF_DIFF_ROWS = 12
"""Most rows of the diff of a single file that are shown without expanding the call."""
OPEN_DIFF_ROWS = 60
"""Most rows shown of one file's diff in an expanded call; the call's page shows all."""
LONGEST_COMMAND = 20_000
"""Most characters shown of a command."""
LIVE_ROWS = 6
"""Most rows shown of a running call's newest output."""
HEAD_ROWS, TAIL_ROWS = 8, 16
"""Most rows shown of a result in an expanded call, from its beginning and from its end."""
MAX_FOUND_ROWS = 40
"""Most rows of a result between them that are shown because a search has found them."""
MAX_AGENT_CALLS = 40
"""Most calls of a sub-agent that are listed, the newest ones."""
MAX_FILES = 40
"""Most files listed; others are counted."""
LEAST_READS, MOST_READS = 2, 20
"""Least adjacent reads that are one row, and most calls of one part."""

_SIZE = re.compile(r" \([^()]*\)$")
_NEWEST_STEPS = 8
"""Newest calls of a running sub-agent among which one with output is sought."""
_SKIPPED_LINES = 40
"""Lines before the shown end of an output that are read for the colours they leave behind."""
_NAMES_IN_A_ROW = 20
_LONGEST_READ = 40
"""Most cells of what one of several reads read."""
_SEPARATOR: Run = (" · ", "muted")
_LONGEST = 400

_SIGN_STYLES = {
    "waiting": "muted",
    "asking": "warning",
    "running": "marker",
    "ok": "success",
    "failed": "error",
    "stopped": "muted",
}
"""Styles of the conversation for those of the panel's signs."""


@dataclass(slots=True)
class CallContext:
    """Context of all calls of a conversation."""

    find: Callable[[str], LedgerCall | None]
    """Finds a call by id."""
    at: Callable[[int], LedgerCall] | None = None
    """Returns a call by its index in the ledger."""
    root: str = ""
    """Working directory; paths below it are shown without it."""
    is_alone: bool = False
    """True if the panel is not beside the conversation: calls show their clocks and sizes here."""
    clock: Callable[[], float] = monotonic
    """Returns monotonic seconds."""


class CallPart(Part):
    """One call: its row with the result, the beginning of its change, and expanded its input, output and files."""

    def __init__(self, call: LedgerCall, context: CallContext, *, gap: bool = False) -> None:
        super().__init__(gap=gap)
        self.opened = False
        """True if the call is expanded."""
        self.is_followed = False
        """True if another call comes right below it; a diff then ends with an empty row."""
        self._call = call
        self._context = context

    @property
    def title(self) -> str:
        """Number and tool."""
        return _title_of(self._call)

    @property
    def copied(self) -> str:
        """Tool, input, result and changes as they are shown."""
        return copied_call(self._call.view)

    def pieces(self, width: int) -> Sequence[Piece]:
        """Return input, output and changes."""
        pieces = call_pieces(self._call, self._context, width, self.opened, self.sought)
        return [shifted(piece, self.gap) for piece in pieces]

    @property
    def text(self) -> str:
        return _searched(self._call.view)

    @property
    def call_ids(self) -> tuple[str, ...]:
        return (self._call.view.call_id,)

    def toggle(self) -> bool:
        self.opened = not self.opened
        self.changed()
        return True

    def estimate(self, width: int) -> int:
        view = self._call.view
        diff = sum(min(file.diff.count("\n"), BRIEF_DIFF_ROWS) for file in view.changes.files[:1])
        return 1 + (diff if len(view.changes.files) == 1 else 0) + (HEAD_ROWS if self.opened else 0)

    def layout(self, width: int) -> list[Line]:
        groups = call_rows(self._call, self._context, width, is_open=self.opened, sought=self.sought)
        shows_diff = any(name == "diff" and len(rows) > 1 for name, rows in groups)
        return [*flattened(groups), *([Line()] if shows_diff and self.is_followed else [])]


class ReadsPart(Part):
    """Adjacent calls that only read: one row that names what they read; expanded, a row each."""

    def __init__(self, context: CallContext, *, gap: bool = False) -> None:
        super().__init__(gap=gap)
        self.opened = False
        """True if each call has its row."""
        self._calls: list[LedgerCall] = []
        self._context = context

    @property
    def title(self) -> str:
        """Number and tool of a single call, or the number of calls."""
        return _title_of(self._calls[0]) if len(self._calls) == 1 else count_text(len(self._calls), "call")

    @property
    def copied(self) -> str:
        """Tools, inputs and results as they are shown."""
        return "\n\n".join(copied_call(call.view) for call in self._calls)

    def pieces(self, width: int) -> Sequence[Piece]:
        """Return input, output and changes of a single call, or the output of each."""
        single = len(self._calls) == 1
        if single:
            found = call_pieces(self._calls[0], self._context, width, self.opened, self.sought)
            return [shifted(piece, self.gap) for piece in found]
        pieces: list[Piece] = []
        row = int(self.gap)
        for call in self._calls:
            rows = len(flattened(call_rows(call, self._context, width, is_open=False))) if self.opened else 0
            if text := plain_output(call.view.outcome.result).strip("\n"):
                last = row + rows if self.opened else self.height(width)
                pieces.append(Piece(f"{_title_of(call)} output", text, row, last))
            row += rows
        return pieces

    @property
    def text(self) -> str:
        return "\n".join(_searched(call.view) for call in self._calls)

    @property
    def call_ids(self) -> tuple[str, ...]:
        return tuple(call.view.call_id for call in self._calls)

    def add(self, call: LedgerCall) -> None:
        """Add a call."""
        self._calls.append(call)
        self.changed()

    def toggle(self) -> bool:
        self.opened = not self.opened
        self.changed()
        return True

    def estimate(self, width: int) -> int:
        return len(self._calls) if self.opened else 1

    def layout(self, width: int) -> list[Line]:
        """Return the finished reads in one row, and a row for each other call."""
        if self.opened:
            single = len(self._calls) == 1
            found = self.sought.casefold()
            groups = (
                call_rows(
                    call,
                    self._context,
                    width,
                    # Expanded, several reads have a row each: whole results would bury the other calls.
                    is_open=single or bool(found and found in call.view.outcome.result.casefold()),
                    sought=found,
                )
                for call in self._calls
            )
            return [row for each in groups for row in flattened(each)]
        rows: list[Line] = []
        for is_quiet, group in groupby(self._calls, key=lambda call: _is_quiet_read(call.view)):
            calls = list(group)
            if is_quiet and len(calls) >= LEAST_READS:
                rows.extend(_reads_rows([call.view for call in calls], width))
            else:
                for call in calls:
                    rows.extend(flattened(call_rows(call, self._context, width, is_open=False)))
        return rows


CallRows: TypeAlias = Sequence[tuple[str, Sequence[Line]]]
"""Rows of a call in order, each group with the name of its piece."""


def call_rows(call: LedgerCall, context: CallContext, width: int, *, is_open: bool, sought: str = "") -> CallRows:
    """Return the rows of one call.

    Args:
        call: the call.
        context: context of the conversation.
        width: cells of a row.
        is_open: True to show its whole input, the ends of its output and all its files.
        sought: text of a search; lines of the output and of the diffs that have it are shown as well.
    """
    view, files = call.view, _files_of(call.view)
    diffs, cut = list[Line](), 0
    if files and (is_open or len(files) == 1):
        diffs, cut = _diff_rows(view, files, context, width, is_open=is_open, sought=sought)
    # A diff that is shown whole says how much changed; else the row does.
    head = [*_head_rows(call, context, width, is_open=is_open, counted=not diffs or cut > 0)]
    head.extend((*_changed_rows(view, width), *_agent_rows(call, context, width)))
    groups: list[tuple[str, Sequence[Line]]] = [("", head)]
    if view.phase == "running" and not (is_open and view.subagent.label):
        shown = _with_output(call, context)
        groups.append(("output", [_output_row(runs, width) for runs in tail_lines(shown, "muted", LIVE_ROWS)]))
    if is_open:
        groups.append(("input", list(_facts(view, width))))
        groups.append(("", _agent_steps(call, context, width)))
    if diffs:
        groups.append(("diff", diffs))
    elif files:
        groups.append(("diff", _names_row(view, context.root, width)))
    if is_open and shows_output(view):
        groups.append(("output", _output_rows(view, width, sought)))
    return groups


def shows_output(view: CallViewState) -> bool:
    """Return True if the output says more than the changed files: always that of a command."""
    return not _files_of(view) or "command" in view.arguments.effective


def hidden_lines(view: CallViewState) -> int:
    """Return the number of lines of output that a collapsed call does not show; 0 if its row says enough."""
    details = view.outcome.details or {}
    if view.status is None or view.timing.started_at is None or not shows_output(view):
        return 0
    # A command counts its lines before its output is cut; of other tools the result is all there is.
    if not isinstance(lines := details.get("lines"), int):
        text = view.outcome.result.strip("\n\r")
        lines = whole_count(text) if text and "outcome" not in details else 0
    return lines if lines > 1 else 0


def _with_output(call: LedgerCall, context: CallContext) -> CallViewState:
    """Return the call, or the newest one of its sub-agent that runs and has output."""
    newest = call.children[: -_NEWEST_STEPS - 1 : -1]
    children = (context.at(place).view for place in newest) if context.at is not None else ()
    return next((view for view in children if view.phase == "running" and view.live.text), call.view)


def flattened(groups: CallRows) -> list[Line]:
    """Return all rows of a call."""
    return [row for _, rows in groups for row in rows]


def call_pieces(call: LedgerCall, context: CallContext, width: int, is_open: bool, sought: str = "") -> Sequence[Piece]:
    """Return the pieces of a call: its input, its output and its changes."""
    view = call.view
    texts = {
        "input": _input_text(view),
        "output": plain_output(view.outcome.result or view.live.text).strip("\n"),
        "diff": Diff.joined(file.diff for file in _files_of(view)),
    }
    groups = call_rows(call, context, width, is_open=is_open, sought=sought)
    pieces: list[Piece] = []
    for name, text in texts.items():
        # A piece without rows, as the input of a collapsed call, is marked at the row of the call.
        row, shown = 0, range(len(groups[0][1]))
        for group, rows in groups:
            if group == name and rows:
                shown = range(row, row + len(rows))
            row += len(rows)
        if text:
            pieces.append(Piece(name, without_controls(text), shown.start, shown.stop))
    return pieces


def copied_call(view: CallViewState) -> str:
    """Return tool, input, result and changes of a call as text."""
    parts = (f"{view.name} {view.summary}".strip(), plain_output(view.outcome.result).strip("\n"), view.diff)
    return without_controls("\n".join(filter(None, parts)))


def _title_of(call: LedgerCall) -> str:
    return f"#{call.number} {one_line(call.view.name, 16)}"


def _input_text(view: CallViewState) -> str:
    """Return the command of a call, or its arguments."""
    arguments = view.arguments.effective
    command = arguments.get("command")
    if isinstance(command, str):
        return command
    return "\n".join(f"{name}: {text}" for name, text in argument_texts(arguments))


def _diff_rows(
    view: CallViewState, files: Sequence[FileChange], context: CallContext, width: int, *, is_open: bool, sought: str
) -> tuple[list[Line], int]:
    """Return the diffs of changed files, and how many rows and files they leave out."""
    most = OPEN_DIFF_ROWS if is_open else BRIEF_DIFF_ROWS
    rows, cut = list[Line](), 0
    for file in files[:MAX_FILES]:
        is_named = shown_path(file.path, context.root) in view.summary
        # The row of a call that changes one file names it already.
        rows.extend(_name_rows(file, context.root, width, named=len(files) > 1 or not is_named))
        shown, left = _file_rows(file, width, most, sought if is_open else "")
        rows.extend(shown)
        cut += left
    if (left := max(view.changes.count, len(files)) - min(len(files), MAX_FILES)) > 0:
        rows.append(_body_row(f"… {count_text(left, 'more file')}", width))
        cut += left
    return rows, cut


def _files_of(view: CallViewState) -> list[FileChange]:
    """Return the changed files; of a tool that reports only a diff, that one."""
    details = view.outcome.details or {}
    diff, path = details.get("diff"), details.get("path")
    if view.changes.files or view.status != "ok" or not isinstance(diff, str) or not diff:
        return view.changes.files
    return [FileChange(path if isinstance(path, str) else "", Diff(diff))]


def _is_quiet_read(view: CallViewState) -> bool:
    """Return True if a call has read something and there is nothing else to say about it."""
    is_plain = view.status == "ok" and view.read_only and not view.changes.files and view.subagent.label is None
    return is_plain and "command" not in view.arguments.effective


def _changed_rows(view: CallViewState, width: int) -> list[Line]:
    """Return the row that says who changed the input of a call before it ran, and what the model asked for."""
    asked, resolution = view.arguments.asked, view.approval.resolution
    effective = view.arguments.effective
    # Arguments that were only completed or converted, such as "7" to 7, are not changed.
    if not asked or not effective or all(str(value) == str(effective.get(name)) for name, value in asked.items()):
        return []
    hook = next((run.name for run in reversed(view.approval.hooks) if run.action == "modify"), "")
    by_user = resolution is not None and resolution.by == "user" and resolution.decision == "approve"
    who = "you changed it" if by_user else f"hook {one_line(hook, 24)} changed it" if hook else "changed before it ran"
    before = asked.get("command")
    words = f"; the model asked for: {one_line(joined_lines(before), _LONGEST)}" if isinstance(before, str) else ""
    return [Line(clipped(((f"{BODY}└ ", "muted"), (f"{who}{words}", "warning")), width), indent=len(BODY) + 2)]


def _agent_rows(call: LedgerCall, context: CallContext, width: int) -> list[Line]:
    """Return the row that says what the sub-agent of a call does now, or what it has found."""
    view = call.view
    if view.subagent.label is None:
        return []
    tokens = f"{tokens_text(view.subagent.tokens)} tokens" if view.subagent.tokens else ""
    if view.phase == "running":
        newest = context.at(call.children[-1]).view if call.children and context.at is not None else None
        doing = f"{newest.name} {newest.summary}" if newest is not None else ""
        said = (count_text(len(call.children), "call"), tokens, doing)
    else:
        # The result counts the calls.
        said = (tokens, first_line(view.outcome.result) if view.status == "ok" else "")
    text = " · ".join(filter(None, said))
    if not text:
        return []
    return [Line(clipped(((f"{BODY}└ ", "muted"), (one_line(text, width), "muted")), width), indent=len(BODY) + 2)]


def _agent_steps(call: LedgerCall, context: CallContext, width: int) -> list[Line]:
    """Return the messages and calls of a sub-agent in order, one row each; of many the newest."""
    if context.at is None:
        return []
    first = max(0, len(call.children) - MAX_AGENT_CALLS)
    rows = [_body_row(f"… {count_text(first, 'earlier call')}", width)] if first else []
    said = [(count, one_line(text, width)) for count, text in call.view.subagent.said if count >= first]
    for count in range(first, len(call.children) + 1):
        while said and said[0][0] <= count:
            rows.append(Line(clipped(((f"{BODY}  ", ""), (said.pop(0)[1], "")), width), indent=len(BODY) + 2))
        if count < len(call.children):
            rows.append(_inner_row(context.at(call.children[count]).view, context, width))
    return rows


def _inner_row(view: CallViewState, context: CallContext, width: int) -> Line:
    """Return the row of a sub-agent's call."""
    (sign, sign_style), (outcome, style) = sign_of(view), state_of(view, context.find)
    summary, outcome = _told_once(view, one_line(view.marked_summary, _LONGEST), one_line(outcome, _LONGEST))
    runs: list[Run] = [
        (f"{BODY}  {sign} ", _SIGN_STYLES[sign_style]),
        (f"{one_line(view.name, 16)} ", f"tool-{tool_kind(view.name)}"),
        (summary, ""),
    ]
    if outcome:
        runs.append((f"  {outcome}", style))
    return Line(clipped(runs, width), indent=len(BODY) + 4)


def _told_once(view: CallViewState, summary: str, outcome: str) -> tuple[str, str]:
    """Return summary and outcome of a call, the one without what the other says."""
    if outcome and tool_kind(view.name) == "change" and view.status == "ok":
        summary = _SIZE.sub("", summary)  # The size that was asked for; the outcome has that of the change.
    # A command is shown exactly, even if its output repeats words of it.
    is_said = bool(outcome) and "command" not in view.arguments.effective and f" {outcome}:" in f" {summary}:"
    return summary, "" if is_said else outcome


def _head_rows(call: LedgerCall, context: CallContext, width: int, *, is_open: bool, counted: bool) -> list[Line]:
    """Return the row of a call, and below it a result that does not fit.

    Args:
        call: the call.
        context: context of the conversation.
        width: cells of a row.
        is_open: True if the call is expanded.
        counted: True to say how many lines a change has; its whole diff below shows it as well.
    """
    view = call.view
    sign, sign_style = sign_of(view)
    # The right column says why a call does not run yet.
    is_waiting = view.phase in ("queued", "waiting", "asking") or (view.phase == "running" and view.agent_asks)
    is_said = is_waiting and not context.is_alone
    outcome, style = ("", "") if is_said else state_of(view, context.find)
    name = one_line(view.name, 16)
    summary, outcome = _told_once(view, one_line(view.marked_summary, _LONGEST), one_line(outcome, _LONGEST))
    if not counted and outcome in [lines_text(file.added, file.removed) for file in _files_of(view)[:1]]:
        outcome = ""
    whole = width - cell_len(f"{HEAD}{sign} {name} ") - 2
    forms = _amounts(call, context, is_open=is_open)
    beside = cell_len(outcome) + 3 if outcome else 0
    # If the outcome is below anyway, it takes no room from the amounts.
    is_below = cell_len(summary) + beside + cell_len(forms[-1]) > whole
    kept = min(cell_len(summary), width // 2) + (0 if is_below else beside)
    # The later a form, the less it says; number and clock are in all of them.
    right = next((form for form in forms if cell_len(form) + kept <= whole), forms[-1])
    room = whole - cell_len(right)
    shown = clip(summary, max(room, 0))
    left = room - cell_len(shown)
    fits = not outcome or left >= cell_len(outcome) + 3
    runs: list[Run] = [
        (f"{HEAD}{sign} ", _SIGN_STYLES[sign_style]),
        (f"{name} ", f"tool-{tool_kind(view.name)}"),
        (shown, ""),
    ]
    if outcome and fits:
        runs.append((f"  {outcome}", style))
        left -= cell_len(outcome) + 2
    runs.append((" " * max(1, left + 1), ""))
    runs.append((right, "muted"))
    rows = [Line(clipped(runs, width), indent=cell_len(f"{HEAD}{sign} "))]
    if outcome and not fits:
        below = wrapped([(outcome, style)], width - len(BODY) - 2)
        if not is_open and len(below) > 2:
            below = [below[0], Line(clipped([*below[1].runs, (" …", style)], width - len(BODY) - 2))]
        rows.extend(prefixed_lines(below, ((f"{BODY}└ ", "muted"),), ((f"{BODY}  ", ""),)))
    return rows


def _amounts(call: LedgerCall, context: CallContext, *, is_open: bool) -> Sequence[str]:
    """Return the forms of time, size and number of a call, each without one part of the form before it.

    A call that has succeeded needs no number: it is no longer stopped, waited for or listed beside the conversation.
    """
    view, timing = call.view, call.view.timing
    is_over = view.status == "ok" and not view.is_discarded and not view.outcome.job
    number = "" if is_over and not is_open else f"#{call.number}"
    if view.status is None:
        now, is_moving = context.clock(), context.is_alone and view.phase in ("running", "asking")
        waited = view.elapsed_ms(now) if view.phase == "running" else view.waited_ms(now)
        return (f"{seconds_text(waited / 1000, tenths=False)}  {number}" if is_moving and waited >= 1000 else number,)
    clock = seconds_text(timing.latency_ms / 1000) if timing.latency_ms >= 1000 and not view.outcome.job else ""
    lines = "" if is_open or not (hidden := hidden_lines(view)) else f"+{count_text(hidden, 'line')}"
    forms = [(lines, clock, number), (clock, number)]
    if context.is_alone or is_open:
        you = f"you {seconds_text(timing.approval_ms / 1000, tenths=False)}" if timing.approval_ms >= 1000 else ""
        size = bytes_text(view.outcome.size_bytes) if view.outcome.size_bytes >= 1000 and not lines else ""
        forms = [(you, size, lines, clock, number), (you, lines, clock, number), *forms]
    return ["  ".join(filter(None, form)) for form in forms]


def _reads_rows(views: Sequence[CallViewState], width: int) -> list[Line]:
    """Return finished reads as one row, or two if there are many: what each tool read."""
    groups: list[list[Run]] = []
    for name, group in groupby(views, key=lambda view: view.name):
        calls = list(group)
        runs: list[Run] = [(f"{one_line(name, 16)} ", f"tool-{tool_kind(name)}")]
        for number, view in enumerate(calls):
            runs.extend([*([_SEPARATOR] if number else []), (fitted_summary(view.summary, _LONGEST_READ), "")])
        if len(calls) == 1 and (outcome := outcome_of(calls[0])[0]) and calls[0].name != "read":
            runs.append((f" ({one_line(outcome, 40)})", "muted"))
        groups.append(runs)
    rows = _packed(groups, width - len(BODY))
    return prefixed_lines(rows[:2], ((f"{HEAD}✔ ", "success"),), ((BODY, ""),))


def _packed(groups: Sequence[Sequence[Run]], width: int) -> list[Line]:
    """Return groups one after another, in two rows without breaking one if that is possible."""
    rows: list[list[Run]] = []
    for group in groups:
        longer = [*rows[-1], _SEPARATOR, *group] if rows else []
        if rows and width_of_runs(longer) <= width:
            rows[-1] = longer
        else:
            rows.append(list(group))
    # Broken inside a group, more of them fits into the two rows that are shown.
    if len(rows) > 2 or any(width_of_runs(row) > width for row in rows):
        return wrapped(
            [run for number, group in enumerate(groups) for run in (*([_SEPARATOR] if number else []), *group)], width
        )
    return [Line(tuple(row)) for row in rows]


def _facts(view: CallViewState, width: int) -> Iterable[Line]:
    """Yield the whole input of an expanded call, and who changed it."""
    command = view.arguments.effective.get("command")
    # A shorter one is whole in the row of the call.
    if isinstance(command, str) and ("\n" in command or cell_len(command) > width // 2):
        for row in wrapped([(sanitise(command[:LONGEST_COMMAND]), "code")], width - len(BODY) - 2):
            yield row.prefixed((f"{BODY}  ", ""))
    decision = view.approval.decision
    if decision is not None and decision.decision == "deny":
        yield from (
            row.prefixed((BODY, "")) for row in wrapped([(sanitise(decision.reason), "muted")], width - len(BODY))
        )


def _name_rows(file: FileChange, root: str, width: int, *, named: bool) -> list[Line]:
    """Return the row with the name of a changed file, if it is one of several or there are facts about it."""
    facts = change_facts(file)
    if not named:
        return [_body_row(facts, width)] if facts not in ("", "created") else []
    head: list[Run] = [(BODY, ""), (_path_of(file, root, width), "")]
    if counts := _counts(file):
        head.append((f" {counts}", "muted"))
    return [Line(clipped((*head, (f"  {facts}" if facts else "", "muted")), width))]


def _file_rows(file: FileChange, width: int, most: int, sought: str) -> tuple[list[Line], int]:
    """Return the first rows of a diff, about `most`, those of the others that a search found, and how many are cut."""
    body = diff_rows(file.diff.files, width - len(BODY) - 1)
    # A note about one row would take the room of that row.
    if len(body) <= most + 1:
        return [row.prefixed((BODY, "")) for row in body], 0
    rows = [row.prefixed((BODY, "")) for row in body[:most]]
    place = most
    for stop in (*(row for row in _found_rows(body, sought) if row >= most), len(body)):
        if stop > place:
            rows.append(_body_row(f"… {count_text(stop - place, 'more row')}", width))
        rows.extend(row.prefixed((BODY, "")) for row in body[stop : stop + 1])
        place = stop + 1
    return rows, len(body) - most


def _found_rows(rows: Sequence[Line], sought: str) -> list[int]:
    """Return the numbers of the rows that have a text, also of those between which it is broken, in order."""
    if not sought:
        return []
    text, ends = "", list[int]()
    for row in rows:
        text += ("\n" if row.joint is None else row.joint) + row.plain[row.indent :]
        ends.append(len(text))
    found: set[int] = set()
    for match in re.finditer(re.escape(sought), text, re.IGNORECASE):
        found.update(range(bisect_right(ends, match.start()), bisect_right(ends, match.end() - 1) + 1))
    return sorted(found)


def _names_row(view: CallViewState, root: str, width: int) -> list[Line]:
    """Return the row that names the files of a call that changed several."""
    files = view.changes.files
    names = " · ".join(f"{_path_of(file, root, width)}{_counts(file)}" for file in files[:_NAMES_IN_A_ROW])
    # After a trial the row of the call has the number.
    changed = "" if view.changes.trial.is_settled else f"changed {count_text(view.changes.count, 'file')}  "
    head = f"{BODY}└ {changed}"
    return [Line(clipped(((head, "muted"), (names, "")), width))]


def _counts(file: FileChange) -> str:
    return f" {counts}" if (counts := lines_text(file.added, file.removed)) else ""


def _path_of(file: FileChange, root: str, width: int) -> str:
    return one_line(shown_path(file.path, root), max(12, width - len(BODY) - 24))


def _output_rows(view: CallViewState, width: int, sought: str) -> list[Line]:
    """Return the first and the last rows of an expanded call's result, each line in one row, and between them a count.

    Lines between them that have the text `sought` are shown as well, at most `MAX_FOUND_ROWS`.
    """
    text, head, tail = view.outcome.result or view.live.text, HEAD_ROWS, TAIL_ROWS
    lines = text.strip("\n\r").split("\n")
    if lines == [""]:
        return []
    most = 8 * width + _LONGEST
    reader = OutputReader("muted")

    def rows(shown: Sequence[str]) -> Iterator[Line]:
        for line in shown:
            # A line that redraws itself shows its end; of others the beginning fits the row.
            piece = line[-most:] if "\r" in line else line[:most]
            yield from (_output_row(runs, width) for runs in reader.lines(piece))
            if piece is not line:
                reader.skip(line)

    if len(lines) <= head + tail:
        return list(rows(lines))
    result = list(rows(lines[:head]))
    end = len(lines) - tail
    found = [place for place in range(head, end) if sought and sought.casefold() in lines[place].casefold()]
    place = head
    for stop in (*found[:MAX_FOUND_ROWS], end):
        if stop > place:
            # The colours that the hidden lines leave behind hold for the next one.
            reader.skip("\n".join(lines[max(place, stop - _SKIPPED_LINES) : stop]))
            count = whole_count("\n".join(lines[place:stop]))
            result.append(_body_row(f"… {count_text(count, 'more line')} …", width))
        result.extend(rows(lines[stop : stop + 1]) if stop < end else ())
        place = stop + 1
    return [*result, *rows(lines[end:])]


def _output_row(runs: Sequence[Run], width: int) -> Line:
    return Line(clipped(((f"{BODY}  ", ""), *runs), width), indent=len(BODY) + 2)


def _body_row(text: str, width: int) -> Line:
    return Line(clipped(((f"{BODY}  ", ""), (text, "muted")), width), indent=len(BODY) + 2)


def _searched(view: CallViewState) -> str:
    """Return the text of a call for the search."""
    parts = (view.name, view.summary, outcome_of(view)[0], without_sequences(view.outcome.result), view.diff)
    return "\n".join(filter(None, parts))
