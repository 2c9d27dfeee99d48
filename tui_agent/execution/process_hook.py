"""Hooks that are commands: they get the question on stdin and answer by exit code and stdout (C47).

| exit code | what it means |
|---|---|
| 0 | the call goes on; a JSON object on stdout may say otherwise |
| 2 | no: what the command wrote on stderr is the reason |
| other, no answer in time, an unreadable one | the hook failed: told, and the call goes on unless it is strict |

The question is one JSON object: `event`, `call_id`, `tool`, `input`, and once the call ran its `result` as well, which
has `content`, `is_error` and `details`. For an observer it also has the `status` the call ended with. The answer is an
object, too: `action` (`allow`, `deny`, `skip`, `modify` or `override`), and with it `reason`, `input` or `result`.
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
"""Bytes of an answer that are read."""

BLOCKED = 2
"""The exit code that says no."""


class UnusableAnswerError(Exception):
    """A command did not answer as agreed; says what it did instead."""


@dataclass(frozen=True, slots=True)
class ProcessHook:
    """A command that is asked.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """

    command: str
    """Run by `bash --noprofile --norc -c`, in a process group of its own; what it leaves running there is killed."""
    working_dir: Path
    environment: Mapping[str, str]
    """All it gets; the caller leaves out what no child may know."""
    timeout: float | None = None
    """Seconds, then it is killed with everything in its group; None: the bus's own time (P44)."""
    strict: bool = False
    """Whether a call does not go on if the command fails. Asked `after_tool`, it also `hides`: what calls report while
    they run is not told."""

    def __post_init__(self) -> None:
        expect_kind("ProcessHook.command", self.command, str, "a shell command")
        expect_kind("ProcessHook.working_dir", self.working_dir, (str, Path), "a directory")
        expect_kind("ProcessHook.environment", self.environment, Mapping, "a mapping of names to texts")

    def add_to(self, hooks: HookBus, event: ProcessHookEvent) -> Callable[[], None]:
        """Puts it behind the hooks there are.

        Returns:
            A function that removes it again.

        Raises:
            ConfigurationError: a command cannot be asked that, or the time is not more than 0.
        """
        asks: dict[str, Callable[..., Awaitable[object]]] = {
            "before_tool": self.before_tool,
            "after_tool": self.after_tool,
            "after_tool_observer": self.observe,
        }
        if event not in asks:
            raise ConfigurationError(f"a command can be asked {', '.join(asks)}, not {event!r}")
        hides = self.strict and event == "after_tool"
        observes = event == "after_tool_observer"
        function, name, time = asks[event], self.command, self.timeout
        return hooks.add(
            event, function, name=name, timeout=time, fail_open=not self.strict, hides=hides, with_input=observes
        )

    async def before_tool(self, question: BeforeTool) -> BeforeToolAnswer:
        """Its answer about a call that is to run.

        Raises:
            UnusableAnswerError: it gave none.
        """
        asked = _question("before_tool", question.call.id, question.call.name, question.arguments)
        code, answer, reason = await self._answer(asked)
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
                raise UnusableAnswerError(f"it answered {json.dumps(answer)[:200]}, which is no answer to before_tool")

    async def after_tool(self, question: AfterTool) -> ToolResult | None:
        """What it makes of a result; None: nothing.

        Raises:
            UnusableAnswerError: it gave no answer.
        """
        result = question.result
        asked = _question("after_tool", question.call.id, question.call.name, question.arguments)
        asked["result"] = _result(result.text, result.is_error, result.details)
        code, answer, reason = await self._answer(asked)
        if code == BLOCKED or answer.get("action") == "deny":
            return ToolResult.of_text(reason, is_error=True)
        return as_tool_result(answer["result"]) if "result" in answer else None

    async def observe(self, question: EndedCall) -> None:
        """Lets it know that a call is over.

        Raises:
            UnusableAnswerError: it failed.
        """
        ended = question.ended
        asked = _question("after_tool_observer", ended.call_id, ended.name, question.arguments)
        asked["status"] = ended.status
        asked["result"] = _result(joined_text(ended.content), ended.is_error, ended.details)
        await self._answer(asked)

    async def _answer(self, question: JsonObject) -> tuple[int, JsonObject, str]:
        """Exit code 0 or 2, the JSON object on stdout, if any, and the reason."""
        code, out, err = await self._run(json.dumps(plain(question)).encode())
        if code not in (0, BLOCKED):
            raise UnusableAnswerError(": ".join(filter(None, (f"exit code {code}", err.strip()))))
        answer: object = {}
        if code == 0 and out.lstrip().startswith("{"):
            try:
                answer = json.loads(out)
            except (ValueError, RecursionError) as error:
                raise UnusableAnswerError(f"its answer is no JSON: {error}") from error
        record = answer if is_object(answer) else {}
        reason = err.strip() if code == BLOCKED else str(record.get("reason", ""))
        return code, record, reason or f"Denied by hook {self.command}"

    async def _run(self, question: bytes) -> tuple[int, str, str]:
        # Files instead of pipes: a command that never reads its question, or leaves somebody behind who holds its
        # output open, delays nothing and breaks nothing (P37, P44).
        with TemporaryFile() as asked, TemporaryFile() as out, TemporaryFile() as err:
            await asyncio.to_thread(_write, asked, question)
            code = await _end_of(self._start(asked, out, err))
            return code, *await asyncio.to_thread(_read, out, err)

    def _start(self, asked: IO[bytes], out: IO[bytes], err: IO[bytes]) -> "Popen[bytes]":
        # Not asyncio's: cancelled while it starts a process, that kills it without its group.
        return Popen(
            ("bash", "--noprofile", "--norc", "-c", self.command),
            stdin=asked,
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
    """The exit code of a command, once it is over; however this ends, nothing of its group runs any more."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def watch() -> None:
        process.wait()
        with suppress(RuntimeError):
            # The loop may be closed by now.
            loop.call_soon_threadsafe(over.set)

    try:
        # A thread of its own: the shared ones may be needed by what the command is waited for.
        Thread(target=watch, name="hook", daemon=True).start()
        await over.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
