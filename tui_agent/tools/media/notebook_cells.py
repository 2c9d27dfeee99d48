"""Cells of a notebook: as the model reads them, with number, kind, source and outputs; and changes of single ones."""

import asyncio
import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import ImageBlock, JsonObject, TextBlock, UserBlock, is_array, is_object
from tui_agent.protocol.prompt_references import image_type
from tui_agent.protocol.visible_text import without_sequences
from tui_agent.tools.text_format import counted, printable
from tui_agent.tools.text_match import replace_text
from tui_agent.tools.unified_diff import diff_of

from .image_files import IMAGE_LIMIT, load_image
from .notebook_file import Cell, NewKind, Notebook

NOTEBOOK_LIMIT = 32 * 1024 * 1024
"""Largest notebook in bytes; a larger one is read as text."""

LONGEST_OUTPUT = 2_000
"""Most characters shown of one output; of a longer one both ends."""

LONGEST_SOURCE = 20_000

MOST_IMAGES = 8
"""Images of one page; damaged ones count, because a program decodes each."""

_IMAGE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """Some cells of a notebook."""

    blocks: tuple[UserBlock, ...]
    first: int
    """Number of the first cell; 0 if the notebook is empty."""
    last: int


async def notebook_page(
    book: Notebook, first: int, count: int, budget: int, shown: str, cancellation: CancellationToken
) -> NotebookPage:
    """Return up to `count` cells from number `first` (the first is 1), as many as fit into `budget` characters.

    At least one is returned; for a notebook without cells, a note.

    Raises:
        ToolError: it has fewer cells.
        OperationCancelledError: the call was cancelled.
    """
    total = len(book.cells)
    if not total:
        return NotebookPage((TextBlock(text=f"[{shown} is a notebook without cells]"),), 0, 0)
    if first > total:
        raise ToolError(f"{shown} has only {counted(total, 'cell')}; offset={first} is past its end")
    texts: list[str] = []
    images: list[UserBlock] = []
    tried = 0
    last = first
    for cell in book.cells[first - 1 : first - 1 + count]:
        text, pictures = await asyncio.to_thread(_shown, cell)
        budget -= len(text)
        if texts and budget < 0:
            break
        for number, (data, media_type) in enumerate(pictures, start=1):
            name = f"image {number} of cell {cell.number}"
            block, words = await _image(data, media_type, name, cancellation, is_full=tried >= MOST_IMAGES)
            tried += 1
            images += [block] if block is not None else []
            text += f"\n[{words}]"
        texts.append(text)
        last = cell.number
    if first > 1 or last < total:
        further = f"; continue with offset={last + 1}" if last < total else ", the end of the notebook"
        texts.append(f"[cells {first} to {last} of {total}{further}]")
    return NotebookPage((TextBlock(text="\n\n".join(texts)), *images), first, last)


def _shown(cell: Cell) -> tuple[str, list[tuple[str, str]]]:
    """Return a cell as text, and the images of its outputs in base64 with their types."""
    run: object = cell.data.get("execution_count")
    state = f", run {run}" if isinstance(run, int) else ", not run" if cell.kind == "code" else ""
    lines = [f"[cell {cell.number}: {printable(cell.kind)}{state}]", printable(_ends(cell.source, LONGEST_SOURCE))]
    images: list[tuple[str, str]] = []
    outputs: object = cell.data.get("outputs")
    for output in outputs if is_array(outputs) else []:
        if is_object(output):
            lines += _output(output, images)
    return "\n".join(line for line in lines if line), images


def _output(output: JsonObject, images: list[tuple[str, str]]) -> Iterator[str]:
    """Yield an output as text; add its images to `images`."""
    kind = output.get("output_type")
    data: object = output.get("data")
    if kind == "stream":
        yield _titled(str(output.get("name", "output")), _text_of(output.get("text")))
    elif kind == "error":
        error = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        trace: object = output.get("traceback")
        rows = [str(row) for row in trace] if is_array(trace) else []
        # The traceback ends with the error itself.
        yield _titled("error", "\n".join(rows) or error)
    elif is_object(data):
        images += [(_text_of(data[media]), media) for media in _IMAGE_KINDS if media in data]
        if "text/plain" in data:
            yield _titled("result" if kind == "execute_result" else "shown", _text_of(data["text/plain"]))
        elif others := [media for media in data if media not in _IMAGE_KINDS]:
            yield f"[output of type {printable(', '.join(map(str, others)))}: not shown]"


def _titled(title: str, text: str) -> str:
    return f"[{printable(title)}]\n{printable(_ends(without_sequences(text).rstrip(), LONGEST_OUTPUT))}"


def _text_of(value: object) -> str:
    """Return a text that a notebook has as one string or as a list of lines."""
    return "".join(str(line) for line in value) if is_array(value) else str(value or "")


def _ends(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text.removesuffix("\n")
    return f"{text[: limit // 2]}\n[… {len(text) - limit:,} characters left out …]\n{text[-(limit // 2) :]}"


async def _image(
    data: str, media_type: str, name: str, cancellation: CancellationToken, *, is_full: bool
) -> tuple[ImageBlock | None, str]:
    """Return the image as a block, and words about it; None if it is not shown."""
    if is_full:
        return None, f"{name}: {media_type}, not shown; read fewer cells"
    try:
        content = await asyncio.to_thread(base64.b64decode, "".join(data.split()), validate=True)
        found = image_type(content)
        if found is None or len(content) > IMAGE_LIMIT:
            return None, f"{name}: {media_type}, {len(content):,} bytes, cannot be shown"
        image = await load_image(content, found, name, cancellation)
    except (binascii.Error, ToolError) as error:
        return None, f"{name}: {error}"
    return image.block, f"{name}: {found}, {image.width}×{image.height} pixels"


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
        ToolError: the notebook has no such cell, or the text does not match.
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
