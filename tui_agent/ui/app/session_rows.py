"""Rows of the list of sessions and of the preview beside it. Pure: text in, lines out."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len

from tui_agent.ui.text.amounts import bytes_text, count_text, money_text
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import clip, one_line, visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .session_shelf import Preview, SessionEntry

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
AGE_WIDTH = 8
BRANCH_WIDTH = 12
AMOUNT_WIDTH = 8
WITH_AMOUNTS = 46
"""Cells from which a row shows size and cost."""
WITH_BRANCH = 64
"""Cells from which it also shows the branch or the folder."""
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


def title_of(entry: SessionEntry, width: int) -> str:
    """Return the title of a session in one row."""
    if entry.summary.title:
        return one_line(visible(entry.summary.title), width)
    return clip("(damaged: nothing can be read)" if entry.summary.damaged else "(no message yet)", width)


def folder_of(entry: SessionEntry, width: int) -> str:
    """Return the folder of a session, with `~` for the home directory."""
    folder = Path(entry.summary.cwd or "unknown folder")
    if folder.is_relative_to(Path.home()):
        folder = Path("~") / folder.relative_to(Path.home())
    return one_line(visible(str(folder)), width)


def entry_row(entry: SessionEntry, width: int, now: int, *, chosen: bool, current: str, folders: bool) -> Line:
    """Return one row of the list.

    Args:
        entry: the session.
        width: cells of the row.
        now: milliseconds since the epoch.
        chosen: True if it is selected.
        current: id of the session on the screen.
        folders: True to show the folder in place of the branch.
    """
    one = entry.summary
    badge = "here" if one.id == current else "open" if entry.is_open else ""
    right: list[Run] = []
    if width >= WITH_BRANCH:
        place = folder_of(entry, BRANCH_WIDTH) if folders else one_line(visible(one.branch), BRANCH_WIDTH)
        right.append((f"  {place}{' ' * (BRANCH_WIDTH - cell_len(place))}", "muted"))
    if width >= WITH_AMOUNTS:
        right.append((f"{bytes_text(one.size):>{AMOUNT_WIDTH}}{money_text(one.cost):>{AMOUNT_WIDTH}}", "muted"))
    right.append(
        (f" {badge:<4}" if badge or width >= WITH_AMOUNTS else "", "success" if badge == "here" else "warning")
    )
    used = 2 + AGE_WIDTH + sum(len(text) for text, _ in right)
    room = max(1, width - used)
    title = title_of(entry, room)
    row: list[Run] = [
        ("› " if chosen else "  ", "key"),
        (f"{age_text(one.last_message, now):<{AGE_WIDTH}}", "muted"),
        (title, "strong" if chosen else "" if one.title else "muted"),
        (" " * (room - cell_len(title)), ""),
        *right,
    ]
    return Line(clipped(row, width), fill="code-ground" if chosen else "")


def preview_rows(entry: SessionEntry, preview: Preview | None, width: int, now: int, *, is_loading: bool) -> list[Line]:
    """Return the preview of a session; `is_loading` while its journal is read."""
    one = entry.summary
    rows = wrapped([(title_of(entry, _LONGEST), "strong")], width)
    facts = [one.id, *([one.branch] if one.branch else []), bytes_text(one.size), money_text(one.cost)]
    rows += wrapped([(visible(" · ".join(fact for fact in facts if fact)), "muted")], width)
    rows += wrapped(
        [(f"{folder_of(entry, _LONGEST)} · last message {age_text(one.last_message, now)}", "muted")], width
    )
    if entry.is_open:
        rows += wrapped([("open in a tui-agent", "warning")], width)
    if not entry.is_here and one.cwd:
        rows += wrapped([("of another folder; resumed here, it works in the present one", "warning")], width)
    if is_loading:
        return [*rows, Line(), Line((("Reading …", "muted"),))]
    if preview is None:
        return [*rows, Line(), *wrapped([("Its journal cannot be read.", "error")], width)]
    if preview.prompt:
        at_least = "" if preview.is_whole else "at least "
        amount = f" · {at_least}{count_text(preview.messages, 'message')} of yours"
        rows += _section(f"First prompt{amount}", preview.prompt, width)
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
    rows = wrapped([(visible(text), "")], width)
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
