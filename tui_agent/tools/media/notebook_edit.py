"""Changes of single cells of a notebook."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.text_format import counted
from tui_agent.tools.text_match import replace_text
from tui_agent.tools.unified_diff import diff_of

from .notebook_file import Cell, NewKind, Notebook

CellAction: TypeAlias = Literal["edit", "insert_code", "insert_markdown", "delete"]


@dataclass(frozen=True, slots=True)
class CellEdit:
    """The arguments of a call that changes a notebook."""

    cell: int | None
    action: CellAction
    old: str
    new: str
    everywhere: bool


@dataclass(frozen=True, slots=True)
class ChangedNotebook:
    """A notebook after a change."""

    text: str
    diff: Diff
    note: str


def change_notebook(book: Notebook, edit: CellEdit, shown: str) -> ChangedNotebook:
    """Change cells of a notebook; `shown` is its name in the diff.

    Raises:
        ToolError: there is no such cell, or the text does not match.
    """
    match edit.action:
        case "insert_code" | "insert_markdown":
            number = edit.cell or len(book.cells) + 1
            kind: NewKind = "code" if edit.action == "insert_code" else "markdown"
            text = book.with_cell(number, kind, edit.new)
            return _changed(text, "", edit.new, shown, f"new cell {number} ({kind})")
        case "delete":
            cell = book.cell(edit.cell or 0)
            return _changed(book.without_cell(cell), cell.source, "", shown, f"{cell.name} deleted")
        case "edit":
            cells = [book.cell(edit.cell)] if edit.cell else _cells_with(book, edit)
            return _with_sources(book, cells, edit, shown)


def _with_sources(book: Notebook, cells: list[Cell], edit: CellEdit, shown: str) -> ChangedNotebook:
    """Replace the text in the sources of some cells."""
    before: list[str] = []
    after: list[str] = []
    # From the end, so that the places of the cells before stay.
    for cell in reversed(cells):
        source = edit.new
        if edit.old:
            try:
                source = replace_text(cell.source, edit.old, edit.new, everywhere=edit.everywhere).text
            except ToolError as error:
                raise ToolError(f"{cell.name}: {error}") from error
        elif source == cell.source:
            raise ToolError(f"{cell.name} already has exactly this source")
        book = replace(book, text=book.with_source(cell, source))
        before.insert(0, cell.source)
        after.insert(0, source)
    names = cells[0].name if len(cells) == 1 else f"{counted(len(cells), 'cell')}: {_numbers(cells)}"
    return _changed(book.text, "\n".join(before), "\n".join(after), shown, names)


def _cells_with(book: Notebook, edit: CellEdit) -> list[Cell]:
    """Return the cells whose source has the text; only one, unless every occurrence is to be replaced."""
    found = [cell for cell in book.cells if edit.old in cell.source]
    if not found:
        # For its words about similar lines.
        replace_text("\n".join(cell.source for cell in book.cells), edit.old, edit.new, everywhere=True)
        raise ToolError("old_string was found only across cells; change one cell at a time")
    if len(found) > 1 and not edit.everywhere:
        raise ToolError(f"old_string occurs in cells {_numbers(found)}; set cell, or replace_all")
    return found


def _numbers(cells: list[Cell]) -> str:
    return ", ".join(str(cell.number) for cell in cells)


def _changed(text: str, old: str, new: str, shown: str, note: str) -> ChangedNotebook:
    name = shown.lstrip("/")
    return ChangedNotebook(text, diff_of(old, new, f"a/{name} {note}", f"b/{name} {note}"), note)
