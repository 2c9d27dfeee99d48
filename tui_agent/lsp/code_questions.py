"""Questions about code in the words of the protocol, and the answers of servers."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.server_entries import CodePlace, CodePosition, LookupAnswer, LookupKind

from .problems import path_of, start_of

if TYPE_CHECKING:
    from .language_connection import LanguageConnection

_LARGEST_READ = 4 * 1024 * 1024
_METHODS: dict[LookupKind, tuple[str, str]] = {
    "definition": ("textDocument/definition", "definitionProvider"),
    "references": ("textDocument/references", "referencesProvider"),
    "hover": ("textDocument/hover", "hoverProvider"),
    "symbols": ("textDocument/documentSymbol", "documentSymbolProvider"),
}
_OF_WORKSPACE = ("workspace/symbol", "workspaceSymbolProvider")
_SYMBOLS = (
    "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum",
    "interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null",
    "enum member", "struct", "event", "operator", "type parameter",
)  # fmt: skip
"""Kinds of symbols in the order of their numbers, from 1."""


def _method(kind: LookupKind, path: Path | None) -> tuple[str, str]:
    return _METHODS[kind] if path is not None else _OF_WORKSPACE


def can_answer(connection: "LanguageConnection", kind: LookupKind, path: Path | None) -> bool:
    """Return True if a server answers questions of a kind."""
    return connection.offers(_method(kind, path)[1])


async def ask_server(
    connection: "LanguageConnection", kind: LookupKind, path: Path | None, position: CodePosition | None, query: str
) -> LookupAnswer:
    """Return the answer of a server; arguments as of `LookUp`.

    Raises:
        ToolError: it does not answer.
    """
    params: JsonObject = {"query": query}
    if path is None:
        await connection.refresh()
    else:
        await connection.open(path)
        params = {"textDocument": {"uri": path.as_uri()}}
    if path is not None and position is not None:
        line = (await asyncio.to_thread(_lines_of, path, {position.line})).get(position.line, "")
        # Servers count columns in UTF-16 units.
        column = len(line[: position.column - 1].encode("utf-16-le", "surrogatepass")) // 2
        params["position"] = {"line": position.line - 1, "character": column}
    if kind == "references":
        params["context"] = {"includeDeclaration": True}
    answer = await connection.request(_method(kind, path)[0], params)
    if kind == "hover":
        return LookupAnswer(text="\n".join(_texts(answer.get("contents") if is_object(answer) else None)).strip())
    found = list(_places(answer, path))
    return LookupAnswer(await asyncio.to_thread(_with_columns, found))


def _places(answer: object, path: Path | None) -> Iterator[CodePlace]:
    """Yield the places of an answer, columns as the server counts them; addresses other than of files are left out."""
    for item in answer if is_array(answer) else [answer]:
        if not is_object(item):
            continue
        location: object = item.get("location", item)
        where: JsonObject = location if is_object(location) else item
        uri = where.get("uri", where.get("targetUri"))
        extent = where.get("range", where.get("targetSelectionRange"))
        file = path if uri is None else path_of(uri)
        # In the outline of a file, a symbol has the place of its name and that of all of it.
        line, column = start_of(item.get("selectionRange", extent))
        if file is not None:
            yield CodePlace(file, CodePosition(line + 1, column + 1), _words(item))
        if is_array(children := item.get("children")):
            yield from _places(children, path)


def _words(item: JsonObject) -> str:
    name, kind = item.get("name"), item.get("kind")
    if not isinstance(name, str):
        return ""
    known = isinstance(kind, int) and 0 < kind <= len(_SYMBOLS)
    words = f"{_SYMBOLS[kind - 1]} {name}" if known and isinstance(kind, int) else name
    container = item.get("containerName")
    return f"{words} in {container}" if isinstance(container, str) and container else words


def _with_columns(places: Sequence[CodePlace]) -> list[CodePlace]:
    """Return the places with columns in characters. Blocks."""
    wanted: dict[Path, set[int]] = {}
    for place in places:
        wanted.setdefault(place.path, set()).add(place.position.line)
    texts = {path: _lines_of(path, lines) for path, lines in wanted.items()}
    found: list[CodePlace] = []
    for place in places:
        line = texts[place.path].get(place.position.line, "")
        units = line.encode("utf-16-le", "surrogatepass")[: 2 * (place.position.column - 1)]
        column = len(units.decode("utf-16-le", "replace")) + 1
        found.append(CodePlace(place.path, CodePosition(place.position.line, column), place.words))
    return found


def _lines_of(path: Path, numbers: set[int]) -> dict[int, str]:
    """Return some lines of a file, as far as it can be read. Blocks."""
    try:
        lines = read_regular_file(str(path), _LARGEST_READ).decode("utf-8", "replace").split("\n")
    except OSError:
        return {}
    return {number: lines[number - 1] for number in numbers if 0 < number <= len(lines)}


def _texts(contents: object) -> Iterator[str]:
    """Yield the texts of a description."""
    if isinstance(contents, str):
        yield contents
    elif is_object(contents):
        yield from _texts(contents.get("value"))
    elif is_array(contents):
        for part in contents:
            yield from _texts(part)
