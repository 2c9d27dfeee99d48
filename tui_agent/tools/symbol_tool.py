"""The tool `lookup`: asks a language server where a name is defined or used, what it is, and which symbols exist."""

import asyncio
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.server_entries import CodePlace, CodePosition, LookUp, LookupKind
from tui_agent.protocol.tool import Accesses, PathSubject, Subject, ToolContext, ToolResult

from .file_errors import missing_file_error
from .text_format import counted, printable
from .typed_tool import Arguments, PathText, Position
from .workspace import Workspace, WorkspaceTool

_DESCRIPTION = """Asks a language server about code: more exact than a search for text.
`definition` and `references` say where the name at a place is defined and used, `hover` its type and documentation.
`symbols` lists those of the file `path`, or without `path` those of the workspace whose names match `name`.
New problems that language servers find after write and edit are in the results of these."""
_MOST_PLACES = 200
_LARGEST_FILE = 4 * 1024 * 1024
_SHOWN_WIDTH = 200


class LookupArguments(Arguments):
    """Arguments of the lookup tool."""

    kind: LookupKind = Field(description="The question.")
    path: PathText | None = Field(default=None, description="File with the name; needed for all but symbols.")
    line: Position | None = Field(
        default=None, ge=1, description="Line of the name in the file; by default the first one with it."
    )
    name: str = Field(default="", description="The name, as it is on the line; for symbols, a part of their names.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.kind != "symbols" and (self.path is None or not self.name):
            raise ValueError(f"{self.kind} needs path and name")
        if self.kind == "symbols" and self.path is None and not self.name:
            raise ValueError("symbols needs path or name")
        return self


class LookupTool(WorkspaceTool[LookupArguments]):
    """Tool that asks language servers about code."""

    def __init__(self, workspace: Workspace, look_up: LookUp) -> None:
        super().__init__(workspace, "lookup", _DESCRIPTION, LookupArguments, read_only=True)
        self._workspace = workspace
        self._look_up = look_up

    def call_accesses(self, args: LookupArguments) -> Accesses:
        return Accesses(searches=frozenset({self._workspace.root}))

    def call_subject(self, args: LookupArguments) -> Subject:
        # Whatever file is named, the answer has places of the whole workspace.
        return PathSubject(".", "search", leaves_out_denied=True)

    def call_summary(self, args: LookupArguments) -> str:
        where = "" if args.path is None else f" in {args.path}{f':{args.line}' if args.line else ''}"
        return f"{args.kind}{f' {args.name}' if args.name else ''}{where}"

    async def run(self, args: LookupArguments, context: ToolContext) -> ToolResult:
        path = None if args.path is None else self._file(args.path, context)
        position = None
        if path is not None and args.kind != "symbols":
            position = await asyncio.to_thread(_position_of, path, args)
        answer = await self._look_up(args.kind, path, position, args.name)
        if args.kind == "hover":
            text = printable(answer.text) or "The language server says nothing about it."
            return ToolResult.of_text(
                text, details={"outcome": text.splitlines()[0][:80] if answer.text else "nothing"}
            )
        places = [place for place in answer.places if not self._is_denied(place.path, context)]
        if args.kind == "symbols" and path is not None and args.name:
            places = [place for place in places if args.name.casefold() in place.words.casefold()]
        noun = "symbol" if args.kind == "symbols" else "place"
        found = counted(len(places), noun)
        shown = places[:_MOST_PLACES]
        readable = {place.path for place in shown if self._workspace.contains(place.path)}
        readable = {path for path in readable if _may_read(path, context)}
        lines = await asyncio.to_thread(self._lines, shown, readable)
        if not places:
            lines = [f"No {noun} found."]
        elif len(places) > len(shown):
            lines.append(f"… and {len(places) - len(shown):,} more")
        return ToolResult.of_text("\n".join(lines), details={"outcome": found, "places": len(places)})

    def _file(self, given: str, context: ToolContext) -> Path:
        """Return the file of a call."""
        path = self._workspace.resolve(given)
        shown = self._workspace.display(path)
        if not self._workspace.contains(path):
            raise ToolError(
                f"{shown} is outside of the working directory; language servers only answer about files in it"
            )
        if self._is_denied(path, context):
            raise ToolError(f"a rule denies reading {shown}")
        if not _may_read(path, context):
            raise ToolError(f"{shown} is read only with an approval; read it with `read`")
        if not path.is_file():
            raise missing_file_error(path, shown)
        return path

    def _is_denied(self, path: Path, context: ToolContext) -> bool:
        root = self._workspace.root
        return path.is_relative_to(root) and context.is_denied(str(path.relative_to(root)))

    def _lines(self, places: Sequence[CodePlace], readable: Collection[Path]) -> list[str]:
        """Return a line for each place, with the text of the line if its file may be read without asking. Blocks."""
        texts: dict[Path, list[str]] = {}
        found: list[str] = []
        for place in places:
            where = f"{self._workspace.display(place.path)}:{place.position.line}:{place.position.column}"
            words = place.words
            if not words and place.path in readable:
                if place.path not in texts:
                    texts[place.path] = _lines_of(place.path)
                lines = texts[place.path]
                words = lines[place.position.line - 1].strip() if place.position.line <= len(lines) else ""
            found.append(f"{where}: {printable(words[:_SHOWN_WIDTH])}" if words else where)
        return found


def _may_read(path: Path, context: ToolContext) -> bool:
    """Return True if `read` may read a file without asking."""
    return context.can_use("read", {"path": str(path)}) == "allow"


def _position_of(path: Path, args: LookupArguments) -> CodePosition:
    """Return the place of the name of a call. Blocks."""
    lines = _lines_of(path)
    name = re.compile(rf"(?<!\w){re.escape(args.name)}(?!\w)")
    numbers = range(1, len(lines) + 1) if args.line is None else [args.line] if args.line <= len(lines) else []
    for number in numbers:
        if (match := name.search(lines[number - 1])) is not None:
            # Of a dotted name, the last part is meant.
            last = args.name.rfind(".") + 1
            return CodePosition(number, match.start() + last + 1)
    where = f"line {args.line}" if args.line is not None else "the file"
    raise ToolError(f"{printable(args.name)} is not in {where} of {args.path}; give the name as it is written there")


def _lines_of(path: Path) -> list[str]:
    try:
        return read_regular_file(str(path), _LARGEST_FILE).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
