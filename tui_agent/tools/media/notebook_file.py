"""Jupyter notebooks as text with cells: a change of one cell leaves every other byte of the file as it is."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject, is_array, is_object

SUFFIX = ".ipynb"

NewKind: TypeAlias = Literal["code", "markdown"]

_LEAST_FORMAT = 4
_FORMAT_WITH_IDS = (4, 5)
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BEYOND_ASCII = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, and its place in the text."""

    number: int
    kind: str
    """`code`, `markdown` or `raw`."""
    source: str
    start: int
    end: int
    """Place in the text after it."""
    source_start: int
    source_end: int
    data: JsonObject

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"cell {self.number} ({self.kind})"


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4."""

    text: str
    cells: tuple[Cell, ...]
    cells_start: int
    """Place of the bracket that opens the list of cells."""
    cells_end: int
    """Place after the bracket that closes it."""
    has_ids: bool

    def cell(self, number: int) -> Cell:
        """Return a cell by its number, from 1.

        Raises:
            ToolError: the notebook has no such cell.
        """
        if number > len(self.cells):
            raise ToolError(f"there is no cell {number:,}; the notebook has {len(self.cells):,}")
        return self.cells[number - 1]

    def with_source(self, cell: Cell, source: str) -> str:
        """Return the text with another source of one cell, in the form of the present one."""
        written = self._written_source(cell, source)
        return self.text[: cell.source_start] + written + self.text[cell.source_end :]

    def with_cell(self, number: int, kind: NewKind, source: str) -> str:
        """Return the text with a new cell that gets this number; the numbers begin at 1.

        Raises:
            ToolError: the number is larger than that of the cell after the last one.
        """
        if number > len(self.cells) + 1:
            raise ToolError(f"there is no cell {number:,}; cell={len(self.cells) + 1:,} adds one at the end")
        text = self._written_cell(kind, source)
        if not self.cells:
            inner, outer = self._newline + self._indent * 2, self._newline + self._indent
            gaps = (inner, outer) if self._is_indented else ("", "")
            return f"{self.text[: self.cells_start]}[{gaps[0]}{text}{gaps[1]}]{self.text[self.cells_end :]}"
        if number <= len(self.cells):
            place = self.cells[number - 1].start
            return f"{self.text[:place]}{text},{self._gap_before(number)}{self.text[place:]}"
        place = self.cells[-1].end
        return f"{self.text[:place]},{self._gap_before(number - 1)}{text}{self.text[place:]}"

    def without_cell(self, cell: Cell) -> str:
        """Return the text without one cell."""
        if cell.number < len(self.cells):
            return self.text[: cell.start] + self.text[self.cells[cell.number].start :]
        if cell.number > 1:
            return self.text[: self.cells[cell.number - 2].end] + self.text[cell.end :]
        return f"{self.text[: self.cells_start]}[]{self.text[self.cells_end :]}"

    # --- form ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @cached_property
    def _indent(self) -> str:
        """The indentation of the first level; a blank, as Jupyter writes it, if there is none."""
        found = re.match(r"\s*\{\r?\n([ \t]+)", self.text)
        return found[1] if found is not None else " "

    @cached_property
    def _is_indented(self) -> bool:
        return re.match(r"\s*\{\r?\n", self.text) is not None

    @cached_property
    def _escapes(self) -> bool:
        """True if the file writes letters beyond ASCII as escapes."""
        return self.text.isascii() and _BEYOND_ASCII.search(self.text) is not None

    def _gap_before(self, number: int) -> str:
        """Return the blanks before a cell."""
        start = self.cells[number - 1].start
        gap = self.text[len(self.text[:start].rstrip(" \t\r\n")) : start]
        # The first cell may follow its bracket at once although the others are apart.
        return gap or (self._gap_before(2) if number == 1 < len(self.cells) else "")

    def _written_source(self, cell: Cell, source: str) -> str:
        present = self.text[cell.source_start : cell.source_end]
        if present.startswith('"'):
            return self._written(source)
        lines = [self._written(line) for line in _LINE.findall(source)]
        if not lines:
            return "[]"
        line_start = self.text.rfind("\n", 0, cell.source_start) + 1
        own = _BLANK.match(self.text, line_start)
        outer = self._newline + (own[0] if own is not None else "")
        if not self._is_indented:
            # As compact as the rest of the file, which its first keys show.
            return f"[{', '.join(lines)}]" if ": " in self.text[:100] else f"[{','.join(lines)}]"
        items = re.match(r"\[(\r?\n[ \t]*)", present)
        inner = items[1] if items is not None else outer + self._indent
        return f"[{inner}{f',{inner}'.join(lines)}{outer}]"

    def _written_cell(self, kind: NewKind, source: str) -> str:
        """Return a new cell as JSON, its later lines indented as in the list."""
        code: JsonObject = {"execution_count": None, "outputs": []} if kind == "code" else {}
        own_id: JsonObject = {"id": self._new_id(source)} if self.has_ids else {}
        cell: JsonObject = {"cell_type": kind, **own_id, "metadata": {}, "source": _LINE.findall(source), **code}
        if not self._is_indented:
            separators = (", ", ": ") if ": " in self.text[:100] else (",", ":")
            return json.dumps(cell, ensure_ascii=self._escapes, sort_keys=True, separators=separators)
        # Sorted, as Jupyter writes the keys.
        text = json.dumps(cell, ensure_ascii=self._escapes, sort_keys=True, indent=self._indent)
        margin = self._gap_before(1).rpartition("\n")[2] if self.cells else self._indent * 2
        return text.replace("\n", self._newline + margin)

    def _written(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._escapes)

    def _new_id(self, source: str) -> str:
        """Return an id that no cell has; the same each time, so that the preview and the change agree."""
        taken = {cell.data.get("id") for cell in self.cells}
        ids = (hashlib.sha256(f"{number} {source}".encode()).hexdigest()[:8] for number in range(len(taken) + 1))
        return next(new for new in ids if new not in taken)


def read_notebook(text: str) -> Notebook | None:
    """Return the notebook that a text contains; None if it is not one of format 4."""
    try:
        # Checks all of the text first, as the search for places below expects sound JSON.
        whole: object = json.loads(text)
        if not is_object(whole) or not is_array(whole.get("cells")):
            return None
        major, minor = whole.get("nbformat"), whole.get("nbformat_minor")
        if not isinstance(major, int) or major < _LEAST_FORMAT:
            return None
        start, end = _member(text, 0, "cells")
        cells = tuple(_cells(text, start))
    except (ValueError, KeyError, RecursionError):
        return None
    has_ids = (major, minor if isinstance(minor, int) else 0) >= _FORMAT_WITH_IDS
    return Notebook(text, cells, start, end, has_ids)


def _cells(text: str, start: int) -> Iterator[Cell]:
    """Yield the cells of a list."""
    for number, (begin, end, value) in enumerate(_elements(text, start), start=1):
        if not is_object(value):
            raise ValueError("a cell is not an object")
        source_start, source_end = _member(text, begin, "source")
        source: object = value["source"]
        lines: list[object] = source if is_array(source) else [source]
        texts = [line for line in lines if isinstance(line, str)]
        if len(texts) < len(lines):
            raise ValueError("a source is not text")
        kind = str(value.get("cell_type", ""))
        yield Cell(number, kind, "".join(texts), begin, end, source_start, source_end, value)


def _member(text: str, place: int, key: str) -> tuple[int, int]:
    """Return where the value of a key begins and ends, in the object at a place."""
    found: tuple[int, int] | None = None
    place = _after_blank(text, _after_blank(text, place) + 1)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        start = _after_blank(text, _after_blank(text, place) + 1)
        _, end = _DECODER.raw_decode(text, start)
        # The last one counts, as for `json.loads`.
        found = (start, end) if name == key else found
        place = _after_comma(text, end)
    if found is None:
        raise KeyError(key)
    return found


def _elements(text: str, place: int) -> Iterator[tuple[int, int, object]]:
    """Yield beginning, end and value of each element of the list at a place."""
    place = _after_blank(text, place + 1)
    while text[place] != "]":
        value, end = _DECODER.raw_decode(text, place)
        yield place, end, value
        place = _after_comma(text, end)


def _after_blank(text: str, place: int) -> int:
    match = _BLANK.match(text, place)
    return match.end() if match is not None else place


def _after_comma(text: str, place: int) -> int:
    place = _after_blank(text, place)
    return _after_blank(text, place + 1) if text[place] == "," else place
