"""Rows of an approval request: the exact input with every character visible. Pure.

Knows no tool: the preview that the tool prepared comes first, then each part of the input that the preview does not
show word for word.
"""

import re
from collections.abc import Iterable, Set
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from rich.cells import cell_len

from tui_agent.protocol.diffs import NO_DIFF, Diff
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.permissions import DECIDED_BY_USER, ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.state.call_records import changed_text, waiting_text
from tui_agent.ui.text.decision_rows import (
    argument_rows,
    argument_texts,
    change_blocks,
    exact_rows,
    labelled_rows,
    script_rows,
)
from tui_agent.ui.text.diff_rows import MAX_LINES, diff_rows, line_count
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import joined_lines, one_line, shown_path, visible
from tui_agent.ui.text.styled_lines import prefixed_lines, width_of_runs, wrapped

from .approval_reasons import OUTSIDE, is_split, part_rows, split_rows
from .server_question_rows import question_rows, question_title

_Argument: TypeAlias = tuple[str, str | None]
_TOUCHES = "touches"
_LINK = "symbolic link"
"""Words of a note on a file that a link leads to."""
_WORD = r"(?<![^\s'\"=<>]){}(?![^\s'\";|&)])"
"""Pattern of a whole word of a command."""
TITLE_NAME = 40
"""Cells of a tool name or agent name in a title."""
TITLE_COMMAND, LEAST_OF_COMMAND = 24, 8
"""Most cells of a command in the title of a question about its changes, and least in a narrow window."""
WIDEST_TITLE = 100
TITLE_FRAME = 8
"""Cells of the frame beside a title."""
LONG = 10_000
"""Characters of a request above which a thread lays it out."""
LEAST_OF_A_VALUE = 8
"""Characters that each argument, or value in one, counts at least."""

UNIT, ASKER = "unit ", "#"
"""Beginnings of the agent name in requests of a unit of a fleet, and in those that name the call of the sub-agent, such
as `#2 Check the tests`; names of sub-agents have neither."""
_USUAL = {"command": ("bash",), "diff": ("edit", "write")}
"""Tools that a title implies, by the kind of the preview."""
_CONTENT = ("content", "old_string", "new_string")
"""Arguments that need no mention if a diff shows them; any other is named."""


def request_title(request: ApprovalRequest, width: int = WIDEST_TITLE) -> str:
    """Return the question as a sentence, with long names truncated, and a command to fit the width."""
    if request.changes is not None:
        return _changes_title(request, width)
    if request.agent == DECIDED_BY_USER:
        return f"{_question(request).removesuffix('?')} for you?"
    return f"{_question(request)}{_asker(request)}"


def line_counts(request: ApprovalRequest) -> str:
    """Return the number of added and removed lines, such as ` +2 −1`, for behind a title; empty without a diff."""
    diff = request.preview.diff if request.preview is not None and request.changes is None else NO_DIFF
    return "".join(f" {sign}{count}" for sign, count in (("+", diff.added), ("−", diff.removed)) if count)


def _asker(request: ApprovalRequest) -> str:
    """Return the sub-agent or the unit that asks; empty for the agent itself."""
    agent = one_line(visible(request.agent), TITLE_NAME)
    if request.agent in ("main", DECIDED_BY_USER):
        return ""
    if request.agent.startswith(UNIT):
        return f" · {agent}"
    return f" · asked by {agent}" if request.agent.startswith(ASKER) else f" · sub-agent {agent}"


def request_in_short(request: ApprovalRequest) -> str:
    """Return the question and what it is about, for one line, such as `Run this command? make test`."""
    title, path = request_title(request), request.args.get("path")
    if request.changes is not None:
        return f"{waiting_text(request.changes)}: {title[:1].lower()}{title[1:].partition('? ')[0]}?"
    about = joined_lines(request.summary) or request.reason
    if request.tool == "agent":
        return title
    if request.question is not None and not request.question.server:
        return f"{title}: {about}"
    if request.preview is not None and request.preview.kind == "diff" and isinstance(path, str):
        # The title names the file already.
        about = about.removeprefix(path).strip()
    return f"{title} {about}".strip()


def _question(request: ApprovalRequest) -> str:
    if request.question is not None:
        return question_title(request.question)
    preview, task = request.preview, request.args.get("task")
    if preview is not None and preview.kind == "command":
        return "Run this command?"
    if preview is not None and preview.kind == "diff":
        is_new = any(file.is_new for file in preview.diff.files)
        return f"{'Create' if is_new else 'Edit'} {one_line(visible(_path_of(request)), TITLE_NAME)}?"
    if request.tool == "agent" and isinstance(task, str) and task.strip():
        return f"Start a sub-agent to {one_line(visible(_as_clause(task.strip())), TITLE_NAME).rstrip('.')}?"
    return f"Use {one_line(visible(request.tool), TITLE_NAME)}?"


def _changes_title(request: ApprovalRequest, width: int) -> str:
    rest = f" changed? {changed_text(request.changes)}{_asker(request)}" if request.changes is not None else ""
    room = max(LEAST_OF_COMMAND, min(TITLE_COMMAND, width - cell_len(f"Keep what {rest}")))
    command = one_line(visible(joined_lines(command_of(request))), room)
    return f"Keep what {command or request.tool}{rest}".strip()


def command_of(request: ApprovalRequest) -> str:
    """Return the command of a request; empty if it has none."""
    preview, command = request.preview, request.args.get("command")
    if preview is not None and preview.kind == "command":
        return preview.text
    return command if isinstance(command, str) else ""


def _path_of(request: ApprovalRequest) -> str:
    """Return the path of a change as the call names it; without the workspace if it names the whole path."""
    path, preview = request.args.get("path"), request.preview
    if preview is None or not isinstance(path, str) or not path:
        return (preview.path if preview is not None else "") or "this file"
    inside = preview.diff.files[0].path if preview.diff else ""
    is_inside = inside and path == preview.path and path.endswith(f"/{inside}") and path != f"/{inside}"
    return inside if is_inside and OUTSIDE not in request.reason else path


def _title_path(request: ApprovalRequest) -> bool:
    """True if the title shows the whole path of a change."""
    path, preview = request.args.get("path"), request.preview
    is_change = preview is not None and preview.kind == "diff" and isinstance(path, str) and bool(path)
    return is_change and one_line(visible(shown := _path_of(request)), TITLE_NAME) == shown


def _as_clause(sentence: str) -> str:
    """Return a sentence with a small first letter, unless the first word is a name such as `API`."""
    first = sentence.partition("\n")[0]
    return first[:1].lower() + first[1:] if first[1:2].islower() else first


class ApprovalRows:
    """The rows of one request."""

    def __init__(self, request: ApprovalRequest, root: str = "") -> None:
        self._request = request
        self._root = root
        self._preview = request.preview
        self.is_long = _is_long(request)
        """True if laying out takes so long that a thread should do it."""
        self._made: tuple[int, list[list[Line]]] = (0, [])

    @cached_property
    def _diff(self) -> Diff:
        return self._preview.diff if self._preview is not None else NO_DIFF

    @cached_property
    def _input(self) -> list[_Argument]:
        shown = _title_path(self._request)
        args = {name: value for name, value in self._request.args.items() if name != "path" or not shown}
        return list(_other_input(args, self._preview, self._diff))

    @cached_property
    def _is_split(self) -> bool:
        is_command = self._preview is not None and self._preview.kind == "command"
        return self._preview is not None and is_command and is_split(self._preview.text, self._request.parts)

    def is_laid_out(self, width: int) -> bool:
        """Return True if the rows for a width are cached."""
        return self._made[0] == width

    def lay_out(self, width: int) -> None:
        """Build and cache the rows for a width; may be called in a thread."""
        self._made = (width, list(filter(None, self._make(width))))

    def rows(self, width: int, *, with_trace: bool = False, spaced: bool = True) -> list[Line]:
        """Return all rows; `spaced` separates the parts, `with_trace` appends every rule that was checked."""
        if not self.is_laid_out(width):
            self.lay_out(width)
        rows: list[Line] = []
        for block in (*self._made[1], *([self._trace_rows(width)] if with_trace else [])):
            rows.extend([Line(), *block] if rows and spaced else block)
        return rows

    def trace_start(self, width: int, *, spaced: bool = True) -> int:
        """Return the index of the row at which the trace begins."""
        return len(self.rows(width, with_trace=True, spaced=spaced)) - len(self._trace_rows(width))

    def _make(self, width: int) -> Iterable[list[Line]]:
        if self._request.changes is not None:
            command = command_of(self._request)
            is_said = f"Keep what {command} changed?" in request_title(self._request, width - TITLE_FRAME)
            yield exact_rows(command, width, "bash") if command and not is_said else []
            yield from change_blocks(self._request.changes, width)
            return
        question = self._request.question
        if question is not None and not question.server:
            yield question_rows(question, width)
            return
        # The title of a question names its server.
        yield self._name_rows(width) if question is None else []
        yield question_rows(question, width) if question is not None and question.kind != "sampling" else []
        yield self._preview_rows(width)
        arguments = [
            row for name, value in self._input if value is not None for row in argument_rows(name, value, width)
        ]
        yield _joined(arguments, self._target_rows(width), width)
        yield self._diff_rows(width)
        if self._preview is None or not self._is_split:
            yield part_rows(self._preview.text if self._preview is not None else "", self._request.parts, width)

    def _name_rows(self, width: int) -> list[Line]:
        """Return the names that the title of the dialog truncates or does not say."""
        tool, agent, preview = self._request.tool, self._request.agent, self._request.preview
        cut = [("agent", agent)] if one_line(visible(agent), TITLE_NAME) != visible(agent) else []
        if f"Use {visible(tool)}?" != _question(self._request) and tool not in _USUAL.get(
            preview.kind if preview is not None else "", ("agent",)
        ):
            cut.insert(0, ("tool", tool))
        return [row for label, name in cut for row in labelled_rows(label, [name], width)]

    def _preview_rows(self, width: int) -> list[Line]:
        if self._preview is None or self._preview.kind == "diff" or not self._preview.text:
            return []
        note = wrapped([(visible(self._preview.note), "muted")], width) if self._preview.note else []
        language = "bash" if self._preview.kind == "command" else ""
        if self._is_split:
            rows = split_rows(self._request.parts, width, "bash")
        else:
            rows = exact_rows(self._preview.text, width, language)
        return [*rows, *script_rows(self._preview.text, width), *note]

    def _target_rows(self, width: int) -> list[Line]:
        """Return the resolved paths that the call would touch, except those the input shows."""
        targets = list(self._request.targets)
        if self._preview is not None and self._preview.path and self._preview.path not in targets:
            targets.insert(0, self._preview.path)
        shown = [shown_path(target, self._root) for target in targets if not self._is_said(target)]
        return labelled_rows(_TOUCHES, shown, width)

    def _is_said(self, target: str) -> bool:
        """True if the title, the command or an argument names exactly this path."""
        path, preview = self._request.args.get("path"), self._preview
        if (
            preview is not None
            and preview.kind == "command"
            and re.search(_WORD.format(re.escape(target)), preview.text)
        ):
            return True
        if preview is not None and _title_path(self._request):
            # A note tells of a link, which may lead to another file of the same name.
            is_plain = _LINK not in preview.note and OUTSIDE not in self._request.reason
            return target == path or (is_plain and target.endswith(f"/{path}"))
        return target in [value for _, value in self._input]

    def _diff_rows(self, width: int) -> list[Line]:
        if not self._diff:
            return []
        # A name may be followed by the kind of its value.
        whole = [name for name, value in self._input if value is None and name.partition(" (")[0] not in _CONTENT]
        names = ", ".join(map(visible, whole))
        first, *others = self._diff.files
        notes = list(map(visible, first.notes))
        if self._preview is not None and self._preview.note:
            notes += map(visible, self._preview.note.split("\n"))
        return [
            *(wrapped([(f"all of {names}", "muted")], width) if names else ()),
            *(row for note in notes for row in wrapped([_note_run(note, visible(first.path))], width)),
            *diff_rows([replace(first, notes=()), *others], width, clean=visible),
        ]

    def _trace_rows(self, width: int) -> list[Line]:
        lines = self._request.trace or (self._request.reason or "no rule was checked",)
        rows = wrapped([("why  ", "muted"), (visible(self._request.reason), "")], width) if self._request.reason else []
        rows.append(Line((("every rule and check, in order", "muted"),)))
        for line in lines:
            rows.extend(prefixed_lines(wrapped([(visible(line), "")], width - 2), (("· ", "muted"),), (("  ", ""),)))
        return rows


def _note_run(note: str, path: str) -> Run:
    """Return a note above the diff: a warning, unless it is only the place that the diff names, such as a cell."""
    return (f"⋯ {note}", "muted") if path.endswith(f" {note}") else (f"! {note}", "warning")


def _joined(arguments: list[Line], targets: list[Line], width: int) -> list[Line]:
    """Return input and targets, on one row if each has one row and the boundary between them stays clear."""
    if len(arguments) == len(targets) == 1 and _TOUCHES not in arguments[0].plain:
        runs = (*arguments[0].runs, ("   ", ""), *targets[0].runs)
        if width_of_runs(runs) <= width:
            return [Line(runs)]
    return [*arguments, *targets]


def _is_long(request: ApprovalRequest) -> bool:
    room = LONG - (len(request.preview.text) if request.preview is not None else 0)
    if request.changes is not None:
        room -= sum(len(file.diff) + LEAST_OF_A_VALUE for file in request.changes.files)
    waiting: list[object] = [request.args, *(part.text for part in request.parts), *request.targets, *request.trace]
    while waiting and room >= 0:
        value = waiting.pop()
        if isinstance(value, str):
            room -= len(value)
        elif is_object(value):
            waiting += (*value, *value.values())
        elif is_array(value):
            waiting += value
        room -= LEAST_OF_A_VALUE
    return room < 0


def _other_input(args: JsonObject, preview: Preview | None, diff: Diff) -> Iterable[_Argument]:
    """Yield the arguments that the preview does not show word for word; None for one that the diff shows in full."""
    # If the diff is truncated, only the argument shows the rest.
    is_whole = line_count(diff.files) <= MAX_LINES
    lines = [(line.kind, visible(line.text)) for file in diff.files for line in file.lines] if is_whole else []
    shown = {text for _, text in lines}
    changed = {text for kind, text in lines if kind != "same"}
    for name, text in argument_texts(args):
        if preview is not None and preview.kind != "diff" and text == preview.text:
            continue
        # Blanks at the end of a text are shown as escapes, inside a line they are not.
        piece = visible(f"{text}.")[:-1]
        is_piece = name in _CONTENT and "\n" not in text and any(piece in line for line in changed)
        yield name, None if diff and is_whole and (is_piece or _is_covered(text, shown, changed)) else text


def _is_covered(text: str, shown: Set[str], changed: Set[str]) -> bool:
    lines = [visible(line) for line in text.split("\n")]
    return all(line in shown for line in lines if line) if len(lines) > 1 else lines[0] in changed
