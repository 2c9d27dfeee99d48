"""A scripted agent for tests, and helpers to run a headless program."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace, TracebackType
from typing import Any, Literal, cast

from tui_agent.headless import HeadlessOptions, StandardStreams, run_headless
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    RunEnded,
    RunStarted,
    SessionCreated,
    StatusChanged,
    SteeringQueued,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolQueued,
    ToolStarted,
)
from tui_agent.protocol.messages import TextBlock, Usage, UserBlock, UserMessage, user_message
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.pipes import LineReader
from tui_agent.protocol.reports import AgentRunReport, RunReason
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.workbench.review_command import PromptDefinitions
from tui_agent.workbench.session_inputs import SessionPrompts
from tui_agent.workbench.workbench import Workbench

SESSION = "headless"

Part = Callable[["ScriptedAgent", str], Awaitable[AgentRunReport]]
"""Actions of the agent for a prompt."""


class ScriptedAgent:
    """An agent that plays one part a run and repeats the last one."""

    def __init__(self, *parts: Part) -> None:
        self.bus = EventBus(Origin(session_id=SESSION))
        self.bus.publish(SessionCreated(id=SESSION))
        self.parts = list(parts)
        self.prompts: list[str] = []
        self.said: list[tuple[str, str]] = []
        """All other method calls, in order."""
        self.aborted = asyncio.Event()
        self.stopped = asyncio.Event()
        self.steered = asyncio.Event()
        self.running = False
        self.waiting_messages: list[UserMessage] = []
        self.pending_calls: list[ApprovalRequest] = []
        self._questions: dict[str, asyncio.Future[tuple[ApprovalDecision, Any]]] = {}
        self._steps = 0

    async def run(self, user_input: str | UserMessage | None, /) -> AgentRunReport:
        self.running = True
        words = user_input.text if isinstance(user_input, UserMessage) else user_input or ""
        self.prompts.append(words)
        self.aborted.clear()
        self.stopped.clear()
        self.steered.clear()
        part = self.parts.pop(0) if len(self.parts) > 1 else self.parts[0]
        try:
            self.tell(RunStarted(input=words, trigger="prompt", model="scripted", mode=PermissionMode.ASK))
            made = await part(self, words)
            self.tell(RunEnded(reason=made.reason, final_text=made.final_text, error=made.error, report=made))
            self.bus.publish(StatusChanged(status="idle"))
            return made
        finally:
            self.running = False

    def tell(self, event: AgentEvent) -> None:
        step = self._steps or None
        self.bus.publish(event, Origin(session_id=SESSION, run_id=f"run_{len(self.prompts)}", step=step))

    def steer(self, text: str, /) -> UserMessage:
        self.said.append(("steer", text))
        message = user_message(text, "steer")
        self.tell(SteeringQueued(message_id=message.id, kind="steer", text=text, position=0, message=message))
        self.steered.set()
        return message

    def follow_up(self, text: str, /) -> UserMessage:
        self.said.append(("follow_up", text))
        return user_message(text, "follow_up")

    def stop(self) -> None:
        self.said.append(("stop", ""))
        self.stopped.set()

    def abort(self, reason: str, /) -> None:
        self.said.append(("abort", reason))
        self.aborted.set()

    def delay_requests(self, seconds: float, /) -> None:
        self.said.append(("delay", f"{seconds:g}"))

    def set_mode(self, mode: PermissionMode, by: str, /) -> None:
        self.said.append(("mode", f"{mode} by {by}"))

    def resolve_approval(
        self, request_id: str, decision: ApprovalDecision, /, by: Literal["user", "nobody"] = "user"
    ) -> bool:
        question = self._questions.get(request_id)
        if question is None or question.done():
            return False
        question.set_result((decision, by))
        return True

    async def call(
        self,
        name: str,
        *,
        answer: ApprovalDecision | None = None,
        asks: bool = False,
        read_only: bool = False,
        question: ServerQuestion | None = None,
    ) -> ApprovalDecision:
        """Play one call: request approval if asked to, and run the call if it is allowed. With `answer`, resolve
        the request with it, as decided by `nobody`."""
        call_id = f"call_{name}"
        self.tell(ToolQueued(call_id=call_id, name=name, args_raw={}, index=0))
        decision = answer or ApprovalDecision(decision="approve")
        if asks or answer:
            decision = await self._ask(call_id, name, answer, question)
        allowed = decision.decision == "approve"
        if allowed:
            self.tell(ToolStarted(call_id=call_id, name=name, args={}, read_only=read_only))
        self.tell(
            ToolEnded(
                call_id=call_id,
                name=name,
                index=0,
                status="ok" if allowed else "denied_user",
                is_error=not allowed,
                content=(TextBlock(text=name),),
            )
        )
        return decision

    async def _ask(
        self, call_id: str, name: str, answer: ApprovalDecision | None, question: ServerQuestion | None = None
    ) -> ApprovalDecision:
        request_id = f"ask_{name}"
        self._questions[request_id] = asyncio.get_running_loop().create_future()
        asked = ApprovalRequested(
            request_id=request_id, call_id=call_id, digest="d", tool=name, args={}, question=question
        )
        self.tell(asked)
        decision, by = (answer, "nobody") if answer else await self._questions[request_id]
        self.tell(
            ApprovalResolved(
                request_id=request_id, call_id=call_id, decision=decision.decision, by=by, note=decision.note
            )
        )
        return decision

    def begin_step(self) -> None:
        self._steps += 1
        self.tell(StepStarted(index=self._steps, kind="initial"))

    def end_step(self) -> None:
        self.tell(StepEnded(index=self._steps, kind="initial", llm_ms=1.0, finish_reason="end_turn", usage=Usage()))


def report(reason: RunReason = "done", text: str = "All done.", **fields: Any) -> AgentRunReport:
    """A run's report."""
    return AgentRunReport(
        id="run_1",
        model="scripted",
        started_at=1,
        completed_at=2,
        total_ms=12.6,
        reason=reason,
        user_message="go",
        final_text=text,
        **fields,
    )


def answering(reason: RunReason = "done", text: str = "All done.", **fields: Any) -> Part:
    """A part that ends at once."""

    async def part(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
        return report(reason, text, **fields)

    return part


async def until_aborted(agent: ScriptedAgent, prompt: str) -> AgentRunReport:
    """A part that ends when it is aborted."""
    await agent.aborted.wait()
    return report("aborted", "")


class NoFiles:
    """Files of a prompt that names none."""

    async def attached(self, text: str, *, typed: bool) -> Sequence[UserBlock]:
        return ()


def bench_of(
    agent: Any,
    events: EventBus | None = None,
    *,
    save: Callable[[], Awaitable[None]] | None = None,
    definitions: Any = None,
    files: Any = None,
) -> Workbench:
    """Return the parts of an open session that the headless front end uses, with this agent."""

    async def end_all() -> None: ...

    defined = PromptDefinitions(agent, definitions)
    parts = {
        "agent": agent,
        "events": events or getattr(agent, "bus", None),
        "save": save,
        "jobs": SimpleNamespace(end_all=end_all),
        "options": SimpleNamespace(prompt=None),
        "rules": SimpleNamespace(narrowest=lambda tool, arguments: ""),
        "definitions": defined,
        "prompts": SessionPrompts(agent, defined, files or NoFiles()),
    }
    return cast(Workbench, SimpleNamespace(**parts))


class ClosingReader(LineReader):
    """A reader whose thread closes the descriptor after the last line."""

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            super()._read(loop)
        finally:
            os.close(self._descriptor)


class Program:
    """A headless program with pipes. The exit of the context closes its input and waits for its exit code."""

    def __init__(self, agent: ScriptedAgent, options: HeadlessOptions) -> None:
        self.agent = agent
        self.code: int | None = None
        self._options = options
        self._tasks = asyncio.TaskGroup()
        (self._stdin, self._to), (self._from, self._stdout), (self._errors, self._stderr) = (os.pipe() for _ in "123")
        self._open = {self._stdin, self._to, self._stdout, self._stderr}
        self.output, self.errors = ClosingReader(self._from), ClosingReader(self._errors)

    async def __aenter__(self) -> "Program":
        self.output.start()
        self.errors.start()
        await self._tasks.__aenter__()
        self.task = self._tasks.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_input()
        if error is not None:
            self.task.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            for descriptor in list(self._open):
                self._close(descriptor)

    async def _run(self) -> None:
        streams = StandardStreams(self._stdin, self._stdout, self._stderr)
        try:
            self.code = await run_headless(bench_of(self.agent), self._options, streams=streams)
        finally:
            self._close(self._stdout)
            self._close(self._stderr)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def send(self, *orders: dict[str, Any] | str | bytes) -> None:
        """Write the commands, one a line."""
        for order in orders:
            line = json.dumps(order) if isinstance(order, dict) else order
            os.write(self._to, (line.encode() if isinstance(line, str) else line) + b"\n")

    def end_input(self) -> None:
        """Close its input."""
        self._close(self._to)

    async def event(self, kind: str) -> dict[str, Any]:
        """Return the next event of this type in its stream; skip others."""
        while (line := await self.next_line(self.output)) is not None:
            event = json.loads(line)
            if event["type"] == kind:
                return event
        raise AssertionError(f"the stream ended before {kind}")

    async def rest(self) -> list[bytes]:
        """Return the rest of its output."""
        return await self._all(self.output)

    async def complaints(self) -> str:
        """Return the rest of its standard error."""
        return "\n".join(line.decode() for line in await self._all(self.errors))

    async def _all(self, lines: LineReader) -> list[bytes]:
        found: list[bytes] = []
        while (line := await self.next_line(lines)) is not None:
            found.append(bytes(line))
        return found

    async def next_line(self, lines: LineReader) -> bytes | None:
        async with asyncio.timeout(60):
            return await lines.next()


async def headless(
    options: HeadlessOptions, *parts: Part, lines: tuple[dict[str, Any] | str | bytes, ...] = ()
) -> tuple[int | None, list[bytes], str, ScriptedAgent]:
    """Run a program with a fixed input; return its exit code, output lines, standard error, and the agent."""
    agent = ScriptedAgent(*parts)
    async with Program(agent, options) as program:
        program.send(*lines)
        program.end_input()
        output, complaints = await program.rest(), await program.complaints()
    return program.code, output, complaints, agent
