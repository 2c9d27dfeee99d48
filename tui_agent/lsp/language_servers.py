"""The language servers of a session: what they find in a changed file, and their answers to questions."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.background import run_service
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.server_entries import CodePlace, CodePosition, LanguageServer, LookupAnswer, LookupKind

from .problems import Findings, Problem, new_problems, path_of, start_of
from .server_keeper import KeeperParts, ServerKeeper

WAIT_SECONDS = 2.0
"""Most seconds that an edit waits for what servers find in its file."""
_CHANGES = {"created": 1, "modified": 2, "deleted": 3}
"""Numbers of the kinds of changes in the protocol."""


@dataclass(frozen=True, slots=True)
class _Check:
    """A check of a file by a server."""

    task: "asyncio.Task[Findings | None]"
    before: str | None


class LanguageServers:
    """The servers of a session. Each starts when it is first needed; none ever makes a call or a run fail."""

    def __init__(self, servers: Mapping[str, LanguageServer], parts: KeeperParts) -> None:
        self.notify: Callable[[str], object] = lambda _: None
        """Called with a text for the model about problems that servers found too late for the result of the edit."""
        self.keepers = tuple(ServerKeeper(name, server, parts) for name, server in servers.items())
        self._root = parts.root
        self._publish = parts.publish
        self._tasks: asyncio.TaskGroup | None = None
        self._checks: dict[tuple[str, Path], _Check] = {}
        """The checks that still run, by server and file."""
        self._preparing: dict[tuple[str, Path], asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["LanguageServers"]:
        """Let the servers start when they are first needed; end them when the context closes."""
        try:
            async with asyncio.TaskGroup() as tasks:
                owners = [tasks.create_task(keeper.run()) for keeper in self.keepers]
                self._tasks = tasks
                try:
                    yield self
                finally:
                    self._tasks = None
                    checks = [check.task for check in self._checks.values()]
                    for task in (*checks, *self._preparing.values(), *owners):
                        task.cancel()
        except BaseExceptionGroup as group:
            # The tasks never fail, so this is an error of the caller, which expects no group.
            raise group.exceptions[0] from None

    # --- changes ------------------------------------------------------------------------------------------------------

    def has_server_for(self, path: Path) -> bool:
        """Return True if a server that was not given up is for a file."""
        return any(not keeper.is_given_up for keeper in self._for(path))

    def prepare_named(self, path: str) -> None:
        """Let the servers read a file that a call is going to change, while it waits for an approval; never waits.

        Args:
            path: as the call names it; relative to the workspace.
        """
        file = Path(os.path.normpath(self._root / Path(path).expanduser()))
        for keeper in self._for(file):
            key = (keeper.name, file)
            if self._tasks is not None and not keeper.is_given_up and key not in self._preparing:
                self._preparing[key] = task = self._tasks.create_task(_prepared(keeper, file))
                task.add_done_callback(lambda _, key=key: self._preparing.pop(key, None))

    def file_changed(self, path: Path, change: str) -> None:
        """Notify the running servers of a change of a file, whatever made it.

        Args:
            path: absolute; a relative one is ignored.
            change: `created`, `modified` or `deleted`.
        """
        if not path.is_absolute():
            return
        event = {"uri": path.as_uri(), "type": _CHANGES.get(change, 2)}
        for keeper in self.keepers:
            if keeper.running is not None:
                keeper.running.notify("workspace/didChangeWatchedFiles", {"changes": [event]})

    async def check(self, path: Path, before: str | None, after: str) -> Findings:
        """Return the findings of servers about a changed file within `WAIT_SECONDS`; `notify` gets later ones.

        Empty findings if no server is for the file.

        Args:
            path: the file, links followed.
            before: its text before the change; empty for a new file, None if it is not known.
            after: its text now.
        """
        started = [(keeper, self._start_check(keeper, path, before, after)) for keeper in self._for(path)]
        running = [(keeper, task) for keeper, task in started if task is not None]
        if not running:
            return Findings()
        await asyncio.wait({task for _, task in running}, timeout=WAIT_SECONDS)
        late = tuple(keeper.name for keeper, task in running if not task.done())
        for keeper, task in running:
            if not task.done():
                task.add_done_callback(lambda done, name=keeper.name: self._report_late(name, path, done))
        results = [task.result() for _, task in running if task.done() and not task.cancelled()]
        return _joined(results, late, is_compared=before is not None)

    def _start_check(
        self, keeper: ServerKeeper, path: Path, before: str | None, after: str
    ) -> "asyncio.Task[Findings | None] | None":
        if self._tasks is None or keeper.is_given_up:
            return None
        key = (keeper.name, path)
        if (old := self._checks.get(key)) is not None:
            # What it finds is about a text that is gone; what both changes brought is new.
            old.task.cancel()
            before = old.before
        task = self._tasks.create_task(_checked(keeper, path, before, after))
        self._checks[key] = _Check(task, before)

        def forget(done: asyncio.Task[Findings | None]) -> None:
            if (check := self._checks.get(key)) is not None and check.task is done:
                del self._checks[key]

        task.add_done_callback(forget)
        return task

    def _report_late(self, name: str, path: Path, task: "asyncio.Task[Findings | None]") -> None:
        found = None if task.cancelled() else task.result()
        if found is not None and found.new:
            text = f"{name} found {found.counts} in {self.shown(path)} after an earlier change."
            self._publish(Noticed(code="late_problems", text=text))
            self.notify(f"The language server {name} has checked an earlier change. {found.text(self.shown(path))}")

    def shown(self, path: Path) -> str:
        """Return the name of a file for messages."""
        return str(path.relative_to(self._root) if path.is_relative_to(self._root) else path)

    # --- questions ----------------------------------------------------------------------------------------------------

    async def look_up(
        self, kind: LookupKind, path: Path | None, position: CodePosition | None, query: str
    ) -> LookupAnswer:
        """Return the first answer of a server that is not empty; an empty one if all answers are.

        The arguments are those of `LookUp`.

        Raises:
            ToolError: no server can answer, with the reason.
        """
        keepers = self.keepers if path is None else self._for(path)
        if not keepers:
            names = ", ".join(f"{one.name} ({', '.join(one.server.files)})" for one in self.keepers)
            raise ToolError(f"No language server is configured for {path}; there are: {names}.")
        problems: list[str] = []
        has_answered = False
        for keeper in keepers:
            try:
                connection = await keeper.connection()
                if not can_answer(connection, kind, path):
                    problems.append(f"{keeper.name} does not offer it")
                    continue
                answer = await ask_server(connection, kind, path, position, query)
            except ToolError as error:
                problems.append(f"{keeper.name}: {error}")
                continue
            has_answered = True
            if answer.places or answer.text:
                return answer
        if has_answered:
            return LookupAnswer()
        raise ToolError(f"No language server could answer: {'; '.join(problems)}")

    def _for(self, path: Path) -> Sequence[ServerKeeper]:
        return [keeper for keeper in self.keepers if matches(keeper, path)]


def matches(keeper: ServerKeeper, path: Path) -> bool:
    """Return True if a file is below the server's directory and one of its patterns matches it."""
    if not path.is_relative_to(keeper.directory):
        return False
    relative = str(path.relative_to(keeper.directory))
    # As in `.gitignore`: a pattern without a slash means a name at any depth.
    return any(fnmatchcase(relative if "/" in one else path.name, one) for one in keeper.server.files)


async def _prepared(keeper: ServerKeeper, path: Path) -> None:
    """Let a server have a file open as it is now."""

    async def work() -> None:
        connection = await keeper.connection()
        await connection.open(path)

    await run_service(f"preparation of {keeper.name}", work())


async def _checked(keeper: ServerKeeper, path: Path, before: str | None, after: str) -> Findings | None:
    """Return what a server finds; None if it does not run or answer."""

    async def work() -> Findings:
        connection = await keeper.connection()
        old, new = await connection.changed_problems(path, before, after)
        found, known = new_problems(old, new)
        return Findings(found, known, is_compared=before is not None)

    return await run_service(f"check by {keeper.name}", work())


def _joined(results: Iterable[Findings | None], late: Sequence[str], *, is_compared: bool) -> Findings:
    """Return what several servers found as one."""
    found = [result for result in results if result is not None]
    problems: list[Problem] = [problem for result in found for problem in result.new]
    problems.sort(key=lambda one: (one.severity, one.line, one.column))
    return Findings(problems, sum(result.known for result in found), late, is_compared)


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
        # Otherwise an answer about the workspace could be about texts from before.
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
