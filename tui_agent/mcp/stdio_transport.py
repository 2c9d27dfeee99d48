"""Transport over the standard streams of a child process.

The SDK's own transport keeps a line of any length in memory and reads as fast as the server writes. This one bounds
both, and it reports when the process ends. Messages that are not quite JSON-RPC are repaired: a call would wait in vain
for an answer that is thrown away.
"""

import asyncio
import errno
import json
import os
import shutil
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.pipes import close_pipes, has_exited, signal_group
from tui_agent.protocol.server_entries import ToolServer

from .server_parts import ProcessTree, ServerLog

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


LONGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes of the longest message that a server may send; a longer one ends the connection."""
_CHUNK = 64 * 1024
_BURST = 100
_PAUSE = 0.01
"""After each `_BURST` messages the transport pauses this many seconds, so that a flood cannot delay the screen."""
_EXIT_SECONDS = 1.0
"""Seconds that a process gets to end after its input was closed, and again after SIGTERM."""


class ServerProcess:
    """The process of a server."""

    def __init__(self, process: asyncio.subprocess.Process, tree: ProcessTree | None = None) -> None:
        self.process = process
        self.tree = tree
        """Everything that it starts; None: only its process group is known."""
        self.ended = asyncio.Event()
        """Set once nothing more comes from the server."""
        self.reason = ""
        """Reason of the end, if the server broke the protocol."""

    @property
    def end_text(self) -> str:
        """Return how the process ended, in words."""
        if self.reason:
            return self.reason
        code = self.process.returncode
        if code is None:
            return "it closed its output"
        return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it exited with code {code}"


async def start_process(
    server: ToolServer,
    shown: str,
    environment: Mapping[str, str],
    root: Path,
    log: ServerLog,
    tree: ProcessTree | None = None,
) -> ServerProcess:
    """Start the program of a server, expanded, in a session and process group of its own.

    `shown` is its command line without the values of variables, which may be secrets; `tree` marks its processes.

    Raises:
        ToolError: the program cannot be started.
    """
    directory = root / Path(server.cwd or ".").expanduser()
    program = os.path.expanduser(server.command or "")
    argv, variables = (program, *server.args), {**environment, **server.env}
    process: asyncio.subprocess.Process | None = None
    try:
        if tree is not None:
            _expect_program(argv[0], directory, variables)
            argv, variables = await asyncio.to_thread(tree.prepare, argv, variables)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=directory,
            env=variables,
            # Ctrl+C in the terminal must not reach it, and its group can be ended as a whole.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if program.lower().removesuffix(".exe") in ("cmd", "powershell") and os.name == "posix":
            reason = "it is in the form for Windows; write the program itself, such as npx, as the command"
        elif not os.path.isdir(directory):
            reason = "its `cwd` is not a directory"
        elif isinstance(error, FileNotFoundError) and " " in program:
            reason = "there is no such program; write its arguments as `args`"
        raise ToolError(f"{shown} cannot be started: {reason}") from error
    finally:
        if tree is not None and process is None:
            tree.end(None)
    assert process is not None
    if tree is not None:
        tree.started(process.pid)
    log.add(f"started: {shown} (process {process.pid})")
    return ServerProcess(process, tree)


def _expect_program(command: str, directory: Path, environment: Mapping[str, str]) -> None:
    """Check that a program exists, because the one that marks it would only report a code."""
    if "\0" in command:
        raise ValueError("embedded null byte")
    found = directory / command if os.sep in command else shutil.which(command, path=environment.get("PATH"))
    if found is None or not Path(found).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not os.access(found, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@asynccontextmanager
async def stdio_streams(started: ServerProcess, log: ServerLog) -> AsyncGenerator["TransportStreams"]:
    """Yield the streams of the SDK's session; in the end stop the process and everything in its group."""
    process = started.process
    # Without a buffer, the server writes no faster than its messages are handled.
    from_server, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def read_messages() -> None:
        async with from_server:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                count = 0
                async for line in _lines(process.stdout, started):
                    if (message := _parsed(line, log)) is not None:
                        await from_server.send(message)
                    count += 1
                    await asyncio.sleep(0 if count % _BURST else _PAUSE)
            await has_exited(process, _EXIT_SECONDS)  # The exit code is known a moment after the end of the output.
            started.ended.set()

    async def write_messages() -> None:
        assert process.stdin is not None
        async with outgoing:
            with suppress(OSError):
                async for item in outgoing:
                    data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(data.encode("utf-8", "replace") + b"\n")
                    await process.stdin.drain()

    async def read_errors() -> None:
        async for line in _lines(process.stderr, None):
            log.add(line.decode("utf-8", "replace"))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(work()) for work in (read_messages, write_messages, read_errors)]
        try:
            yield messages, to_server
        finally:
            await _finish(process)
            if started.tree is not None:
                for name in await asyncio.to_thread(started.tree.end, process.pid):
                    log.add(f"ended what it left running: {name}")
            for task in running:
                task.cancel()
            messages.close()
            to_server.close()


async def _lines(stream: asyncio.StreamReader | None, started: ServerProcess | None) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream; a line that is too long ends the process, or is skipped if there is none."""
    assert stream is not None
    parts: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole, parts, size = b"".join((*parts, line)), [], 0
            yield whole
        parts.append(rest)
        size += len(rest)
        if size > LONGEST_MESSAGE:
            if started is not None:
                started.reason = f"it sent a message of more than {LONGEST_MESSAGE // 1024**2} MiB"
                return
            parts, size = [], 0
    if size:
        yield b"".join(parts)


def _parsed(line: bytes, log: ServerLog) -> SessionMessage | None:
    """Return the message of a line; None, and a note in the log, if it is none."""
    if not line.strip():
        return None
    message = message_of(line)
    if message is None:
        log.add(f"not a message, on its standard output: {line[:200].decode('utf-8', 'replace')}")
        return None
    return SessionMessage(message)


async def _finish(process: asyncio.subprocess.Process) -> None:
    """End the process: close its input, then SIGTERM, then SIGKILL, also for what it started in its group."""
    if process.stdin is not None:
        process.stdin.close()
    for ending in (None, signal.SIGTERM, signal.SIGKILL):
        if ending is not None:
            signal_group(process.pid, ending)
        if await has_exited(process, _EXIT_SECONDS):
            break
    signal_group(process.pid, signal.SIGKILL)
    close_pipes(process)


def message_of(line: bytes) -> types.JSONRPCMessage | None:
    """Return the message of a line, repaired if need be; None if the line is none.

    Repaired are texts that are not UTF-8, half characters, bare control characters, a missing version, and errors and
    results of another type.
    """
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        value: object = json.loads(line.decode("utf-8-sig", "replace"), strict=False)
        # Half a character can be written in JSON, but not sent on.
        whole: object = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if not is_object(whole) or whole.keys().isdisjoint(("id", "method")):
            return None
        return types.jsonrpc_message_adapter.validate_python(_plain(whole), by_name=False)
    except (ValueError, RecursionError):
        return None


def _plain(message: JsonObject) -> JsonObject:
    plain: JsonObject = {**message, "jsonrpc": "2.0"}
    if isinstance(key := plain.get("id"), float) and key.is_integer():
        plain["id"] = int(key)
    if "method" in plain:
        if not is_object(plain.get("params")):
            plain.pop("params", None)
    elif (error := plain.get("error")) is not None:
        plain.pop("result", None)
        plain["error"] = _plain_error(error)
    elif not is_object(result := plain.get("result")):
        plain["result"] = {} if result is None else {"content": result}
    return plain


def _plain_error(error: object) -> JsonObject:
    fields = error if is_object(error) else {"message": error}
    code, words = fields.get("code"), fields.get("message")
    text = words if isinstance(words, str) else json.dumps(error, ensure_ascii=False)
    return {"data": fields.get("data"), "code": code if type(code) is int else types.INTERNAL_ERROR, "message": text}
