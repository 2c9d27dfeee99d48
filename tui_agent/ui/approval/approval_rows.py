"""Rows of an approval request: the exact input with every character visible. Pure.

Knows no tool: the preview that the tool prepared comes first, then each part of the input that the preview does not
show word for word.
"""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias
from urllib.parse import urlsplit

from tui_agent.protocol.diffs import NO_DIFF, Diff
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.server_question import FormField, ServerQuestion
from tui_agent.protocol.tool import Preview
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
from tui_agent.ui.text.sanitiser import one_line, shown_path, visible
from tui_agent.ui.text.styled_lines import hard_wrapped, prefixed_lines, width_of_runs, wrapped
from tui_agent.ui.transcript.markdown_blocks import parse_markdown
from tui_agent.ui.transcript.markdown_layout import stacked

from .approval_summary import (
    OUTSIDE,
    TITLE_FRAME,
    TITLE_NAME,
    asked_question,
    command_of,
    is_split,
    part_rows,
    request_title,
    split_rows,
    title_has_path,
)

_Argument: TypeAlias = tuple[str, str | None]
_TOUCHES = "touches"
_LINK = "symbolic link"
"""Words of a note on a file that a link leads to."""
_WORD = r"(?<![^\s'\"=<>]){}(?![^\s'\";|&)])"
"""Pattern of a whole word of a command."""
LONG = 10_000
"""Characters of a request above which a thread lays it out."""
LEAST_OF_A_VALUE = 8
"""Characters that each argument, or value in one, counts at least."""

_USUAL = {"command": ("bash",), "diff": ("edit", "write")}
"""Tools that a title implies, by the kind of the preview."""
_CONTENT = ("content", "old_string", "new_string")
"""Arguments that need no mention if a diff shows them; any other is named."""


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
        shown = title_has_path(self._request)
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
        if f"Use {visible(tool)}?" != asked_question(self._request) and tool not in _USUAL.get(
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
        if preview is not None and title_has_path(self._request):
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


# --- a question of a tool server or of the agent ----------------------------------------------------------------------


def question_rows(question: ServerQuestion, width: int) -> list[Line]:
    """Return the question: its words, its page, and the fields of its form."""
    if question.kind == "plan":
        return stacked([unit.block for unit in parse_markdown(visible(question.message))], width)
    rows = wrapped([(visible(question.message), "")], width) if question.message else []
    if question.url:
        host = urlsplit(question.url).hostname or ""
        rows += [Line(), *hard_wrapped([(visible(question.url), "strong")], width)]
        rows += wrapped([("a page of ", "muted"), (visible(host), "strong")], width)
    if not question.server:
        return [*rows, *_asked_rows(question.fields, width)]
    if question.kind == "form":
        rows.append(Line())
        for field in question.fields:
            runs: list[Run] = [("· ", "muted"), (visible(field.label), "strong"), (field_note(field), "muted")]
            rows += wrapped(runs, width)
        rows += wrapped([("The server receives your answer: no secrets of other services.", "muted")], width)
    return rows


def field_note(field: FormField) -> str:
    """Return the kind of a field and its limits, for the end of its label."""
    words = {"number": "number", "integer": "whole number", "flag": "yes or no", "choices": "several choices"}
    notes = [words[field.kind]] if field.kind in words else [field.format] if field.format else []
    if field.kind == "choice":
        notes.append(f"one of {len(field.choices)}")
    if field.kind in ("number", "integer"):
        limits = [f"from {field.least:g}"] if field.least is not None else []
        limits += [f"to {field.most:g}"] if field.most is not None else []
        notes += [" ".join(limits)] if limits else []
    notes += ["required"] if field.required else []
    notes += ["not saved"] if field.is_secret else []
    return f"  {', '.join(notes)}" if notes else ""


def _asked_rows(fields: Sequence[FormField], width: int) -> list[Line]:
    """Return questions with their choices, for front ends that only show them."""
    rows: list[Line] = []
    for number, field in enumerate(fields, 1):
        head = f"{number}. " if len(fields) > 1 else ""
        note = "  several answers" if field.kind == "choices" else ""
        rows += wrapped([(f"{head}{visible(field.label)}", "strong"), (note, "muted")], width)
        default = field.default if isinstance(field.default, tuple) else (field.default,)
        for place, choice in enumerate(field.choices, 1):
            runs: list[Run] = [(f"   {place}  ", "key"), (visible(choice.label or choice.value), "")]
            runs += [("  default", "muted")] if choice.value in default else []
            runs += [(f"  {visible(choice.description)}", "muted")] if choice.description else []
            rows += wrapped(runs, width)
    return rows
