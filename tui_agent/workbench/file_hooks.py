"""The hooks of hook files at work: their questions, processes, answers, and what these do to a session."""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tui_agent.agent import AgentLoop
from tui_agent.agent.guardrails import PromptCheck
from tui_agent.execution import HookBus
from tui_agent.execution.process_hook import HookOutput, HookProcess
from tui_agent.hook_files.foreign_hooks import CALL_EVENTS, PROJECT_DIR, FileHook, FileHookEvent, changed_script
from tui_agent.hook_files.hook_answer import CombinedAnswer, HookAnswer, framed, read_answer
from tui_agent.hook_files.tool_vocabulary import (
    foreign_input,
    foreign_name,
    foreign_result,
    is_matched,
    names_of_tool,
    own_input,
)
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.background import run_service
from tui_agent.protocol.events import (
    ApprovalRequested,
    HookEnded,
    HookFailed,
    HookStarted,
    Noticed,
    RunEnded,
    RunStarted,
    Warned,
)
from tui_agent.protocol.hooks import (
    AfterTool,
    ApproveCall,
    BeforeTool,
    BeforeToolAnswer,
    Continue,
    DenyCall,
    ModifyArguments,
    RequireApproval,
)
from tui_agent.protocol.messages import JsonObject, TextBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ChangesChecker, PermissionMode
from tui_agent.protocol.setting_files import as_list
from tui_agent.protocol.tool import Tool, ToolResult
from tui_agent.tools.processes.child_environment import child_environment

from .configuration.found_files import FoundHooks
from .hook_transcript import FILE_NAME, HookTranscript
from .user_commands import marked_tree

SessionSource = Literal["startup", "resume", "clear", "compact"]
EndReason = Literal["clear", "prompt_input_exit", "other"]

NAME = "hook files"
"""Name of all of them together in events about a call."""
EXPORTS_NAME = "hook-exports.sh"
EXPORT_SECONDS = 10.0
"""Most seconds to read the variables that hooks export."""
_OF_THE_SHELL = frozenset(("_", "SHLVL", "PWD", "OLDPWD"))
END_SECONDS = 1.5
"""Most seconds for hooks at the end of a session, which the user waits for."""
IDLE_SECONDS = 60.0
"""Seconds after a run without input until a notification."""
_NO_LIMIT = 24 * 3600.0
"""Each command has a limit of its own."""
_MOST_NOTES = 200
_MODES: dict[PermissionMode, str] = {
    PermissionMode.ASK: "default",
    PermissionMode.ACCEPT_EDITS: "acceptEdits",
    PermissionMode.PLAN: "plan",
    PermissionMode.ALLOW: "bypassPermissions",
    PermissionMode.DENY: "dontAsk",
}
"""The other agent's names of modes."""


@dataclass(frozen=True, slots=True)
class LastResult:
    """The last time that a hook ran."""

    word: str
    """The answer in a word, `failed` for a hook that could not answer."""
    detail: str
    """Its failure, reason or message; empty without one."""
    ms: float
    """Milliseconds that it took."""


class FileHooks:
    """The hooks of one session. `serve` runs what happens between questions."""

    def __init__(
        self,
        own: FoundHooks,
        project: FoundHooks,
        loop: AgentLoop,
        archive: Path,
        *,
        watched: bool,
        source: SessionSource = "startup",
        variables: dict[str, str] | None = None,
    ) -> None:
        """
        Args:
            project: those of the project that may run.
            loop: the main agent, which gets these hooks.
            watched: True if a user may be idle.
            source: why the session starts, unless `begin` says otherwise.
            variables: gets the variables that hooks of the session's start export for later commands.
        """
        self.results: dict[FileHook, LastResult] = {}
        """The last result of each hook that has run."""
        self.end_reason: EndReason = "other"
        """Reason for the end of the session."""
        self.hooks = (*own.hooks, *project.hooks)
        """The hooks that run."""
        self._project = project
        self._loop = loop
        # Hooks compare paths as texts, and get the real ones in all fields.
        self._cwd = Path(os.path.realpath(loop.config.workspace or "."))
        self._transcript = HookTranscript(archive / FILE_NAME, loop.config.session_id, self._cwd)
        self._exports = archive / EXPORTS_NAME
        self._variables = {} if variables is None else variables
        self._writing = asyncio.Lock()
        self._watched = watched
        self._notes: dict[str, list[tuple[FileHook, str]]] = {}
        """Texts for the model by the call whose result they follow."""
        self._beside: list[asyncio.Task[None]] = []
        self._session_tasks: asyncio.TaskGroup | None = None
        """Owner of the hooks that nothing waits for."""
        self._source: SessionSource = source
        self._begun, self._started = asyncio.Event(), asyncio.Event()
        loop.config.run_hooks = AgentHooks(self)
        if loop.config.hooks is not None:
            self._add_to(loop.config.hooks)

    # --- the session --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[None]:
        """Run the hooks of the session's start once `begin` is called, of questions and of notifications.

        When the context closes, cancel those that run and run the hooks of the session's end, at most `END_SECONDS`.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                self._session_tasks = tasks
                services = [tasks.create_task(run_service("session start hooks", self._start()))]
                if any(hook.event == "PermissionRequest" for hook in self.hooks):
                    services.append(tasks.create_task(run_service("permission hooks", self._answer_questions())))
                if any(hook.event == "Notification" for hook in self.hooks):
                    services.append(tasks.create_task(run_service("notification hooks", self._notify())))
                try:
                    yield
                finally:
                    self._session_tasks = None
                    # What nothing waits for must not delay the end of the session.
                    for service in (*services, *self._beside):
                        service.cancel()
        finally:
            await self.ask("SessionEnd", (self.end_reason,), {"reason": self.end_reason}, most=END_SECONDS)

    def begin(self, source: SessionSource | None = None) -> None:
        """Let the hooks of the session's start run; the first prompt waits for them. Later calls have no effect.

        Args:
            source: why the session starts; None: as the constructor got it.
        """
        self._source = source or self._source
        self._begun.set()

    async def _start(self) -> None:
        await self._begun.wait()
        # A resumed session has the file of its last start.
        await asyncio.to_thread(self._exports.unlink, missing_ok=True)
        try:
            if text := await self._session_context(self._source):
                self._loop.notify(text)
                shown = f"Hooks of the session's start give the model {len(text):,} characters; /hooks lists them."
                self._loop.bus.publish(Noticed(code="hook_message", text=shown))
        finally:
            self._started.set()

    async def _session_context(self, source: SessionSource) -> str:
        answer = await self.ask("SessionStart", (source,), {"source": source})
        await self._read_exports()
        return f"Hooks of this session's start add:\n{framed(answer.contexts)}" if answer.contexts else ""

    async def _read_exports(self) -> None:
        """Let later commands have the variables that hooks of the session's start wrote to their file."""
        if not self._exports.exists() or self._exports.stat().st_size == 0:
            return
        environment = child_environment(os.environ)
        # By the shell itself: the file is a script, and only a shell knows what it sets.
        reading = ("bash", "--noprofile", "--norc", "-c", 'set -a; . "$1" && env -0', "bash", str(self._exports))
        try:
            async with asyncio.timeout(EXPORT_SECONDS):
                ended = await HookProcess(reading, self._cwd, environment).run(b"")
        except (TimeoutError, OSError) as error:
            ended = HookOutput(1, "", str(error) or f"no end within {EXPORT_SECONDS:g} s")
        if ended.code != 0:
            text = f"The variables that hooks export in $CLAUDE_ENV_FILE cannot be read: {ended.err.strip()[:500]}"
            self._loop.bus.publish(Warned(code="hook_failed", text=text))
        pairs = (line.partition("=") for line in ended.out.split("\0") if "=" in line)
        # What the environment has already is not repeated in every later command.
        changed = {name: value for name, _, value in pairs if environment.get(name) != value}
        self._variables |= {name: value for name, value in changed.items() if name not in _OF_THE_SHELL}

    async def _answer_questions(self) -> None:
        """Let hooks answer questions to the user, while they wait for the user."""
        with self._loop.bus.subscribe() as subscription:
            async with asyncio.TaskGroup() as tasks:
                async for batch in subscription.batches():
                    for envelope in batch:
                        if isinstance(envelope.event, ApprovalRequested) and envelope.event.question is None:
                            tasks.create_task(run_service("permission hook", self._answer_question(envelope.event)))

    async def _answer_question(self, request: ApprovalRequested) -> None:
        gate, hooks = self._loop.config.gate, self._about("PermissionRequest", request.tool, request.args)
        if gate is None or not hooks:
            return
        given = foreign_input(request.tool, request.args, self._cwd)
        fields: JsonObject = {"tool_name": foreign_name(request.tool), "tool_input": given}
        answer = await self._ask_all("PermissionRequest", hooks, fields)
        verdict, reason = answer.verdict
        sources = ", ".join(hook.source for hook, one in answer.answers if verdict and one.verdict == verdict)
        decision: ApprovalDecision | None = None
        if verdict == "deny":
            decision = ApprovalDecision(decision="deny", note=f"A hook ({sources}) denies it: {reason}")
        # A hook answers in place of the mode, never of a rule that asks.
        elif verdict == "allow" and self._is_asked_by_the_mode(request):
            changed = own_input(request.tool, request.args, answer.updated_input, self._cwd)
            # A command that ran in a trial has run: its input cannot change any more.
            is_changed = changed != request.args and request.changes is None
            decision = ApprovalDecision(decision="approve", input=changed if is_changed else None)
        if decision is not None and gate.resolve(
            request.request_id, decision, by="policy" if verdict == "deny" else "user"
        ):
            text = f"A hook ({sources}) answered the question about {request.tool} for you: {verdict}."
            self._loop.bus.publish(Noticed(code="hook_message", text=text))
        if answer.stop is not None:
            self._stop(*answer.stop)

    def _is_asked_by_the_mode(self, request: ApprovalRequested) -> bool:
        """Return True if neither a rule nor a protected path asks: hooks answer nothing else for you."""
        if request.changes is not None:
            policy = self._loop.policy
            found = policy.check_changes(request.changes) if isinstance(policy, ChangesChecker) else None
            return found is not None and found.decision == "ask" and found.source == "mode"
        tool = next((tool for tool in self._loop.tools if tool.name == request.tool), None)
        if tool is None:
            return False
        decision = self._loop.policy.check(tool, request.args)
        return decision.decision == "ask" and decision.source == "mode"

    async def _notify(self) -> None:
        """Run the hooks of notifications: about questions, and once no input has followed a run for a while."""
        bus = self._loop.bus
        with bus.subscribe() as subscription:
            batches = aiter(subscription.batches())
            is_idle = False
            while True:
                try:
                    async with asyncio.timeout(IDLE_SECONDS if is_idle and self._watched else None):
                        events = [envelope.event for envelope in await anext(batches)]
                except TimeoutError:
                    is_idle, events = False, []
                    if not self._loop.running:
                        await self._notification("idle_prompt", "The agent is waiting for your input")
                    batches = aiter(subscription.batches())
                for event in events:
                    is_idle = isinstance(event, RunEnded) or (is_idle and not isinstance(event, RunStarted))
                    if isinstance(event, ApprovalRequested):
                        name = foreign_name(event.tool)
                        await self._notification("permission_prompt", f"The agent needs your permission to use {name}")

    async def _notification(self, kind: str, message: str) -> None:
        await self.ask("Notification", (kind,), {"message": message, "notification_type": kind})

    # --- calls --------------------------------------------------------------------------------------------------------

    def _add_to(self, bus: HookBus) -> None:
        """Let the hooks decide about calls, after the hooks of the bus."""
        if any(hook.event == "PreToolUse" for hook in self.hooks):
            bus.add(
                "before_tool",
                self._before_tool,
                name=NAME,
                timeout=_NO_LIMIT,
                may_approve=True,
                applies=lambda question: bool(self._about("PreToolUse", question.call.name, question.arguments)),
            )
        if any(hook.event in CALL_EVENTS for hook in self.hooks):
            bus.add(
                "after_tool", self._after_tool, name=NAME, timeout=_NO_LIMIT, fail_open=True, applies=self._has_after
            )

    async def _before_tool(self, question: BeforeTool) -> BeforeToolAnswer:
        call, tool = question.call, question.call.name
        given = foreign_input(tool, question.arguments, self._cwd)
        fields = {"tool_name": foreign_name(tool), "tool_input": given, "tool_use_id": call.id}
        hooks = self._about("PreToolUse", tool, question.arguments)
        answer = await self._ask_all("PreToolUse", hooks, fields)
        verdict, reason = answer.verdict
        sources = ", ".join(hook.source for hook, one in answer.answers if verdict and one.verdict == verdict)
        if answer.stop is not None:
            self._stop(*answer.stop)
            return DenyCall(f"A hook ({answer.stop[0].source}) ended the run; this call did not run.")
        if verdict == "deny":
            return DenyCall(f"Denied by a hook ({sources}): {reason or 'no reason given'}")
        notes = list(answer.contexts)
        arguments = own_input(tool, question.arguments, answer.updated_input, self._cwd)
        changed = [name for name, value in arguments.items() if question.arguments.get(name) != value]
        if changed:
            changing = next(hook for hook, one in answer.answers if one.updated_input)
            notes.append((changing, f"A hook changed this call before it ran: {', '.join(changed)}."))
        if notes:
            self._notes[call.id] = notes
            # Those of calls that did not run after all have no result to follow.
            for old in list(self._notes)[:-_MOST_NOTES]:
                del self._notes[old]
        decided: ApproveCall | RequireApproval | None = None
        if verdict is not None:
            words = f"a hook ({sources}) {'allows' if verdict == 'allow' else 'asks about'} it"
            words = f"{words}: {reason}" if reason else words
            decided = ApproveCall(words) if verdict == "allow" else RequireApproval(words)
        return ModifyArguments(arguments, decided) if changed else decided or Continue()

    async def _after_tool(self, question: AfterTool) -> ToolResult | None:
        call, tool, result = question.call, question.call.name, question.result
        notes = self._notes.pop(call.id, [])
        # `PostToolUse` is about calls that succeeded.
        hooks = () if result.is_error else self._about("PostToolUse", tool, question.arguments)
        content = result.content
        if hooks:
            fields = {
                "tool_name": foreign_name(tool),
                "tool_input": foreign_input(tool, question.arguments, self._cwd),
                "tool_response": foreign_result(tool, question.arguments, result.text, self._cwd),
                "tool_use_id": call.id,
            }
            answer = await self._ask_all("PostToolUse", hooks, fields)
            if answer.updated_output is not None:
                content = (TextBlock(text=answer.updated_output),)
            notes += [*answer.objections, *answer.contexts]
            if answer.stop is not None:
                self._stop(*answer.stop)
        if not notes and content is result.content:
            return None
        framed_notes = (TextBlock(text=framed(notes)),) if notes else ()
        return result.model_copy(update={"content": (*content, *framed_notes)})

    def _has_after(self, question: AfterTool) -> bool:
        is_asked = self._about("PostToolUse", question.call.name, question.arguments)
        return question.call.id in self._notes or bool(is_asked)

    def _about(self, event: FileHookEvent, name: str, arguments: JsonObject) -> tuple[FileHook, ...]:
        """Return the hooks of an event whose matcher and rule fit a call."""
        hooks = matched_hooks(self.hooks, event, names_of_tool(name))
        if not any(hook.rule for hook in hooks):
            return hooks
        tool = next((tool for tool in self._loop.tools if tool.name == name), None)
        return tuple(hook for hook in hooks if rule_fits(hook.rule, tool, arguments, self._cwd))

    # --- questions ----------------------------------------------------------------------------------------------------

    async def started(self) -> None:
        """Call `begin`, and wait until the hooks of the session's start have ended; `serve` must be open."""
        self.begin()
        await self._started.wait()

    async def context_after_compaction(self) -> str:
        """Run the hooks of a session's start after a compaction, and return the text they add; may be empty."""
        return await self._session_context("compact")

    async def ask(
        self, event: FileHookEvent, subjects: Sequence[str], fields: JsonObject, *, most: float | None = None
    ) -> CombinedAnswer:
        """Ask all hooks of an event whose matcher fits, at the same time; publish what they say to the user.

        Return the answers in the order of the hooks, without those of hooks that run in the background.

        Args:
            subjects: the names of a tool, or one word, to compare with matchers; empty: all matchers fit.
            fields: what they get besides the fields of every event.
            most: most seconds for each; None: as its file says.
        """
        return await self._ask_all(event, matched_hooks(self.hooks, event, subjects), fields, most=most)

    async def _ask_all(
        self, event: FileHookEvent, hooks: Sequence[FileHook], fields: JsonObject, *, most: float | None = None
    ) -> CombinedAnswer:
        if not hooks:
            return CombinedAnswer()
        question = json.dumps(await self._common_fields(event) | fields, default=str).encode()
        changed = None
        if any(hook.origin == "project" for hook in hooks):
            changed = await asyncio.to_thread(changed_script, self._project.scripts, self._project.hooks)
        # At the end of a session there is no later step to run beside, so that these are waited for, too.
        if (tasks := self._session_tasks) is not None:
            beside = [hook for hook in hooks if hook.runs_beside]
            self._beside = [task for task in self._beside if not task.done()]
            self._beside += [tasks.create_task(self._run_beside(hook, question, changed)) for hook in beside]
            hooks = [hook for hook in hooks if not hook.runs_beside]
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(self._answer(hook, question, changed, most)) for hook in hooks]
        return CombinedAnswer(tuple((hook, task.result()) for hook, task in zip(hooks, asked, strict=True)))

    async def _run_beside(self, hook: FileHook, question: bytes, changed: str | None) -> None:
        """Run a hook that nothing waits for; the model reads its words with a later step."""

        async def answer() -> None:
            said = await self._answer(hook, question, changed, None)
            if said.context:
                self._loop.notify(framed([(hook, said.context)]))

        await run_service("hook", answer())

    async def _common_fields(self, event: FileHookEvent) -> JsonObject:
        # One after another: two hooks must not find half a transcript.
        async with self._writing:
            messages = self._loop.history.messages()
            await run_service("hook transcript", asyncio.to_thread(self._transcript.update, messages))
        return {
            "session_id": self._loop.config.session_id,
            "transcript_path": str(self._transcript.path),
            "cwd": str(self._cwd),
            "permission_mode": _MODES[self._loop.policy.mode],
            "hook_event_name": event,
        }

    async def _answer(self, hook: FileHook, question: bytes, changed: str | None, most: float | None) -> HookAnswer:
        began = time.monotonic()
        if hook.event not in CALL_EVENTS:
            self._loop.bus.publish(HookStarted(event=hook.event, name=hook.source))
        # Only those of the project: the user's own scripts may change at any time.
        if changed is not None and hook.origin == "project":
            answer = _changed(hook, changed)
        else:
            limit = hook.timeout if most is None else min(most, hook.timeout)
            try:
                answer = await run_hook(hook, question, self._cwd, limit, self._exports)
            except asyncio.CancelledError:
                if hook.event not in CALL_EVENTS:
                    # A journal without its end would look like that of a program that broke off.
                    self._loop.bus.publish(
                        HookFailed(event=hook.event, name=hook.source, error="cancelled while it ran")
                    )
                raise
        ms = (time.monotonic() - began) * 1000
        self.results[hook] = LastResult(answer.word, answer.failure or answer.reason or answer.message, ms)
        self._publish(hook, answer, ms)
        return answer

    def _publish(self, hook: FileHook, answer: HookAnswer, ms: float) -> None:
        publish = self._loop.bus.publish
        if hook.event not in CALL_EVENTS:
            action = "deny" if answer.blocks else "allow"
            said = answer.failure or answer.reason
            publish(HookEnded(event=hook.event, name=hook.source, action=action, reason=said, ms=ms))
        if answer.failure:
            denies = 'denies the call unless its entry has "fail_open": true'
            effect = denies if answer.verdict == "deny" else "counts as no answer"
            text = f"Hook {hook.event} ({hook.source}) failed, and {effect}: {answer.failure}"
            publish(Warned(code="hook_failed", text=text))
        if answer.unused:
            text = f"Hook {hook.event} ({hook.source}) answers {as_list(answer.unused)}, which has no effect here."
            publish(Warned(code="left_out", text=text))
        if answer.message:
            publish(Noticed(code="hook_message", text=f"Hook {hook.event} ({hook.source}): {answer.message}"))

    def _stop(self, hook: FileHook, reason: str) -> None:
        """End the run of the main agent and those of its sub-agents after their steps."""
        text = f"A hook ({hook.source}) ends the run: {reason}"
        self._loop.bus.publish(Noticed(code="hook_message", text=text))
        agents = [self._loop]
        # Sub-agents have loops of their own, which a stop of the main agent does not reach.
        while agents:
            agent = agents.pop()
            agents += agent.children.values()
            agent.stop()


class AgentHooks:
    """The hooks of one agent's runs; implements `agent.guardrails.RunHooks`."""

    def __init__(self, hooks: FileHooks, sub_agent: str = "") -> None:
        self._hooks = hooks
        self._sub_agent = sub_agent

    async def check_prompt(self, message: UserMessage, /) -> PromptCheck:
        """Let `UserPromptSubmit` hooks refuse a message of the user, or add to it."""
        if self._sub_agent:
            return PromptCheck()
        await self._hooks.started()
        answer = await self._hooks.ask("UserPromptSubmit", (), {"prompt": message.text})
        refusals = (*([answer.stop] if answer.stop is not None else []), *answer.objections)
        for hook, reason in refusals:
            return PromptCheck(refusal=reason or "no reason given", by=f"hook {hook.source}")
        notices = (f"Hooks add to the message of the user:\n{framed(answer.contexts)}",) if answer.contexts else ()
        return PromptCheck(notices=notices)

    async def before_end(self, answer: str, is_continued: bool, /) -> str | None:
        """Ask `Stop` or `SubagentStop` hooks; return the text with which the run continues, None to let it end."""
        fields: JsonObject = {"stop_hook_active": is_continued, "last_assistant_message": answer}
        if self._sub_agent:
            # An id is the name of the kind with a number.
            kind = self._sub_agent.rpartition("-")[0] or self._sub_agent
            fields |= {"agent_id": self._sub_agent, "agent_type": kind}
            said = await self._hooks.ask("SubagentStop", (kind,), fields)
        else:
            said = await self._hooks.ask("Stop", (), fields)
        # A hook that ends the run has stopped it already; another one must not prolong it.
        if said.stop is not None or not said.objections:
            return None
        return f"Hooks do not let the work end yet. Do what they ask for:\n{framed(said.objections)}"

    async def before_compaction(self, trigger: Literal["automatic", "manual"], focus: str, /) -> None:
        """Run the `PreCompact` hooks, which decide nothing."""
        word = "auto" if trigger == "automatic" else "manual"
        await self._hooks.ask("PreCompact", (word,), {"trigger": word, "custom_instructions": focus})

    async def after_compaction(self) -> str | None:
        """Ask `SessionStart` hooks again, and return the text that they add; None if they add none."""
        return await self._hooks.context_after_compaction() or None

    def for_sub_agent(self, agent_id: str, /) -> "AgentHooks":
        """Return the hooks of a sub-agent."""
        return AgentHooks(self._hooks, agent_id)


def matched_hooks(hooks: Sequence[FileHook], event: FileHookEvent, subjects: Sequence[str]) -> tuple[FileHook, ...]:
    """Return the hooks of an event whose matcher fits one of `subjects`, each command once; all if there are none."""
    fitting = [hook for hook in hooks if hook.event == event and (not subjects or is_matched(hook.matcher, *subjects))]
    return tuple({(hook.command, hook.options, hook.project_dir): hook for hook in reversed(fitting)}.values())[::-1]


def rule_fits(rule: str, tool: Tool | None, arguments: JsonObject, workspace: Path) -> bool:
    """Return True if a hook's rule matches a call, or could match it: a guard must not miss its calls."""
    if not rule or tool is None:
        return True
    # As a deny rule, because those match whatever a call could touch.
    return _policy_of(rule, workspace).check(tool, arguments).decision == "deny"


@lru_cache(maxsize=256)
def _policy_of(rule: str, workspace: Path) -> PermissionPolicy:
    return PermissionPolicy(workspace, rules=(("deny", rule),), mode=PermissionMode.ALLOW)


async def run_hook(
    hook: FileHook, question: bytes, working_dir: Path, limit: float, exports: Path | None = None
) -> HookAnswer:
    """Run a hook with a question, without secrets in its environment, and return its answer.

    A hook that could not answer about a call denies it, unless it may fail open. After `limit` seconds it is killed
    with everything it started. A hook of the session's start writes variables to `exports`; None: they are lost.
    """
    environment = child_environment(os.environ) | {PROJECT_DIR: str(hook.project_dir)}
    if hook.event == "SessionStart":
        environment["CLAUDE_ENV_FILE"] = str(exports or os.devnull)
    process = HookProcess(hook.argv or hook.command, working_dir, environment, marked_tree)
    try:
        async with asyncio.timeout(limit):
            ended = await process.run(question)
    except TimeoutError:
        answer = HookAnswer(failure=f"no end within {limit:g} s; it was killed")
    except OSError as error:
        answer = HookAnswer(failure=str(error))
    else:
        answer = read_answer(hook.event, ended.code, ended.out, ended.err)
    if hook.event == "PreToolUse" and answer.failure and not (answer.has_passed or hook.fail_open):
        return replace(answer, verdict="deny", reason=f"it could not answer: {answer.failure}")
    return answer


def _changed(hook: FileHook, script: str) -> HookAnswer:
    """Return the answer of a hook that must not run, because one of its scripts is not the one that was accepted."""
    name = os.path.relpath(script, hook.project_dir)
    reason = f"{name} changed since the hooks were accepted, so they do not run; start tui-agent again to accept them"
    # A guard that was changed must not let its calls pass.
    return HookAnswer(verdict="ask", reason=reason) if hook.event == "PreToolUse" else HookAnswer(failure=reason)
