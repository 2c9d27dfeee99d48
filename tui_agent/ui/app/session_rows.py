"""Rows of the list of sessions and of the preview beside it. Pure: text in, lines out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len

from tui_agent.protocol.amounts import bytes_text, count_text, money_text
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import clip, one_line, sanitise, visible, with_controls
from tui_agent.ui.text.styled_lines import clipped, wrapped
from tui_agent.workbench.sessions.session_catalogue import Preview, SessionEntry

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
AGE_WIDTH = 9
_WIDE = 100
"""Cells of a row from which branch and folder have twice the room."""
LEAST_TITLE = 30
"""Cells that the columns right of the title leave to it."""
MAX_FILES = 12
"""Changed files that a preview names."""
_LONGEST = 400
_MAX_ROWS = 8
"""Rows of each text of a preview."""


def age_text(time: int, now: int) -> str:
    """Return the age of a moment: `now`, `5 min`, `3 h`, `2 d`, `4 Nov`, `Nov 2024`; both in milliseconds."""
    age = max(0, now - time)
    if age < MINUTE:
        return "now"
    if age < HOUR:
        return f"{age // MINUTE} min"
    if age < DAY:
        return f"{age // HOUR} h"
    if age < 14 * DAY:
        return f"{age // DAY} d"
    then = datetime.fromtimestamp(time / 1000)
    return f"{then.day} {then:%b}" if age < 300 * DAY else f"{then:%b %Y}"


def ago_text(time: int, now: int) -> str:
    """Return how long ago a moment was: `now`, `5 min ago`, `on 4 Nov`, `in Nov 2024`; both in milliseconds."""
    age, text = max(0, now - time), age_text(time, now)
    if age < MINUTE:
        return text
    if age < 14 * DAY:
        return f"{text} ago"
    return f"{'on' if age < 300 * DAY else 'in'} {text}"


def title_of(entry: SessionEntry, width: int) -> str:
    """Return the title of a session in one row."""
    if entry.summary.title:
        return one_line(with_controls(entry.summary.title), width)
    return clip("(damaged: nothing can be read)" if entry.summary.damaged else "(no message yet)", width)


def folder_of(entry: SessionEntry, width: int) -> str:
    """Return the folder of a session, with `~` for the home directory; of a long one the end."""
    folder = Path(entry.summary.cwd or "unknown folder")
    if folder.is_relative_to(Path.home()):
        folder = Path("~") / folder.relative_to(Path.home())
    text = one_line(visible(str(folder)), _LONGEST)
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) >= width:
        text = text[1:]
    return f"…{text}"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column right of the title."""

    heading: str
    width: int
    """Cells with the two spaces before it."""
    text: Callable[[SessionEntry, int], str]
    """Returns the text of a session for a width."""
    is_number: bool = True


_BRANCH = _Column("branch", 12, lambda entry, width: one_line(visible(entry.summary.branch), width), is_number=False)
_FOLDER = _Column("folder", 22, folder_of, is_number=False)
_NUMBERS = (
    _Column("msgs", 6, lambda entry, _: "" if entry.summary.messages is None else f"{entry.summary.messages:,}"),
    _Column("cost", 8, lambda entry, _: money_text(entry.summary.cost)),
    _Column("size", 9, lambda entry, _: bytes_text(entry.summary.size)),
)


def _columns(width: int, *, folders: bool) -> list[_Column]:
    """Return the columns for which there is room, the most important ones first."""
    room = width - 2 - AGE_WIDTH - LEAST_TITLE
    found: list[_Column] = []
    place = _FOLDER if folders else _BRANCH
    if width >= _WIDE:
        place = replace(place, width=2 * place.width)
    for column in (place, *_NUMBERS):
        room -= column.width
        if room < 0:
            break
        found.append(column)
    return found


def _cell(column: _Column, text: str) -> str:
    padding = " " * max(0, column.width - 2 - cell_len(text))
    return f"  {padding}{text}" if column.is_number else f"  {text}{padding}"


def heading_row(width: int, *, folders: bool) -> Line:
    """Return the headings of the columns."""
    columns = _columns(width, folders=folders)
    room = max(1, width - 2 - AGE_WIDTH - sum(column.width for column in columns))
    texts = ("  ", f"{'age':<{AGE_WIDTH}}", f"{'session':<{room}}", *(_cell(one, one.heading) for one in columns))
    return Line(clipped([("".join(texts), "muted")], width))


def entry_row(entry: SessionEntry, width: int, now: int, *, chosen: bool, current: str, folders: bool) -> Line:
    """Return one row of the list, `now` in milliseconds since the epoch; `folders` shows the folder, not the branch."""
    one = entry.summary
    columns = _columns(width, folders=folders)
    badge = "  here" if one.id == current else "  open" if entry.is_open else ""
    room = max(1, width - 2 - AGE_WIDTH - sum(column.width for column in columns) - len(badge))
    title = title_of(entry, room)
    row: list[Run] = [
        ("› " if chosen else "  ", "key"),
        (f"{age_text(one.last_message, now):<{AGE_WIDTH}}", "muted"),
        (title, "strong" if chosen else "" if one.title else "muted"),
        (" " * (room - cell_len(title)), ""),
        (badge, "success" if one.id == current else "warning"),
        *((_cell(column, column.text(entry, column.width - 2)), "muted") for column in columns),
    ]
    return Line(clipped(row, width))


def preview_rows(
    entry: SessionEntry, preview: Preview | None, width: int, now: int, *, current: str, is_loading: bool
) -> list[Line]:
    """Return the preview of a session; `preview` is None if its journal cannot be read, `current` is on the screen."""
    one = entry.summary
    title = title_of(entry, _LONGEST)
    rows = wrapped([(title, "strong")], width)
    amount = "" if one.messages is None else count_text(one.messages, "message")
    facts = (ago_text(one.last_message, now), amount, bytes_text(one.size), money_text(one.cost))
    places = (one_line(visible(one.branch), _LONGEST), folder_of(entry, _LONGEST), one.id)
    for texts in (facts, places):
        rows += wrapped([(" · ".join(text for text in texts if text), "muted")], width)
    if one.id == current:
        rows += wrapped([("this is the session on the screen", "success")], width)
    elif entry.is_open:
        rows += wrapped([("open in another tui-agent", "warning")], width)
    if not entry.is_here and one.cwd:
        rows += wrapped([("from another folder; resumed here, it works in this one", "warning")], width)
    if is_loading:
        return rows
    if preview is None:
        return [*rows, Line(), *wrapped([("Its journal cannot be read.", "error")], width)]
    if preview.prompt and " ".join(preview.prompt.split()) != one.title:
        rows += _section("First message", preview.prompt, width)
    if preview.answer:
        rows += _section("Last answer", preview.answer, width)
    if preview.files:
        rows += _files(preview, width)
    elif preview.is_whole:
        rows += [Line(), *wrapped([("It changed no files.", "muted")], width)]
    if not preview.is_whole:
        rows += [Line(), *wrapped([("A long session: only its beginning and end were read.", "muted")], width)]
    return rows


def _section(heading: str, text: str, width: int) -> list[Line]:
    rows = wrapped([(sanitise(with_controls(text)), "")], width)
    more = [Line((("…", "muted"),))] if len(rows) > _MAX_ROWS else []
    return [Line(), Line(clipped([(heading, "label")], width)), *rows[:_MAX_ROWS], *more]


def _files(preview: Preview, width: int) -> list[Line]:
    files = list(preview.files.values())
    rows = [Line(), Line(clipped([(f"Changed {count_text(len(files), 'file')}", "label")], width))]
    for changed in files[:MAX_FILES]:
        amounts: Sequence[Run] = ((f"+{changed.added} ", "success"), (f"−{changed.removed}  ", "error"))
        rows.append(Line(clipped([*amounts, (one_line(visible(changed.path), _LONGEST), "")], width)))
    if len(files) > MAX_FILES:
        rows.append(Line(((f"and {len(files) - MAX_FILES} more", "muted"),)))
    return rows
