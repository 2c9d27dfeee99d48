"""The connection to one running language server: its documents, problems and answers.

The library `pygls` frames the messages and matches answers with requests. Their content stays plain JSON, because its
typed classes refuse a whole message for one field that a server fills in another way.
"""

import asyncio
import logging
import os
import signal
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from lsprotocol.converters import get_converter
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.pipes import close_pipes, has_exited, signal_group
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.server_entries import LaunchedProgram

from .problems import Problem, parse_problems, path_of

# Its warnings, about servers that break the protocol, would be drawn over the screen.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)

START_SECONDS = 30.0
REQUEST_SECONDS = 20.0
CHECK_SECONDS = 60.0
"""Seconds to wait for the problems of a file."""
_EXIT_SECONDS = 1.0
_QUIET_SECONDS = 0.25
"""Seconds without another report after which reports count as complete that may not be the last ones."""
_LONGEST_MESSAGE = 32 * 1024 * 1024
_LONGEST_HEADER = 64 * 1024
_MOST_OPEN = 20
_MOST_CHECKED = 2
_MOST_SILENT = 3
_RETRIES = 3
_FIRST_NUMBER = 1_000_000
_UNANSWERED = (
    "client/registerCapability",
    "client/unregisterCapability",
    "window/workDoneProgress/create",
    "window/showMessageRequest",
    "workspace/diagnostic/refresh",
    "workspace/semanticTokens/refresh",
    "workspace/inlayHint/refresh",
    "workspace/codeLens/refresh",
)
"""Requests of servers that get the answer null."""
_IGNORED = ("window/logMessage", "window/showMessage", "$/progress", "telemetry/event", "$/logTrace")
_LANGUAGES = {
    ".py": "python", ".pyi": "python", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
    ".tsx": "typescriptreact", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascriptreact", ".rs": "rust", ".h": "c", ".cc": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".rb": "ruby",
    ".sh": "shellscript", ".bash": "shellscript", ".yml": "yaml", ".md": "markdown", ".kt": "kotlin",
    ".cs": "csharp", ".ex": "elixir", ".hs": "haskell", ".tf": "terraform", ".pl": "perl", ".m": "objective-c",
}  # fmt: skip
"""Identifiers of languages by suffix, where they are not the suffix itself."""


@dataclass(slots=True)
class _Document:
    """A file that the server has open."""

    uri: str
    text: str
    version: int = 1
    identity: tuple[int, ...] = ()
    """Identity of the file whose content was sent; empty if it is not known."""
    found: list[Problem] | None = None
    """Problems of this version; None before the server has reported them."""
    reported: asyncio.Event = field(default_factory=asyncio.Event)
    is_versioned: bool = False
    is_settled: bool = False
    """True if `found` is complete, as far as one can tell."""
    is_silent: bool = False
    """True if the server reports nothing about this file, such as one that its settings leave out."""
    checked: dict[str, list[Problem]] = field(default_factory=dict[str, list[Problem]])
    """Problems of the last texts, to compare the next ones with."""


class LanguageConnection:
    """A server that runs. Each question raises `ToolError` if it refuses, has ended, or does not answer in time."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, root: Path) -> None:
        self.name = name
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once nothing more comes from the server."""
        self._process = process
        self._root = root
        self._reason = ""
        self._errors: deque[str] = deque(maxlen=5)
        self._client = JsonRPCClient(converter_factory=get_converter)
        self._protocol = self._client.protocol
        # The library keeps requests of both sides in one table, and servers count from 0 or 1.
        self._number = _FIRST_NUMBER
        self._capabilities: JsonObject = {}
        self._documents: dict[Path, _Document] = {}
        self._locks: dict[Path, asyncio.Lock] = {}
        self._silent_files = 0
        assert process.stdin is not None
        self._protocol.set_writer(process.stdin)
        answers: dict[str, Callable[[object], object]] = dict.fromkeys((*_UNANSWERED, *_IGNORED), _nothing)
        answers |= {
            "textDocument/publishDiagnostics": self._take_report,
            "workspace/configuration": _no_settings,
            "workspace/workspaceFolders": lambda _: [self._folder],
            "workspace/applyEdit": lambda _: {"applied": False},
        }
        for method, answer in answers.items():
            self._protocol.fm.add_builtin_feature(method, answer)  # pyright: ignore[reportUnknownMemberType]

    @property
    def end_text(self) -> str:
        """Reason why it does not run any more, in words."""
        code = self._process.returncode
        if self._reason or code is None:
            return self._reason or "it closed its output"
        end = f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it exited with code {code}"
        return f"{end}: {self._errors[-1]}" if self._errors else end

    def offers(self, capability: str) -> bool:
        """Return True if the server named a capability such as `hoverProvider`."""
        offer = self._capabilities.get(capability)
        return bool(offer) or is_object(offer)

    # --- documents ----------------------------------------------------------------------------------------------------

    async def changed_problems(self, path: Path, before: str | None, after: str) -> tuple[list[Problem], list[Problem]]:
        """Return the problems of a file before and after a change.

        Args:
            before: the text before; None or empty: no problem before.
            after: the text after.
        """
        await self.refresh(but=path)
        async with self._locks.setdefault(path, asyncio.Lock()):
            old = await self._problems(path, before) if before else []
            if (document := self._documents.get(path)) is not None:
                # Other files may have changed meanwhile.
                document.checked.pop(after, None)
            new = await self._problems(path, after)
            self.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
            return old, new

    async def refresh(self, but: Path | None = None) -> None:
        """Send the changes that other programs made to open files, and close those that cannot be read any more.

        Args:
            but: a file to leave out.
        """
        open_files = {path: one.identity for path, one in self._documents.items() if path != but}
        for path, (text, identity) in (await asyncio.to_thread(_changed_files, open_files)).items():
            async with self._locks.setdefault(path, asyncio.Lock()):
                if text is None:
                    self._close(path)
                elif path in self._documents:
                    self._send(path, text, identity)

    async def open(self, path: Path) -> None:
        """Send a file to the server as it is now, and keep it open there.

        Raises:
            ToolError: it cannot be read.
        """
        await self.refresh(but=path)
        async with self._locks.setdefault(path, asyncio.Lock()):
            text, identity = await asyncio.to_thread(read_text, path)
            if text is None:
                raise ToolError(f"{path} cannot be read as a text of at most {LARGEST_FILE >> 20} MiB")
            self._send(path, text, identity)

    def _send(self, path: Path, text: str, identity: tuple[int, ...] = ()) -> _Document:
        """Let the server know the text of a file."""
        # Put back below as the newest: the oldest are closed when too many are open.
        document = self._documents.pop(path, None)
        if document is None:
            document = _Document(path.as_uri(), text)
            suffix = path.suffix.lower()
            item = {
                "uri": document.uri,
                "languageId": _LANGUAGES.get(suffix, suffix.removeprefix(".") or path.name.lower()),
                "version": document.version,
                "text": text,
            }
            self.notify("textDocument/didOpen", {"textDocument": item})
        elif text != document.text:
            document.text, document.found, document.is_settled = text, None, False
            document.version += 1
            document.reported.clear()
            changed = {"uri": document.uri, "version": document.version}
            self.notify("textDocument/didChange", {"textDocument": changed, "contentChanges": [{"text": text}]})
        document.identity = identity
        self._documents[path] = document
        for old in list(self._documents)[:-_MOST_OPEN]:
            # One that is checked just now stays open.
            if not self._locks[old].locked():
                self._close(old)
        return document

    def _close(self, path: Path) -> None:
        if (document := self._documents.pop(path, None)) is not None:
            self.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})

    # --- problems -----------------------------------------------------------------------------------------------------

    async def _problems(self, path: Path, text: str) -> list[Problem]:
        if (document := self._documents.get(path)) is not None and text in document.checked:
            return document.checked[text]
        document = self._send(path, text)
        # An answer is about the text that was sent; a report may be about an older one.
        if self.offers("diagnosticProvider"):
            document.found = await self._pulled(document.uri)
        elif not (document.is_settled or document.is_silent):
            await self._wait_for_report(document)
        found = document.checked[text] = document.found or []
        for old in list(document.checked)[:-_MOST_CHECKED]:
            del document.checked[old]
        return found

    async def _pulled(self, uri: str) -> list[Problem]:
        """Ask for the problems of a file; again if the server was busy with something else."""
        for attempt in range(_RETRIES):
            try:
                answer = await self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}}, CHECK_SECONDS)
                return parse_problems(answer.get("items") if is_object(answer) else None, self.name)
            except ToolError:
                if attempt == _RETRIES - 1 or self.ended.done():
                    raise
                await asyncio.sleep(_QUIET_SECONDS)
        return []

    async def _wait_for_report(self, document: _Document) -> None:
        deadline = time.monotonic() + CHECK_SECONDS
        if self.ended.done():
            raise ToolError(self.end_text)
        quiet = False
        while not quiet:
            limit = deadline - time.monotonic() if document.found is None else _QUIET_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(max(limit, 0)):
                    await document.reported.wait()
            if self.ended.done():
                raise ToolError(self.end_text)
            # Of a file that was just opened, some servers first report that nothing is known.
            is_final = document.is_versioned and document.version > 1
            quiet = is_final or not document.reported.is_set()
            document.reported.clear()
        document.is_settled, document.is_silent = document.found is not None, document.found is None
        self._silent_files = self._silent_files + 1 if document.is_silent else 0
        if self._silent_files == _MOST_SILENT:
            self.fail(f"it did not check {_MOST_SILENT} files within {CHECK_SECONDS:g} s each")

    def _take_report(self, params: object) -> None:
        if not is_object(params):
            return
        path, version = path_of(params.get("uri")), params.get("version")
        document = None if path is None else self._documents.get(path)
        if document is None or (isinstance(version, int) and version < document.version):
            return
        document.is_versioned = isinstance(version, int)
        document.found, document.is_silent = parse_problems(params.get("diagnostics"), self.name), False
        document.reported.set()

    # --- messages -----------------------------------------------------------------------------------------------------

    @property
    def _folder(self) -> JsonObject:
        return {"uri": self._root.as_uri(), "name": self._root.name or "/"}

    async def initialize(self) -> None:
        """Agree with the server on what both sides can do, within `START_SECONDS`."""
        text_document: JsonObject = {
            "synchronization": {"didSave": True},
            "publishDiagnostics": {"versionSupport": True},
            "diagnostic": {"dynamicRegistration": False},
            "definition": {"linkSupport": False},
            "references": {},
            "hover": {"contentFormat": ["plaintext", "markdown"]},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        }
        # Servers that may register watchers do not watch files themselves.
        workspace: JsonObject = {
            "configuration": True,
            "workspaceFolders": True,
            "symbol": {},
            "didChangeWatchedFiles": {"dynamicRegistration": True},
        }
        params: JsonObject = {
            # Behind walls, the id of this process means another one, and a server ends when it does not find it.
            "processId": None,
            "clientInfo": {"name": "tui-agent"},
            "rootUri": self._root.as_uri(),
            "workspaceFolders": [self._folder],
            "capabilities": {"textDocument": text_document, "workspace": workspace},
        }
        answer = await self.request("initialize", params, START_SECONDS)
        capabilities = answer.get("capabilities") if is_object(answer) else None
        self._capabilities = capabilities if is_object(capabilities) else {}
        self.notify("initialized", {})

    async def request(self, method: str, params: JsonObject | None, seconds: float = REQUEST_SECONDS) -> object:
        """Send a request and return the result of the answer; one that is not awaited any more is cancelled.

        Raises:
            ToolError: the server refuses, has ended, or does not answer in time.
        """
        if self.ended.done():
            raise ToolError(self.end_text)
        self._number = number = self._number + 1
        answer = self._protocol.send_request_async(method, params, msg_id=number)
        try:
            await asyncio.wait((answer, self.ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
        except JsonRpcException as error:
            raise ToolError(f"it refused {method}: {' '.join(str(error).split())[:200]}") from error
        finally:
            if not answer.done():
                answer.cancel()
                # The server need not finish what no one waits for.
                self.notify("$/cancelRequest", {"id": number})
        raise ToolError(self.end_text if self.ended.done() else f"it did not answer {method} within {seconds:g} s")

    def notify(self, method: str, params: JsonObject | None) -> None:
        """Send a notification; it is lost if the server has ended."""
        with suppress(OSError):
            self._protocol.notify(method, params)

    def fail(self, reason: str) -> None:
        """End the connection: waiting questions fail. `finish` ends the process.

        Args:
            reason: why, for `end_text`; an earlier reason stays, and empty means that of the process.
        """
        self._reason = self._reason or reason
        if not self.ended.done():
            self.ended.set_result(None)
        for document in self._documents.values():
            document.reported.set()

    async def read_messages(self) -> None:
        """Read what the server sends until its end."""
        assert self._process.stdout is not None
        try:
            await run_async(Event(), _BoundedReader(self._process.stdout), self._protocol)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            self._reason = self._reason or f"it broke the protocol: {error}"
        await has_exited(self._process, _EXIT_SECONDS)  # The exit code is known a moment after the end of the output.
        self.fail("")

    async def read_errors(self) -> None:
        """Keep the last lines that the server writes to its standard error."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_LONGEST_HEADER):
            self._errors.extend(line for line in chunk.decode("utf-8", "replace").splitlines() if line.strip())

    async def finish(self) -> None:
        """Ask the server to end, and kill its processes after at most a few seconds."""
        if not self.ended.done():
            with suppress(ToolError):
                await self.request("shutdown", None, _EXIT_SECONDS)
            self.notify("exit", None)
        assert self._process.stdin is not None
        self._process.stdin.close()
        await has_exited(self._process, _EXIT_SECONDS)
        # What it started does not know of `exit`.
        signal_group(self._process.pid, signal.SIGKILL)


@asynccontextmanager
async def opened_connection(name: str, program: LaunchedProgram, directory: Path) -> AsyncGenerator[LanguageConnection]:
    """Start a server and yield the connection; end it with everything it started when the context closes.

    Raises:
        ToolError: it cannot be started, or does not answer.
    """
    process: asyncio.subprocess.Process | None = None
    try:
        process = await asyncio.create_subprocess_exec(
            *program.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LONGEST_HEADER,
            cwd=directory,
            env=program.environment,
            pass_fds=program.descriptors,
            start_new_session=True,
        )
        program.started(process.pid)
        connection = LanguageConnection(name, process, directory)
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(work()) for work in (connection.read_messages, connection.read_errors)]
            try:
                await connection.initialize()
                yield connection
            finally:
                await connection.finish()
                for reader in readers:
                    reader.cancel()
    except (OSError, ValueError) as error:
        raise ToolError(f"it cannot be started: {error}") from error
    finally:
        await asyncio.to_thread(program.end, None if process is None else process.pid)
        if process is not None:
            close_pipes(process)


LARGEST_FILE = 1024 * 1024


def read_text(path: Path) -> tuple[str | None, tuple[int, ...]]:
    """Return the text of a file and its identity: inode, size and modification time. Blocks.

    None and an empty identity if it cannot be read as UTF-8 text of at most `LARGEST_FILE` bytes.
    """
    try:
        status = os.stat(path)
        text = read_regular_file(str(path), LARGEST_FILE).decode("utf-8")
    except (OSError, ValueError):
        return None, ()
    return text, (status.st_ino, status.st_size, status.st_mtime_ns)


def _changed_files(known: Mapping[Path, tuple[int, ...]]) -> dict[Path, tuple[str | None, tuple[int, ...]]]:
    """Return the texts of the files that are not as they were. Blocks."""
    changed: dict[Path, tuple[str | None, tuple[int, ...]]] = {}
    for path, identity in known.items():
        try:
            status = os.stat(path)
        except OSError:
            changed[path] = None, ()
            continue
        if (status.st_ino, status.st_size, status.st_mtime_ns) != identity:
            changed[path] = read_text(path)
    return changed


class _BoundedReader:
    """Reader of a server's output that refuses messages beyond a size."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        """Return the next line of a header."""
        return await self._stream.readline()

    async def readexactly(self, n: int) -> bytes:
        """Return the next message."""
        if n > _LONGEST_MESSAGE:
            raise ValueError(f"a message of {n:,} bytes")
        return await self._stream.readexactly(n)


def _nothing(params: object) -> None:
    """Answer null."""


def _no_settings(params: object) -> list[None]:
    """Answer that nothing is set, for each part of the settings that a server asks for."""
    items = params.get("items") if is_object(params) else None
    return [None] * (len(items) if is_array(items) else 0)
