"""Answers of hooks: their exit code and output, read by the contract of their event, and several combined."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.setting_files import RecordFormat
from tui_agent.protocol.visible_text import escaped

from .foreign_hooks import FileHook, FileHookEvent

MAX_TEXT = 10_000
"""Most characters of one text of a hook that the model or the user reads."""
BLOCKED = 2
"""Exit code that blocks."""

_NOT_STARTED = (126, 127)
"""Exit codes of a shell that could not start a program."""
_LAST_OWN_CODE = 128
"""A shell adds the number of the signal that killed a program."""

_ANSWER = RecordFormat(
    used=frozenset(
        ("continue", "stopReason", "systemMessage", "decision", "reason", "additionalContext", "hookSpecificOutput")
    ),
    harmless=frozenset(("suppressOutput",)),
)
_OWN_ANSWER = RecordFormat(
    used=frozenset(
        ("hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext")
    ),
    harmless=frozenset(),
)
_DECISION = RecordFormat(frozenset(("behavior", "message", "updatedInput", "interrupt")), harmless=frozenset())
_OUTPUTS = ("updatedToolOutput", "updatedMCPToolOutput")

_BLOCKABLE = frozenset(("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop"))
"""Events whose hooks have a say."""
_PLAIN_TEXT_IS_CONTEXT = frozenset(("UserPromptSubmit", "SessionStart"))
CallVerdict: TypeAlias = Literal["allow", "ask", "deny"]
_VERDICTS: tuple[CallVerdict, ...] = ("allow", "ask", "deny")
"""The mildest first."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """One hook's answer. Its texts have no invisible characters and are not longer than `MAX_TEXT`."""

    verdict: CallVerdict | None = None
    """Verdict about a call before it runs; None: it has none."""
    blocks: bool = False
    """True if it objects: to the end of a run, to a prompt, or to a result."""
    reason: str = ""
    """Reason for the verdict or the objection; empty: none given."""
    updated_input: JsonObject | None = None
    """Fields of a call's input that change, by their names in hook files."""
    updated_output: str | None = None
    """Text that the model reads in place of a call's result."""
    context: str = ""
    """Text for the model; empty: none."""
    stop_reason: str | None = None
    """Reason why the run must end; None: it continues."""
    message: str = ""
    """Text for the user; empty: none."""
    failure: str = ""
    """Reason why it has no answer: a wrong exit code, output that cannot be used, no end in time."""
    unused: tuple[str, ...] = ()
    """Fields of the answer that have no effect here."""
    has_passed: bool = False
    """True if it failed with an exit code that this format does not count as an objection."""

    @property
    def word(self) -> str:
        """The answer in a word, for lists."""
        if self.failure:
            return "failed"
        if self.stop_reason is not None:
            return "stop"
        return self.verdict or ("block" if self.blocks else "changed" if self.updated_input else "ok")


def read_answer(event: FileHookEvent, code: int, out: str, err: str) -> HookAnswer:
    """Return the answer of a hook that ended with an exit code and output; never raises."""
    # Before any output is read: a guard that prints something odd still blocks.
    if code == BLOCKED:
        return _objection(event, _clean(err) or "A hook blocked this, without a reason.")
    plain = HookAnswer(context=_clean(out) if event in _PLAIN_TEXT_IS_CONTEXT else "")
    if code != 0:
        failure = ": ".join(filter(None, (f"exit code {code}", _clean(err))))
        # A shell that could not start the hook, or a signal that ended it, says nothing about the call.
        has_passed = code not in _NOT_STARTED and 0 < code <= _LAST_OWN_CODE
        return HookAnswer(failure=failure, context=plain.context, has_passed=has_passed)
    # Scripts print what they like; only an object is meant as an answer.
    if not out.lstrip().startswith("{"):
        return plain
    try:
        answer: object = json.loads(out)
    except (ValueError, RecursionError) as error:
        # Text for the model may begin with a brace.
        return plain if plain.context else HookAnswer(failure=f"its output is not JSON: {_clean(str(error))}")
    return _structured(event, answer) if is_object(answer) else plain


def _structured(event: FileHookEvent, answer: JsonObject) -> HookAnswer:
    own: object = answer.get("hookSpecificOutput", {})
    if not is_object(own) or own.get("hookEventName", event) != event:
        return HookAnswer(failure=f"its hookSpecificOutput is not one for {event}")
    if event == "PreToolUse":
        decided: object = own.get("permissionDecision", answer.get("decision"))
        reason: object = own.get("permissionDecisionReason", answer.get("reason"))
        # Scripts for earlier versions of this form use these words.
        verdict = {"approve": "allow", "block": "deny"}.get(str(decided), decided)
        if verdict not in (None, *_VERDICTS):
            return HookAnswer(failure=f"{_clean(str(decided))[:60]!r} is not a decision: allow, ask or deny")
    else:
        decided, verdict, reason = answer.get("decision"), None, answer.get("reason")
        if decided not in (None, "block", "approve"):
            return HookAnswer(failure=f"{_clean(str(decided))[:60]!r} is not a decision: block, or none")
    updated: object = own.get("updatedInput")
    if updated is not None and (event != "PreToolUse" or not is_object(updated)):
        return HookAnswer(failure="its updatedInput is not an object, or not for PreToolUse")
    output = next((own[name] for name in _OUTPUTS if name in own), None) if event == "PostToolUse" else None
    ignored = [name for name in _OWN_ANSWER.ignored(own) if output is None or name not in _OUTPUTS]
    if event == "PermissionRequest":
        return _permission(own, answer)
    stops = answer.get("continue") is False
    return HookAnswer(
        verdict=next((known for known in _VERDICTS if known == verdict), None),
        blocks=event != "PreToolUse" and event in _BLOCKABLE and decided == "block",
        reason=_text(reason),
        updated_input=dict(updated) if is_object(updated) else None,
        updated_output=None if output is None else _output(output),
        context=_text(own.get("additionalContext", answer.get("additionalContext"))),
        stop_reason=(_text(answer.get("stopReason")) or "a hook ended the run") if stops else None,
        message=_text(answer.get("systemMessage")),
        unused=(*_ANSWER.ignored(answer), *ignored),
    )


def _permission(own: JsonObject, answer: JsonObject) -> HookAnswer:
    """Return the answer to a question that the user would be asked."""
    decision = own.get("decision")
    if decision is None:
        return HookAnswer(message=_text(answer.get("systemMessage")), unused=_ANSWER.ignored(answer))
    behavior = decision.get("behavior") if is_object(decision) else decision
    updated = decision.get("updatedInput") if is_object(decision) else None
    if behavior not in ("allow", "deny") or not is_object(decision) or not is_object(updated or {}):
        return HookAnswer(failure=f"{_clean(str(behavior))[:60]!r} is not a decision with a behavior: allow or deny")
    reason = _text(decision.get("message"))
    return HookAnswer(
        verdict="allow" if behavior == "allow" else "deny",
        reason=reason,
        updated_input=dict(updated) if is_object(updated) and updated else None,
        stop_reason=(reason or "a hook ended the run") if decision.get("interrupt") is True else None,
        message=_text(answer.get("systemMessage")),
        unused=(*_ANSWER.ignored(answer), *_DECISION.ignored(decision)),
    )


def _objection(event: FileHookEvent, reason: str) -> HookAnswer:
    if event in ("PreToolUse", "PermissionRequest"):
        return HookAnswer(verdict="deny", reason=reason)
    return HookAnswer(blocks=True, reason=reason) if event in _BLOCKABLE else HookAnswer(message=reason)


@dataclass(frozen=True, slots=True)
class CombinedAnswer:
    """The answers of all hooks for one question; the strictest counts."""

    answers: tuple[tuple[FileHook, HookAnswer], ...] = field(default=())

    @property
    def verdict(self) -> tuple[CallVerdict | None, str]:
        """The strictest verdict about a call, and the reasons for it, a line each; None and empty without a verdict."""
        verdicts = {answer.verdict for _, answer in self.answers}
        strictest: CallVerdict | None = next((known for known in reversed(_VERDICTS) if known in verdicts), None)
        reasons = [answer.reason for _, answer in self.answers if strictest and answer.verdict == strictest]
        return strictest, "\n".join(filter(None, reasons))

    @property
    def objections(self) -> tuple[tuple[FileHook, str], ...]:
        """The hooks that object, each with its reason."""
        return tuple((hook, answer.reason) for hook, answer in self.answers if answer.blocks)

    @property
    def contexts(self) -> tuple[tuple[FileHook, str], ...]:
        """The hooks with a text for the model, each with it."""
        return tuple((hook, answer.context) for hook, answer in self.answers if answer.context)

    @property
    def updated_input(self) -> JsonObject:
        """The changed fields of a call's input; of several changes of one field, the last."""
        changed: JsonObject = {}
        for _, answer in self.answers:
            changed |= answer.updated_input or {}
        return changed

    @property
    def updated_output(self) -> str | None:
        """The text in place of a call's result; of several, the last; None: the result stays."""
        texts = [answer.updated_output for _, answer in self.answers if answer.updated_output is not None]
        return texts[-1] if texts else None

    @property
    def stop(self) -> tuple[FileHook, str] | None:
        """The first hook that ends the run, with its reason; None if none does."""
        return next(((hook, answer.stop_reason) for hook, answer in self.answers if answer.stop_reason), None)


def framed(texts: Sequence[tuple[FileHook, str]]) -> str:
    """Return texts of hooks for the model, marked so that it does not take them for the user's words."""
    return "\n".join(_framed(hook, text) for hook, text in texts)


def _framed(hook: FileHook, text: str) -> str:
    body = text.strip("\n").replace("</hook>", "<\\/hook>")
    source = escaped(hook.source).replace('"', "'")
    return f'<hook event="{hook.event}" from="{source}">\n{body}\n</hook>'


def _output(value: object) -> str:
    """Return the text of a replaced result: of a command, its standard output."""
    if is_object(value):
        value = value.get("stdout", value.get("content", value))
    return escaped(value if isinstance(value, str) else json.dumps(value))


def _text(value: object) -> str:
    return _clean(value) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    """Return a text with visible escapes for control characters, cut to `MAX_TEXT`."""
    shown = escaped(text[: MAX_TEXT + 1].strip())
    return shown if len(text) <= MAX_TEXT else f"{shown[:MAX_TEXT]}… ({len(text) - MAX_TEXT:,} more characters)"
