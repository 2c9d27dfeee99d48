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

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

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
from .hook_process import HookProcess, TreeMarker
from .json_coercion import plain

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
