"""Hooks that are shell commands: they read the question on stdin and answer by exit code and stdout.

| exit code | meaning |
|---|---|
| 0 | the call continues, unless a JSON object on stdout says otherwise |
| 2 | the call is denied; stderr is the reason |
| other; no answer in time; unreadable answer | the hook failed: reported, and the call continues unless it is strict |

The question is one JSON object: `event`, `call_id`, `tool` and `input`; after the call also `result`, with `content`,
`is_error` and `details`, and for an observer the `status` of the call. The answer is an object, too: `action` (`allow`,
`deny`, `skip`, `modify` or `override`) with `reason`, `input` or `result`.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
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
from tui_agent.protocol.tool import ToolResult
from tui_agent.protocol.tool_result import as_tool_result
from tui_agent.protocol.value_checks import expect_kind

from .hook_bus import EndedCall, HookBus
from .json_coercion import plain

ProcessHookEvent: TypeAlias = Literal["before_tool", "after_tool", "after_tool_observer"]

MAX_OUTPUT_BYTES = 256 * 1024
"""Number of bytes of an answer that are read."""

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
    """True if a call does not continue when the command fails. As an `after_tool` hook it also `hides`: reports of
    running calls are not published."""

    def __post_init__(self) -> None:
        expect_kind("ProcessHook.command", self.command, str, "a shell command")
        expect_kind("ProcessHook.working_dir", self.working_dir, (str, Path), "a directory")
        expect_kind("ProcessHook.environment", self.environment, Mapping, "a mapping of names to texts")

    def add_to(self, hooks: HookBus, event: ProcessHookEvent) -> Callable[[], None]:
        """Add the command after the existing hooks.

        Returns:
            A function that removes it again.

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
        function, name, time = handlers[event], self.command, self.timeout
        return hooks.add(
            event, function, name=name, timeout=time, fail_open=not self.strict, hides=hides, with_input=observes
        )

    async def before_tool(self, question: BeforeTool) -> BeforeToolAnswer:
        """Return its answer about a call that is about to be judged.

        Raises:
            UnusableAnswerError: its answer cannot be used.
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
            UnusableAnswerError: its answer cannot be used.
        """
        result = question.result
        request = _question("after_tool", question.call.id, question.call.name, question.arguments)
        request["result"] = _result(result.text, result.is_error, result.details)
        code, answer, reason = await self._answer(request)
        if code == BLOCKED or answer.get("action") == "deny":
            return ToolResult.of_text(reason, is_error=True)
        return as_tool_result(answer["result"]) if "result" in answer else None

    async def observe(self, question: EndedCall) -> None:
        """Notify it that a call is over.

        Raises:
            UnusableAnswerError: it failed.
        """
        ended = question.ended
        request = _question("after_tool_observer", ended.call_id, ended.name, question.arguments)
        request["status"] = ended.status
        request["result"] = _result(joined_text(ended.content), ended.is_error, ended.details)
        await self._answer(request)

    async def _answer(self, question: JsonObject) -> tuple[int, JsonObject, str]:
        """Return the exit code, which is 0 or 2, the JSON object on stdout, if any, and the reason."""
        code, out, err = await self._run(json.dumps(plain(question)).encode())
        if code not in (0, BLOCKED):
            raise UnusableAnswerError(": ".join(filter(None, (f"exit code {code}", err.strip()))))
        answer: object = {}
        if code == 0 and out.lstrip().startswith("{"):
            try:
                answer = json.loads(out)
            except (ValueError, RecursionError) as error:
                raise UnusableAnswerError(f"its answer is not JSON: {error}") from error
        record = answer if is_object(answer) else {}
        reason = err.strip() if code == BLOCKED else str(record.get("reason", ""))
        return code, record, reason or f"Denied by hook {self.command}"

    async def _run(self, question: bytes) -> tuple[int, str, str]:
        # Files instead of pipes: a command that never reads its question, or leaves a process behind that keeps its
        # output open, then blocks nothing.
        with TemporaryFile() as stdin, TemporaryFile() as out, TemporaryFile() as err:
            await asyncio.to_thread(_write, stdin, question)
            code = await _end_of(self._start(stdin, out, err))
            return code, *await asyncio.to_thread(_read, out, err)

    def _start(self, stdin: IO[bytes], out: IO[bytes], err: IO[bytes]) -> "Popen[bytes]":
        # Not asyncio's, which if cancelled during the start kills the process without its group.
        return Popen(
            ("bash", "--noprofile", "--norc", "-c", self.command),
            stdin=stdin,
            stdout=out,
            stderr=err,
            cwd=self.working_dir,
            env=dict(self.environment),
            start_new_session=True,
        )


def _question(event: str, call_id: str, tool: str, arguments: JsonObject) -> JsonObject:
    return {"event": event, "call_id": call_id, "tool": tool, "input": arguments}


def _result(content: str, is_error: bool, details: JsonObject | None) -> JsonObject:
    return {"content": content, "is_error": is_error, "details": details}


def _write(file: IO[bytes], question: bytes) -> None:
    file.write(question)
    file.seek(0)


def _read(out: IO[bytes], err: IO[bytes]) -> tuple[str, str]:
    texts: list[str] = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace"))
    return texts[0], texts[1]


async def _end_of(process: "Popen[bytes]") -> int:
    """Return the exit code of a command once it is over; its process group is killed in any case."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def watch() -> None:
        process.wait()
        with suppress(RuntimeError):
            # The event loop may be closed by now.
            loop.call_soon_threadsafe(over.set)

    try:
        # A separate thread, because the work that the command waits for may need those of the pool.
        Thread(target=watch, name="hook", daemon=True).start()
        await over.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
