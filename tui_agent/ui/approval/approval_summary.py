"""An approval request in short: its title, its announcement, its dangers, and the reasons for the question. Pure.

The dangers are words such as `deletes files`. They help the user to read and decide nothing: a request without them is
not harmless.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.diffs import NO_DIFF
from tui_agent.protocol.permissions import DECIDED_BY_USER, ApprovalRequest, DecisionPart
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.state.call_records import changed_text, waiting_text
from tui_agent.ui.text.decision_rows import VERDICT_SIGNS, beside, exact_rows, marked_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible
from tui_agent.ui.text.styled_lines import clipped, prefixed_lines, width_of_runs, wrapped

# --- titles -----------------------------------------------------------------------------------------------------------

TITLE_NAME = 40
"""Cells of the name of a tool, an agent or a server in a title."""
TITLE_COMMAND, LEAST_OF_COMMAND = 24, 8
"""Most cells of a command in the title of a question about its changes, and least in a narrow window."""
WIDEST_TITLE = 100
TITLE_FRAME = 8
"""Cells of the frame beside a title."""
UNIT, ASKER = "unit ", "#"
"""Beginnings of the agent name in requests of a unit of a fleet, and in those that name the call of the sub-agent, such
as `#2 Check the tests`; names of sub-agents have neither."""


def request_title(request: ApprovalRequest, width: int = WIDEST_TITLE) -> str:
    """Return the question as a sentence, with long names truncated, and a command to fit the width."""
    if request.changes is not None:
        return _changes_title(request, width)
    if request.agent == DECIDED_BY_USER:
        return f"{asked_question(request).removesuffix('?')} for you?"
    return f"{asked_question(request)}{_asker(request)}"


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


def asked_question(request: ApprovalRequest) -> str:
    """Return the question without who asks it."""
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


def title_has_path(request: ApprovalRequest) -> bool:
    """Return True if the title shows the whole path of a change; False without a change."""
    path, preview = request.args.get("path"), request.preview
    is_change = preview is not None and preview.kind == "diff" and isinstance(path, str) and bool(path)
    return is_change and one_line(visible(shown := _path_of(request)), TITLE_NAME) == shown


def _as_clause(sentence: str) -> str:
    """Return a sentence with a small first letter, unless the first word is a name such as `API`."""
    first = sentence.partition("\n")[0]
    return first[:1].lower() + first[1:] if first[1:2].islower() else first


def question_title(question: ServerQuestion) -> str:
    """Return the question as a sentence."""
    if not question.server and question.kind != "plan":
        return "The agent asks you"
    server = one_line(visible(question.server), TITLE_NAME)
    match question.kind:
        case "plan":
            return "Accept this plan?"
        case "form":
            return f"The server {server} asks you"
        case "url":
            return f"Open a page for the server {server}?"
        case "sign_in":
            return f"Sign in to the server {server}?"
        case "sampling":
            return f"Let the server {server} ask the model?"


# --- dangers ----------------------------------------------------------------------------------------------------------

LONGEST_READ = 20_000
"""Characters of a command that are searched for names of secrets."""

OUTSIDE = "outside the workspace"
"""Beginning of the reason for a question about such a path, and the mark for it."""
_SECRET = re.compile(
    r"\b(?:is|may be) private\b|environments? of other processes|(?:^|[\s/'\"=])"
    r"(?:\.env(?:\.\w+)?|\.netrc|\.npmrc|\.pypirc|id_(?:rsa|ed25519|ecdsa)|\.ssh/|\.aws/|\.gnupg/|\S+\.pem)(?=$|[\s/'\";|&)]|\w)"
)


def danger_marks(request: ApprovalRequest) -> tuple[str, ...]:
    """Return a few words on each danger that the request shows, the worst of each part first."""
    return tuple(dict.fromkeys(_dangers(request)))


def _dangers(request: ApprovalRequest) -> Iterator[str]:
    # The reason is that of the worst part.
    for part in sorted(request.parts, key=lambda part: part.reason != request.reason):
        yield from part.dangers
    preview = request.preview
    command = preview.text[:LONGEST_READ] if preview is not None and preview.kind == "command" else ""
    reasons = "\n".join((request.reason, *(part.reason for part in request.parts)))
    if OUTSIDE in reasons:
        yield OUTSIDE
    places = "\n".join((command, reasons, *request.targets))
    if _SECRET.search(places):
        yield "may show secrets" if command else "may hold secrets"


# --- reasons ----------------------------------------------------------------------------------------------------------

MAX_REASON_ROWS = 2
"""Rows of the reason; the list of all rules has the rest."""

_NO_RULE = re.compile(r"no rule allows `.*`(?=\Z|; asked again: )", re.DOTALL)


def why_rows(request: ApprovalRequest, width: int, *, with_reason: bool = True) -> list[Line]:
    """Return the dangers and, if wanted, the reason for the question."""
    if request.question is not None and not request.question.server:
        return []
    marks: list[Run] = []
    for mark in _marks(request):
        # A mark is not broken at its blanks.
        marks += [("▲\u00a0", "error"), (visible(mark).replace(" ", "\u00a0"), "error strong"), ("   ", "")]
    reason = visible(short_reason(request)).replace("\n", " ")
    rows = beside("why", lambda room: _reason_rows(reason, room), width) if with_reason else []
    marked = [
        Line(tuple((text.replace("\u00a0", " "), style) for text, style in row.runs))
        for row in (wrapped(marks, width) if marks else [])
    ]
    return [*marked, *rows]


def short_reason(request: ApprovalRequest) -> str:
    """Return the reason without the words of the marks, the path in the title and the command itself."""
    consequences, _, rest = request.reason.partition("; ")
    marks = _marks(request)
    is_said = consequences in marks or set(consequences.split(", ")) <= set(marks)
    is_said = is_said or consequences == f"changes {request.args.get('path')}"
    # The marks above the reason say its first half already.
    reason = rest if rest and is_said else request.reason
    asking = sum(part.decision == "ask" for part in request.parts)
    whose = "it" if len(request.parts) < 2 else f"the part{'s' if asking > 1 else ''} marked ▲"
    shows_command = request.preview is not None and request.preview.kind == "command"
    return (_NO_RULE.sub(f"no rule allows {whose}", reason) if shows_command else reason) or "no rule decides this"


def _marks(request: ApprovalRequest) -> tuple[str, ...]:
    """Return the dangers; the mark for a place outside the workspace names it if the reason does."""
    place = request.reason.partition("; ")[0]
    named = place if place.startswith(f"{OUTSIDE}: ") else OUTSIDE
    return tuple(named if mark == OUTSIDE else mark for mark in danger_marks(request))


def _reason_rows(reason: str, width: int) -> list[Line]:
    rows = wrapped([(reason, "")], width)
    if len(rows) <= MAX_REASON_ROWS:
        return rows
    return [*rows[: MAX_REASON_ROWS - 1], Line((*clipped(rows[MAX_REASON_ROWS - 1].runs, width - 2), (" …", "muted")))]


# --- parts of a command -----------------------------------------------------------------------------------------------

MAX_SPLIT = 12
"""Most parts of a command that is shown part by part instead of as a whole."""

_GAP = "   "
"""Least blanks between a part and its note."""
_NO_RULE_FOR_PART = re.compile(r"(?:; )?no rule allows .*\Z", re.DOTALL)
_OPERATORS = {"|": " | ", "&&": " && ", "||": " || ", ";": "; "}


def is_split(command: str, parts: Sequence[DecisionPart]) -> bool:
    """Return True if the parts with their operators can stand for a command: together they are exactly its text.

    False for a single part, more than `MAX_SPLIT`, and a command of several lines.
    """
    # A script is read by its lines, which parts in columns would hide.
    if not 2 <= len(parts) <= MAX_SPLIT or "\n" in command or not all(part.text for part in parts):
        return False
    joined = [(_OPERATORS.get(part.operator, "\n") if number else "") + part.text for number, part in enumerate(parts)]
    return "".join(joined) == command


def part_note(part: DecisionPart) -> str:
    """Return the rule that allows or forbids a part, or its consequences or reason; empty if none needs a mention."""
    if part.decision == "allow" or part.rule is not None:
        return f"rule {part.rule}" if part.rule else ""
    return _NO_RULE_FOR_PART.sub("", part.reason)


def part_rows(command: str, parts: Sequence[DecisionPart], width: int) -> list[Line]:
    """Return the parts below a command, with a heading; nothing for a single part that is the command."""
    if len(parts) < 2 and not any(part_note(part) and part.text != command for part in parts):
        return []
    parts = [part for part in parts if part.text]
    asking = sum(part.decision != "allow" for part in parts)
    heading = count_text(len(parts), "part")
    if 0 < asking < len(parts):
        heading += f", {asking} not allowed yet"
    return [Line(((heading, "muted"),)), *split_rows(parts, width)]


def split_rows(parts: Sequence[DecisionPart], width: int, language: str = "") -> list[Line]:
    """Return the rows of parts, with operators and notes in columns; on a ground if there is a language."""
    room = max((cell_len(part.operator) for part in parts), default=0)
    # The ground begins with a blank.
    margin = room + 1 if room and not language else room
    left = width - 2 - margin
    texts = [exact_rows(part.text, left, language) if language else marked_rows(part.text, left) for part in parts]
    notes = [visible(part_note(part)).replace("\n", " ") for part in parts]
    cells = [width_of_runs(text[0].runs) if len(text) == 1 else left for text in texts]
    room_for_notes = [left - len(_GAP) - cell_len(note) if note else left for note in notes]
    # The widest part with its note beside it decides where all notes begin.
    column = max((one for one, most in zip(cells, room_for_notes, strict=True) if one <= most), default=0)
    rows: list[Line] = []
    for part, text, note in zip(parts, texts, notes, strict=True):
        sign, style = VERDICT_SIGNS[part.decision]
        first: list[Run] = [(f"{sign} ", style), (part.operator.ljust(margin), "key")]
        # What is allowed is not worth a row of its own.
        below = "" if part.decision == "allow" else note
        rows += prefixed_lines(_with_note(text, note, below, left, column), first, ((" " * (2 + margin), ""),))
    return rows


def _with_note(rows: list[Line], note: str, below: str, width: int, column: int) -> list[Line]:
    """Return the rows of a part with its note behind the column, or `below` them where the row is too narrow."""
    blanks = column - width_of_runs(rows[0].runs)
    if len(rows) == 1 and blanks >= 0 and column + len(_GAP) + cell_len(note) <= width:
        behind: list[Run] = [(" " * blanks, rows[0].fill)] if blanks else []
        behind += [(_GAP + note, "muted")] if note else []
        return [replace(rows[0], runs=(*rows[0].runs, *behind), fill="")]
    return [*rows, *(row.prefixed(("  ", "")) for row in wrapped([(below, "muted")], width - 2))] if below else rows
