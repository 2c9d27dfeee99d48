"""Hooks that are shell commands: they read the question on stdin and answer by exit code and stdout.

| exit code | meaning |
|---|---|
| 0 | the call continues, unless a JSON object on stdout says otherwise |
| 2 | the call is denied; stderr is the reason |
| other; no answer in time; unreadable answer | the hook failed: reported; the call is denied unless it may fail open |

Only the beginning of the output is kept, so that the exit code counts however much a command prints. After a call, a
failed hook changes nothing, unless it is strict.

The question is one JSON object: `event`, `call_id`, `tool` and `input`; after the call also `result`, with `content`,
`is_error` and `details`, and for an observer the `status` of the call. The answer is an object, too: `action` (`allow`,
`deny`, `skip`, `modify` or `override`) with `reason`, `input` or `result`.
"""

import asyncio
import json
import os
import signal
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Literal, TypeAlias

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.hooks import (
    AfterTool,
    ApproveCall,
    BeforeTool,
    BeforeToolAnswer,
    Continue,
    DenyCall,
    ModifyArguments,
    OverrideResult,
    SkipCall,
)
from tui_agent.protocol.messages import JsonObject, is_object, joined_text
from tui_agent.protocol.pipes import signal_group
from tui_agent.protocol.programs import open_script, script_argv
from tui_agent.protocol.tool import ToolResult
from tui_agent.protocol.tool_result import as_tool_result
from tui_agent.protocol.value_checks import expect_kind

from .hook_bus import EndedCall, HookBus
from .json_coercion import plain

MAX_OUTPUT_BYTES = 1024 * 1024
"""Most bytes that are kept of each stream of a command; it may print more."""
_CHUNK = 64 * 1024

TreeMarker: TypeAlias = Callable[[Mapping[str, str]], tuple[Mapping[str, str], Callable[[int], object]]]
"""Returns an environment that marks a process with everything it starts, and a function that ends all of it, given the
id of the process. The function blocks."""


@dataclass(frozen=True, slots=True)
class HookOutput:
    """The end of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class HookProcess:
    """A program in a process group of its own."""

    command: str | tuple[str, ...]
    """Text for `bash --noprofile --norc`, or a program and its arguments."""
    working_dir: Path
    environment: Mapping[str, str]
    """Its whole environment; the caller leaves out secrets."""
    mark_tree: TreeMarker | None = None
    """Finds processes that left the group of a command that is killed; None: these stay."""

    async def run(self, question: bytes) -> HookOutput:
        """Run the command and return the beginning of its output; its process group is killed in any case.

        A command that never reads its question, or leaves a process behind that keeps its output open, blocks nothing.

        Raises:
            OSError: it cannot be started.
            CancelledError: the calling task was cancelled; the command and everything it started were killed.
        """
        environment, end_tree = self.environment, None
        if self.mark_tree is not None:
            environment, end_tree = self.mark_tree(environment)
        out, err = _Capture(), _Capture()
        try:
            with TemporaryFile() as stdin:
                await asyncio.to_thread(_write, stdin, question)
                process = self._start(environment, stdin, out.write_end, err.write_end)
            code = await _end_of(process, (out, err), end_tree)
            return HookOutput(code, out.text(), err.text())
        finally:
            out.close()
            err.close()

    def _start(self, environment: Mapping[str, str], stdin: IO[bytes], out: int, err: int) -> "Popen[bytes]":
        # Not asyncio's, which if cancelled during the start kills the process without its group.
        if not isinstance(self.command, str):
            return self._popen(self.command, environment, stdin, out, err)
        script = open_script(self.command)
        try:
            argv = (*script_argv("bash"), str(script))
            return self._popen(argv, environment, stdin, out, err, script)
        finally:
            os.close(script)

    def _popen(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: IO[bytes], out: int, err: int, *passed: int
    ) -> "Popen[bytes]":
        return Popen(
            argv,
            stdin=stdin,
            stdout=out,
            stderr=err,
            cwd=self.working_dir,
            env=dict(environment),
            start_new_session=True,
            pass_fds=passed,
        )


class _Capture:
    """A pipe whose beginning is kept."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._kept = bytearray()
        self._loop: AbstractEventLoop | None = None

    def start(self, loop: AbstractEventLoop) -> None:
        """Read what arrives, so that the command never waits for a reader."""
        self._close_write_end()

        def read() -> None:
            if not self._read():
                self._stop()

        self._loop = loop
        loop.add_reader(self._read_end, read)

    def text(self) -> str:
        """Return everything that was printed so far, also by processes that still have the pipe."""
        self._stop()
        # Bounded, because a process that still has the pipe may fill it forever.
        while len(self._kept) < MAX_OUTPUT_BYTES and self._read():
            pass
        return self._kept.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the pipe."""
        self._stop()
        self._close_write_end()
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1

    def _read(self) -> bool:
        """Read a chunk; False if there is none."""
        try:
            chunk = os.read(self._read_end, _CHUNK)
        except BlockingIOError:
            return False
        self._kept += chunk[: MAX_OUTPUT_BYTES - len(self._kept)]
        return bool(chunk)

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._read_end)
            self._loop = None

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


def _write(file: IO[bytes], question: bytes) -> None:
    file.write(question)
    file.seek(0)


async def _end_of(
    process: "Popen[bytes]", captures: tuple[_Capture, _Capture], end_tree: Callable[[int], object] | None
) -> int:
    """Return the exit code of a command once it is over; its process group is killed in any case."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def watch() -> None:
        process.wait()
        with suppress(RuntimeError):
            # The event loop may be closed by now.
            loop.call_soon_threadsafe(over.set)

    is_over = False
    try:
        for capture in captures:
            capture.start(loop)
        # A separate thread, because the work that the command waits for may need those of the pool.
        Thread(target=watch, name="hook", daemon=True).start()
        await over.wait()
        is_over = True
    finally:
        if not is_over and end_tree is not None:
            # Before its leader is gone: its children are then still found below it.
            Thread(target=_end, args=(end_tree, process.pid), name="hook end", daemon=True).start()
        else:
            signal_group(process.pid, signal.SIGKILL)
    return process.wait()


def _end(end_tree: Callable[[int], object], pid: int) -> None:
    try:
        end_tree(pid)
    finally:
        signal_group(pid, signal.SIGKILL)


ProcessHookEvent: TypeAlias = Literal["before_tool", "after_tool", "after_tool_observer"]

BLOCKED = 2
"""Exit code that denies a call."""


class UnusableAnswerError(Exception):
    """A command's answer cannot be used; the text says what it did."""


@dataclass(frozen=True, slots=True)
class ProcessHook:
    """Shell command that runs as a hook.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """

    command: str
    """Command for `bash --noprofile --norc -c`; it gets its own process group, which is killed when it ends."""
    working_dir: Path
    environment: Mapping[str, str]
    """Its whole environment; the caller leaves out secrets."""
    timeout: float | None = None
    """Seconds after which its process group is killed; None: the timeout of the bus."""
    strict: bool = False
    """True if a result is withheld when an `after_tool` command fails. It also `hides`: reports of running calls are
    not published."""
    mark_tree: TreeMarker | None = None
    """Finds processes that left the group of a command that is killed; None: these stay."""
    fail_open: bool = False
    """True if a call continues when a `before_tool` command fails."""

    def __post_init__(self) -> None:
        expect_kind("ProcessHook.command", self.command, str, "a shell command")
        expect_kind("ProcessHook.working_dir", self.working_dir, (str, Path), "a directory")
        expect_kind("ProcessHook.environment", self.environment, Mapping, "a mapping of names to texts")

    def add_to(self, hooks: HookBus, event: ProcessHookEvent) -> Callable[[], None]:
        """Add the command after the existing hooks; return a function that removes it again.

        Raises:
            ConfigurationError: a command cannot handle the event, or the timeout is not more than 0.
        """
        handlers: dict[str, Callable[..., Awaitable[object]]] = {
            "before_tool": self.before_tool,
            "after_tool": self.after_tool,
            "after_tool_observer": self.observe,
        }
        if event not in handlers:
            raise ConfigurationError(f"a command can be a hook for {', '.join(handlers)}, not for {event!r}")
        hides = self.strict and event == "after_tool"
        observes = event == "after_tool_observer"
        fail_open = self.fail_open if event == "before_tool" else not self.strict
        function, name, time = handlers[event], self.command, self.timeout
        return hooks.add(
            event, function, name=name, timeout=time, fail_open=fail_open, hides=hides, with_input=observes
        )

    async def before_tool(self, question: BeforeTool) -> BeforeToolAnswer:
        """Return its answer about a call that is about to be judged.

        Raises:
            UnusableAnswerError: its answer or its exit code cannot be used.
            OSError: the command cannot be started.
        """
        request = _question("before_tool", question.call.id, question.call.name, question.arguments)
        code, answer, reason = await self._answer(request)
        if code == BLOCKED:
            return DenyCall(reason)
        match answer.get("action"):
            case None:
                return Continue()
            case "allow":
                return ApproveCall(reason)
            case "deny":
                return DenyCall(reason)
            case "skip":
                return SkipCall(as_tool_result(answer["result"]) if "result" in answer else None)
            case "override" if "result" in answer:
                return OverrideResult(as_tool_result(answer["result"]))
            case "modify" if is_object(answer.get("input")):
                return ModifyArguments(answer["input"])
            case _:
                raise UnusableAnswerError(
                    f"it answered {json.dumps(answer)[:200]}, which is not an answer to before_tool"
                )

    async def after_tool(self, question: AfterTool) -> ToolResult | None:
        """Return its replacement for a result; None: the result stays.

        Raises:
            UnusableAnswerError: its answer or its exit code cannot be used.
            OSError: the command cannot be started.
        """
        result = question.result
        request = _question("after_tool", question.call.id, question.call.name, question.arguments)
        request["result"] = _result(result.text, result.is_error, result.details)
        code, answer, reason = await self._answer(request)
        if code == BLOCKED or answer.get("action") == "deny":
            return ToolResult.of_text(reason, is_error=True)
        return as_tool_result(answer["result"]) if "result" in answer else None

    async def observe(self, question: EndedCall) -> None:
        """Notify it that a call is over, and wait for its end; its answer has no effect.

        Raises:
            UnusableAnswerError: it failed.
            OSError: the command cannot be started.
        """
        ended = question.ended
        request = _question("after_tool_observer", ended.call_id, ended.name, question.arguments)
        request["status"] = ended.status
        request["result"] = _result(joined_text(ended.content), ended.is_error, ended.details)
        await self._answer(request)

    async def _answer(self, question: JsonObject) -> tuple[int, JsonObject, str]:
        """Return the exit code, which is 0 or 2, the JSON object on stdout, if any, and the reason."""
        process = HookProcess(self.command, self.working_dir, self.environment, self.mark_tree)
        ended = await process.run(json.dumps(plain(question)).encode())
        code, out, err = ended.code, ended.out, ended.err
        if code not in (0, BLOCKED):
            raise UnusableAnswerError(": ".join(filter(None, (f"exit code {code}", err.strip()))))
        answer: object = {}
        if code == 0 and out.lstrip().startswith("{"):
            try:
                answer = json.loads(out)
            except (ValueError, RecursionError) as error:
                raise UnusableAnswerError(f"its answer is not JSON: {error}") from error
        record = plain(answer) if is_object(answer) else {}
        reason = err.strip() if code == BLOCKED else str(record.get("reason", ""))
        return code, record, reason or f"Denied by hook {self.command}"


def _question(event: str, call_id: str, tool: str, arguments: JsonObject) -> JsonObject:
    return {"event": event, "call_id": call_id, "tool": tool, "input": arguments}


def _result(content: str, is_error: bool, details: JsonObject | None) -> JsonObject:
    return {"content": content, "is_error": is_error, "details": details}
