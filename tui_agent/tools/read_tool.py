"""The read tool: show text with line numbers, a page at a time, an image, or a PDF."""

import asyncio
import os
from pathlib import Path

from pydantic import Field

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.prompt_references import media_type_of
from tui_agent.protocol.regular_file import FileReader
from tui_agent.protocol.tool import Accesses, PathSubject, Subject, ToolContext, ToolResult

from .file_errors import is_directory_error, missing_file_error, os_errors_as
from .file_versions import FileVersion, digest_of
from .line_pages import INLINE_LIMIT, PIECE, Line, LinePage, LineRequest, read_lines
from .media.media_blocks import load_media
from .media.notebook_cells import NOTEBOOK_LIMIT, notebook_page
from .media.notebook_file import SUFFIX, read_notebook
from .pinned_directory import open_file
from .text_format import SAMPLE_SIZE, counted, find_format, is_binary, printable
from .typed_tool import Arguments, PathText, Position
from .workspace import Workspace, WorkspaceTool

PAGE_LINES = 2_000
"""Lines of a page if the call does not set `limit`."""

PAGE_CHARACTERS = 40_000
"""Most characters of a page; below the limit at which the engine cuts results."""

LINE_WIDTH = 2_000

_NUMBER_WIDTH = 8
"""Characters for a line's number, its tab and its line ending."""

_DESCRIPTION = f"""Reads a file: text with line numbers, an image, a PDF, or the cells of a notebook (.ipynb).
Each line is shown as its number, a tab, and its text; number and tab are not part of the file.
One call returns at most {PAGE_LINES:,} lines and {PAGE_CHARACTERS:,} characters; set `offset` to read further on.
Lines longer than {LINE_WIDTH:,} characters are cut; set `column` to read on inside the line at `offset`.
You must read an existing file before you overwrite it."""


class ReadArguments(Arguments):
    """Arguments of the read tool."""

    path: PathText = Field(description="File to read: absolute, relative to the working directory, or starting with ~.")
    offset: Position = Field(default=1, ge=1, description="Number of the first line, or cell, to read, from 1.")
    limit: int = Field(default=PAGE_LINES, ge=1, description="Most lines, or cells, to read.")
    column: Position = Field(
        default=1, ge=1, description="First character to read of the first line, from 1; pages inside one long line."
    )


class ReadTool(WorkspaceTool[ReadArguments]):
    """Tool that shows a page of a text file, an image or a PDF."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace, "read", _DESCRIPTION, ReadArguments, read_only=True)

    def call_accesses(self, args: ReadArguments) -> Accesses:
        return Accesses(reads=frozenset({self._workspace.resolve(args.path)}))

    def call_subject(self, args: ReadArguments) -> Subject:
        return PathSubject(self._workspace.given(args.path), "read")

    def call_summary(self, args: ReadArguments) -> str:
        last = f"–{args.offset + args.limit - 1}" if args.limit != PAGE_LINES else ""
        lines = f":{args.offset}{last}" if last or args.offset > 1 else ""
        return f"{args.path}{lines}"

    async def run(self, args: ReadArguments, context: ToolContext) -> ToolResult:
        place = self._workspace.place(args.path, context.targets)
        path, shown = place.path, self._workspace.display(place.path)
        try:
            with os_errors_as(f"cannot read {shown}"):
                async with open_file(path, shown, place=place) as (file, status):
                    start = await file.read(PIECE)
                    sample = start[:SAMPLE_SIZE]
                    is_notebook = path.suffix == SUFFIX and status.st_size <= NOTEBOOK_LIMIT
                    if is_notebook and (result := await self._read_notebook(path, file, status, start, args, context)):
                        return result
                    if media_type := media_type_of(sample):
                        return await self._read_media(path, file, status, start, media_type, context)
                    # The saved output of a command has no other way to the model, whatever it contains.
                    if is_binary(sample) and not self._workspace.is_spooled(path):
                        raise ToolError(_binary_words(shown, status.st_size, sample))
                    first, last = args.offset, args.offset + args.limit - 1
                    # A call that pages inside one long line gets a whole page of it.
                    width = LINE_WIDTH if args.column == 1 else PAGE_CHARACTERS
                    request = LineRequest(((first, last),), width, PAGE_CHARACTERS, _NUMBER_WIDTH, args.column)
                    form = await find_format(sample)
                    page = await read_lines(file, status, form, start, request, context.cancellation.is_set)
        except ToolError as error:
            # Asked after it failed, so that an ordinary call needs no further look.
            if await asyncio.to_thread(os.path.isdir, path):
                raise await asyncio.to_thread(is_directory_error, path, shown) from error
            if isinstance(error.__cause__, FileNotFoundError):
                raise await asyncio.to_thread(missing_file_error, path, shown) from error
            raise
        self._workspace.versions.remember(path, page.version)
        if len(start) <= INLINE_LIMIT:
            return _page_result(page, args, path, shown)
        return await asyncio.to_thread(_page_result, page, args, path, shown)

    async def _read_notebook(
        self,
        path: Path,
        file: FileReader,
        status: os.stat_result,
        start: bytes,
        args: ReadArguments,
        context: ToolContext,
    ) -> ToolResult | None:
        """Return cells of the notebook that begins with `start`; None, with the file at its place, if it is none."""
        content = start + await file.read(NOTEBOOK_LIMIT)
        form = await find_format(content[:SAMPLE_SIZE])
        book = await asyncio.to_thread(
            lambda: read_notebook(content[len(form.mark) :].decode(form.encoding, "replace"))
        )
        if book is None:
            # The caller reads on from there, as text.
            await file.seek(len(start))
            return None
        shown = self._workspace.display(path)
        page = await notebook_page(book, args.offset, args.limit, PAGE_CHARACTERS, shown, context.cancellation)
        digest = await asyncio.to_thread(digest_of, content)
        self._workspace.versions.remember(path, FileVersion.of(status, digest, content))
        total = counted(len(book.cells), "cell")
        is_whole = page.first <= 1 and page.last == len(book.cells)
        details: JsonObject = {
            "outcome": total if is_whole else f"cells {page.first}–{page.last} of {len(book.cells)}",
            "path": printable(str(path)),
            "first_cell": page.first,
            "last_cell": page.last,
            "total_cells": len(book.cells),
        }
        return ToolResult(content=page.blocks, details=details)

    async def _read_media(
        self,
        path: Path,
        file: FileReader,
        status: os.stat_result,
        start: bytes,
        media_type: str,
        context: ToolContext,
    ) -> ToolResult:
        """Return the image or PDF in a file of which `start` was read."""
        shown = self._workspace.display(path)
        media = await load_media(file, status, start, media_type, shown, context.cancellation)
        # Of what is on the disk, not of the scaled image: a later call compares the file with it.
        digest = await asyncio.to_thread(digest_of, media.content)
        self._workspace.versions.remember(path, FileVersion.of(status, digest))
        details: JsonObject = {**media.details, "path": printable(str(path))}
        return ToolResult(content=(TextBlock(text=f"{shown}: {media.words}"), media.block), details=details)


def numbered(line: Line) -> str:
    """Return a line as the model sees it: number, tab, text, and notes if it was cut."""
    before = f"[{line.skipped:,} characters …] " if line.skipped else ""
    column = line.skipped + len(line.text) + 1
    more = f" [… {line.left_out:,} more characters in this line, from column={column}]" if line.left_out else ""
    return f"{line.number:>{_NUMBER_WIDTH - 2}}\t{before}{printable(line.text)}{more}"


def _page_result(page: LinePage, args: ReadArguments, path: Path, shown: str) -> ToolResult:
    """Return the page as a result: its lines, then notes in brackets."""
    if not page.lines:
        if page.total == 0:
            return ToolResult.of_text(f"[{shown} is empty]", details=_details(page, path))
        raise ToolError(f"{shown} has only {page.total:,} lines; offset={args.offset} is past its end")
    first = page.lines[0]
    if first.skipped and not first.text:
        words = f"line {first.number:,} of {shown} has only {first.skipped:,} characters"
        raise ToolError(f"{words}; column={args.column} is past its end")
    notes = [note for note in (_range_note(page), _format_note(page)) if note]
    text = "\n".join([*map(numbered, page.lines), *(f"[{note}]" for note in notes)])
    return ToolResult.of_text(text, details=_details(page, path))


def _range_note(page: LinePage) -> str:
    """Return a note on the lines shown and how to read further; empty if they are the whole file."""
    first, last = page.lines[0].number, page.lines[-1].number
    if page.total == last:
        return "" if first == 1 else f"lines {first:,} to {last:,}, the end of the file"
    of = f" of {page.total:,}" if page.total is not None else "; the file is too long to count its lines"
    why = " (the page is full)" if page.full else ""
    return f"lines {first:,} to {last:,}{of}{why}; continue with offset={last + 1}"


def _format_note(page: LinePage) -> str:
    """Return a note on an unusual encoding or line ending; empty if there is nothing to note."""
    ends = (
        "CR line endings"
        if page.format.is_cr
        else "CR LF line endings"
        if page.crlf == len(page.lines)
        else "some lines end in CR LF"
        if page.crlf
        else ""
    )
    odd = sum(printable(line.text) != line.text for line in page.lines)
    bytes_note = f"invalid bytes are shown as \\x.. in {odd:,} lines" if odd else ""
    return "; ".join(note for note in (page.format.words, ends, bytes_note) if note)


def _details(page: LinePage, path: Path) -> JsonObject:
    first, last = (page.lines[0].number, page.lines[-1].number) if page.lines else (0, 0)
    is_whole = first <= 1 and last == page.total
    of = f" of {page.total:,}" if page.total is not None else ""
    return {
        "outcome": counted(last, "line") if is_whole else f"lines {first:,}–{last:,}{of}",
        "path": printable(str(path)),
        "first_line": first,
        "last_line": last,
        "total_lines": page.total,
        "encoding": page.format.encoding,
    }


def _binary_words(shown: str, size: int, sample: bytes) -> str:
    start = sample[:16].hex(" ")
    return f"{shown} is a binary file of {size:,} bytes (it begins with {start}); inspect it with a program run by bash"
