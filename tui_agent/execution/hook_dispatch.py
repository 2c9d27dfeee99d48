"""Dispatch of a call's hooks: run them, combine their answers, and publish `hook.*` events about each.

An answer takes effect independently of the events about it.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import HookEnded, HookFailed, HookStarted, ToolEnded
from tui_agent.protocol.hooks import (
    AfterTool,
    ApproveCall,
    BeforeTool,
    BeforeToolAnswer,
    BeforeUpdate,
    Continue,
    DenyCall,
    FailureAnswer,
    ModifyArguments,
    OverrideResult,
    RequireApproval,
    SkipCall,
    ToolFailed,
)
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Tool, ToolResult
from tui_agent.protocol.tool_result import as_tool_result

from .contained_calls import Crash, copy_of, kind_of
from .hook_bus import EndedCall, Hook, HookBus, HookEvent

Action: TypeAlias = Literal["allow", "deny", "skip", "modify", "override"]


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """Combined answer of a call's `before_tool` hooks."""

    answer: Continue | ApproveCall | RequireApproval | DenyCall | SkipCall | OverrideResult
    arguments: JsonObject
    """Arguments after every rewriting."""
    rewritten: bool = False
    failed: bool = False
    """True if the call is denied because a hook failed, not because it answered so."""
    may_approve: bool = False
    """True if the approval is one of a hook that may approve calls."""


async def ask_before_tool(
    hooks: HookBus, call: ToolCall, tool: Tool | None, arguments: JsonObject, publisher: Publisher
) -> HookVerdict:
    """Ask every hook in order, each with the arguments that the one before it returned; stop at the first refusal."""
    verdict: Continue | ApproveCall | RequireApproval = Continue()
    rewritten, may_approve = False, False
    for hook in hooks.hooks("before_tool"):
        # Copies, because a hook may change what it gets, and the published call shares its arguments.
        own = call.model_copy(update={"arguments": copy_of(call.arguments)})
        question = BeforeTool(own, tool, copy_of(arguments))
        if not hook.is_about(question):
            continue
        answer = await _ask(hook, "before_tool", question, call.id, publisher)
        if isinstance(answer, Crash):
            if hook.fail_open:
                continue
            return HookVerdict(DenyCall(_failure_text(hook, answer)), arguments, rewritten, failed=True)
        if isinstance(answer, ModifyArguments):
            arguments, rewritten = answer.arguments, True
            if isinstance(verdict, ApproveCall):
                # It was about other arguments.
                verdict, may_approve = Continue(), False
            answer = answer.verdict
        match answer:
            case ApproveCall() if not isinstance(verdict, RequireApproval):
                verdict, may_approve = answer, may_approve or hook.may_approve
            case RequireApproval():
                verdict = answer
            case DenyCall() | SkipCall() | OverrideResult():
                return HookVerdict(answer, arguments, rewritten)
            case _:
                pass
    return HookVerdict(verdict, arguments, rewritten, may_approve=may_approve)


async def ask_after_tool(
    hooks: HookBus, call: ToolCall, arguments: JsonObject, result: ToolResult, publisher: Publisher
) -> ToolResult | str:
    """Return the result after every `after_tool` hook, or as text why one failed: it may have been there to hide
    something, so the result must not be shown."""
    for hook in hooks.hooks("after_tool"):
        question = AfterTool(call, arguments, result)
        if not hook.is_about(question):
            continue
        answer = await _ask(hook, "after_tool", question, call.id, publisher)
        if isinstance(answer, Crash):
            if not hook.fail_open:
                return _redacted_failure_text(hook, answer)
        elif isinstance(answer, ToolResult):
            result = answer
    return result


async def ask_about_failure(hooks: HookBus, call: ToolCall, error: str, publisher: Publisher) -> FailureAnswer:
    """Return the first fallback of a hook; the run continues unless one of them objects (S4-64)."""
    fallback: ToolResult | None = None
    continues = True
    for hook in hooks.hooks("on_tool_error"):
        answer = await _ask(hook, "on_tool_error", ToolFailed(call, error), call.id, publisher)
        if isinstance(answer, FailureAnswer):
            fallback = fallback or answer.fallback
            continues = continues and answer.continue_on_error
    return FailureAnswer(fallback, continues)


async def allows_update(hooks: HookBus, call: ToolCall, text: str, publisher: Publisher) -> bool:
    """Return True if a partial result may be published (S0-32); a hook that fails drops it."""
    for hook in hooks.hooks("before_update"):
        answer = await hook.ask(BeforeUpdate(call, text))
        if isinstance(answer, Crash):
            _publish_failure(hook, "before_update", call.id, answer, publisher)
        if answer is False or (isinstance(answer, Crash) and not hook.fail_open):
            return False
    return True


async def observe_update(hooks: HookBus, call: ToolCall, text: str, publisher: Publisher) -> None:
    """Notify the `after_update` hooks that a partial result was published (S0-34)."""
    for hook in hooks.hooks("after_update"):
        answer = await hook.ask(BeforeUpdate(call, text))
        if isinstance(answer, Crash):
            _publish_failure(hook, "after_update", call.id, answer, publisher)


async def observe_end(hooks: HookBus, ended: ToolEnded, arguments: JsonObject, publisher: Publisher) -> None:
    """Notify the observers of the end of a call with these arguments (S0-40)."""
    for hook in hooks.hooks("after_tool_observer"):
        question = EndedCall(ended, arguments) if hook.with_input else ended
        await _ask(hook, "after_tool_observer", question, ended.call_id, publisher)


async def _ask(hook: Hook, event: HookEvent, question: object, call_id: str, publisher: Publisher) -> object:
    clock = asyncio.get_running_loop().time
    began = clock()
    publisher.publish(HookStarted(event=event, name=hook.name, call_id=call_id))
    answered = False
    try:
        answer = await hook.ask(question)
        if not isinstance(answer, Crash):
            answer = _checked_answer(event, answer)
        answered = True
    finally:
        if not answered:
            publisher.publish(HookFailed(event=event, name=hook.name, call_id=call_id, error="cancelled while it ran"))
    if isinstance(answer, Crash):
        _publish_failure(hook, event, call_id, answer, publisher)
        return answer
    action, reason = _action_of(answer)
    ms = (clock() - began) * 1000
    publisher.publish(HookEnded(event=event, name=hook.name, call_id=call_id, action=action, reason=reason, ms=ms))
    return answer


def _checked_answer(event: HookEvent, answer: object) -> object:
    """Return the answer as one of our types, or a `Crash` if a hook of this event cannot answer so."""
    match event, answer:
        case "before_tool", _:
            return _before_tool_answer(answer)
        case (("after_tool" | "on_tool_error"), None):
            return None
        case "after_tool", ToolResult() | str():
            return as_tool_result(answer)
        case "on_tool_error", FailureAnswer(fallback=fallback, continue_on_error=continues):
            return FailureAnswer(None if fallback is None else as_tool_result(fallback), continues)
        case (("after_tool" | "on_tool_error"), _):
            return _no_answer(event, answer)
        case "after_tool_observer", _:
            return None  # The result of an observer has no effect.
        case _:
            return answer


def _no_answer(event: HookEvent, answer: object) -> Crash:
    return Crash(TypeError(f"it answered {answer!r}, which is not an answer to {event}"))


def _before_tool_answer(answer: object) -> BeforeToolAnswer | Crash:
    """Return the answer as one of our types; `False` skips as in S0-26, `True` and None continue."""
    match answer:
        case None | True | Continue():
            return Continue()
        case False:
            return SkipCall()
        case SkipCall(result=result) if result is not None:
            return SkipCall(as_tool_result(result))
        case OverrideResult(result=result):
            return OverrideResult(as_tool_result(result))
        case ApproveCall() | RequireApproval() | DenyCall() | SkipCall() | ModifyArguments():
            return answer
        case _:
            return _no_answer("before_tool", answer)


def _action_of(answer: object) -> tuple[Action, str]:
    match answer:
        case DenyCall(reason=reason):
            return "deny", reason
        case SkipCall():
            return "skip", ""
        case OverrideResult():
            return "override", ""
        case ToolResult() | str():
            return "modify", ""
        case FailureAnswer(fallback=fallback, continue_on_error=continues):
            return ("override" if fallback else "allow"), ("" if continues else "the run ends")
        case ModifyArguments():
            return "modify", ""
        case ApproveCall(reason=reason) | RequireApproval(reason=reason):
            return "allow", reason
        case _:
            return "allow", ""


def _publish_failure(hook: Hook, event: HookEvent, call_id: str, crash: Crash, publisher: Publisher) -> None:
    hides = event in ("after_tool", "before_update") and not hook.fail_open
    failed = HookFailed(
        event=event,
        name=hook.name,
        call_id=call_id,
        error=_redacted_failure_text(hook, crash) if hides else _failure_text(hook, crash),
        timed_out=crash.timed_out,
        fail_open=hook.fail_open or event in ("on_tool_error", "after_tool_observer", "after_update"),
    )
    publisher.publish(failed)


def _failure_text(hook: Hook, crash: Crash) -> str:
    if crash.timed_out:
        return f"Hook {hook.name} did not answer within {hook.timeout:g} s"
    return f"Hook {hook.name} failed: {crash.text}"


def _redacted_failure_text(hook: Hook, crash: Crash) -> str:
    """Return the text about a hook that may hide something, without the error's text, which may contain just that."""
    return _failure_text(hook, crash) if crash.timed_out else f"Hook {hook.name} failed ({kind_of(crash)})"
