"""Commands to a headless agent, one JSON object a line, and the listener that writes the events of the bus."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, assert_never

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tui_agent.protocol.bus import Subscription
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError, SessionError, TuiAgentError
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, RunEnded, SessionSaved, SessionSaveFailed
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.pipes import InputLine, LineReader, PipeWriter
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.visible_text import escaped

from .exit_codes import ExitCode, UnansweredApprovals, code_of
from .reporters import DELTAS, Reporter

if TYPE_CHECKING:
    from tui_agent.workbench.workbench import Workbench


class _Command(BaseModel):
    # Built at the first use: print mode without commands does not pay for the schemas.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class UserCommand(_Command):
    """Start a run or, during a run, steer it."""

    type: Literal["user"]
    text: str = Field(pattern=r"\S")


class FollowUpCommand(_Command):
    """Queue a turn after the current one; without a run, start one."""

    type: Literal["follow_up"]
    text: str = Field(pattern=r"\S")


class ApprovalCommand(_Command):
    """Answer the request for approval with this id."""

    type: Literal["approval"]
    request_id: str
    decision: Literal["approve", "deny", "skip"]
    scope: Literal["once", "session", "project"] = "once"
    note: str = ""
    input: JsonObject | None = None
    """Changed arguments, the values of a form or question, or the changes to keep: `{"paths":["src/a.py"]}`."""
    by: Literal["user", "nobody"] = "user"
    """`nobody` denies because no one can answer: what a rule or the mode keeps of a command's changes is then kept."""

    @property
    def answer(self) -> ApprovalDecision:
        """The decision for the agent.

        For `deny` and `skip`, `scope` and `input` are ignored: clients may send them with every decision.
        """
        if self.decision != "approve":
            return ApprovalDecision(decision=self.decision, note=self.note)
        return ApprovalDecision(decision=self.decision, scope=self.scope, note=self.note, input=self.input)


class InterruptCommand(_Command):
    """End the run now; another run may follow."""

    type: Literal["interrupt"]


class StopCommand(_Command):
    """End the run after this step; another run may follow."""

    type: Literal["stop"]


class PauseCommand(_Command):
    """Send no request to the model for a time, because of a rate limit that another agent met."""

    type: Literal["pause"]
    seconds: float = Field(gt=0, le=3600, allow_inf_nan=False)


class ModeCommand(_Command):
    """Change the permission mode."""

    type: Literal["mode"]
    mode: PermissionMode


class FolderCommand(_Command):
    """Let a folder count as part of the workspace for this session."""

    type: Literal["add_dir"]
    path: str = Field(min_length=1)


InputCommand: TypeAlias = (
    UserCommand
    | FollowUpCommand
    | ApprovalCommand
    | InterruptCommand
    | StopCommand
    | PauseCommand
    | ModeCommand
    | FolderCommand
)

_ADAPTER: TypeAdapter[InputCommand] = TypeAdapter(
    Annotated[InputCommand, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def parse_command(line: bytes) -> InputCommand:
    """Parse one line.

    Raises:
        ConfigurationError: the line is not a valid command; the text has the reason.
    """
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError as error:
        raise ConfigurationError(_in_words(error)) from error


def _in_words(error: ValidationError) -> str:
    """Return the first three errors with their fields, without the input."""
    complaints: list[str] = []
    # Without the input, which may be long, or a secret.
    for complaint in error.errors(include_url=False, include_input=False)[:3]:
        place = ".".join(str(part) for part in complaint["loc"][1:])
        words = complaint["msg"].removeprefix("Value error, ")
        complaints.append(f"{place}: {words}" if place else words)
    return "; ".join(complaints)


def _selection_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


class PromptQueue:
    """Queue of prompts, each for a run of its own."""

    def __init__(self) -> None:
        self._prompts: deque[str] = deque()
        self._closed = False
        self._changed = asyncio.Event()
        self._begun = asyncio.Event()

    def put(self, prompt: str) -> None:
        """Queue a prompt."""
        self._prompts.append(prompt)
        self._begun.clear()
        self._changed.set()

    def close(self, *, discard: bool = False) -> None:
        """End `next` after the queued prompts; with `discard`, remove these, too."""
        self._closed = True
        if discard:
            self._prompts.clear()
        self._changed.set()

    async def next(self) -> str | None:
        """Wait for the next prompt and return it; None once the queue is closed and empty."""
        while not self._prompts and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        return self._prompts.popleft() if self._prompts else None

    def mark_started(self) -> None:
        """Mark the run of the prompt returned last as started."""
        self._begun.set()

    async def begun(self) -> None:
        """Wait until a run has started since the last `put`: its own, if no other prompt waited."""
        await self._begun.wait()


class CommandHandler:
    """Executes commands one after another, until the input ends."""

    def __init__(self, bench: "Workbench", prompts: PromptQueue, complain: Callable[[str, int], None]) -> None:
        """
        Args:
            complain: called with an error message for an invalid command and the number of its line, from 1.
        """
        self._bench = bench
        self._agent = bench.agent
        self._prompts = prompts
        self._complain = complain

    async def serve(self, lines: LineReader) -> None:
        """Execute every line; report and skip invalid ones."""
        number = 0
        while (line := await lines.next()) is not None:
            number += 1
            if line.strip():
                await self._handle_line(line, number)

    async def _handle_line(self, line: InputLine, number: int) -> None:
        try:
            if line.too_long:
                raise ConfigurationError(f"it is longer than {len(line)} bytes")
            # A client on Windows may begin its text with a byte order mark.
            await self._handle_command(parse_command(line.removeprefix(b"\xef\xbb\xbf")))
        except TuiAgentError as error:
            self._complain(f"Line {number} of the input was skipped: {error}", number)

    async def _handle_command(self, order: InputCommand) -> None:
        match order:
            case UserCommand(text=text):
                if self._agent.running:
                    self._bench.prompts.steer(text)
                else:
                    await self._start(text)
            case FollowUpCommand(text=text):
                if self._agent.running:
                    self._bench.prompts.follow_up(text)
                else:
                    await self._start(text)
            case ApprovalCommand(request_id=request_id):
                self._check_input(order)
                if not self._agent.resolve_approval(request_id, order.answer, by=order.by):
                    raise ConfigurationError(f"no open request for approval has the id {request_id!r}")
            case InterruptCommand():
                if self._agent.running:
                    self._agent.abort("interrupted by the client")
            case StopCommand():
                if self._agent.running:
                    self._agent.stop()
            case PauseCommand(seconds=seconds):
                self._agent.delay_requests(seconds)
            case ModeCommand(mode=mode):
                self._agent.set_mode(mode, "user")
            case FolderCommand(path=path):
                await self._bench.folders.add(path)
            case _:
                assert_never(order)

    def _check_input(self, order: ApprovalCommand) -> None:
        """Check the values for a form of a tool server, and the part of changes to keep, so that a wrong answer leaves
        the question open.
        """
        if order.decision != "approve":
            return
        # The gate takes any answer as the last word, so that it is checked before.
        for request in self._agent.pending_calls:
            if request.request_id != order.request_id:
                continue
            if request.changes is not None and order.input is not None:
                try:
                    request.changes.selection(order.input)
                except ValueError as error:
                    raise ConfigurationError(f"the changes to keep: {_selection_problem(error)}") from error
            if request.question is not None:
                try:
                    request.question.content(order.input or {})
                except ValueError as error:
                    whose = f"the form of {request.question.server}" if request.question.server else "the answer"
                    raise ConfigurationError(f"{whose}: {error}") from error

    async def _start(self, text: str) -> None:
        """Queue a prompt and wait until its run starts, so that the next command finds it running."""
        self._prompts.put(text)
        await self._prompts.begun()


PACE = 0.02
"""Seconds for which deltas are collected before they are written."""

INPUT_ENDED = "the input has ended, so no one can approve; the call was denied."


class Listener:
    """Writes the events of a subscription until it is closed. Each event is saved before it is written, so that a
    reader sees nothing that a killed program would forget."""

    def __init__(
        self,
        bench: "Workbench",
        heard: Subscription,
        reporter: Reporter,
        output: PipeWriter,
        errors: PipeWriter,
        *,
        answers: bool,
    ) -> None:
        """
        Args:
            bench: the session, whose calls are denied if no one can answer.
            heard: all events of the bus, from the first on.
            answers: True if a client reads requests for approval and can answer them.
        """
        self.code = ExitCode.DONE
        """Exit code of the last run."""
        self.is_unsaved = False
        """True if the newest events could not be saved."""
        self._bench = bench
        self._heard = heard
        self._reporter = reporter
        self._output = output
        self._errors = errors
        self._answers = answers
        self._waiting: set[str] = set()
        self._questions = UnansweredApprovals()

    async def listen(self) -> None:
        """Write all events until the subscription is closed. Waits for a slow reader."""
        async for batch in self._heard.batches(pace=PACE):
            for envelope in batch:
                # First, so that a request that no one can answer is denied however slow the reader is.
                self._take_note(envelope)
            # A lost delta costs nothing: the message that follows has its text.
            if any(envelope.type not in DELTAS for envelope in batch):
                await self._save()
            for envelope in batch:
                self._write(envelope)
            await self._output.room()

    def say(self, note: str) -> None:
        """Write a note to standard error."""
        if note:
            self._errors.put(f"tui-agent: {escaped(note)}\n".encode("utf-8", "replace"))

    def sum_up(self, report: AgentRunReport, code: ExitCode) -> None:
        """Write the output for the end of a run."""
        self._output.put(self._reporter.render_report(report, code))

    def deny_approvals(self) -> None:
        """Deny every request for approval from now on, open ones included."""
        self._answers = False
        for request_id in sorted(self._waiting):
            self._deny(request_id)

    def _take_note(self, envelope: Envelope) -> None:
        """React to an event before it is saved and written."""
        self._questions.apply(envelope)
        match envelope.event:
            case ApprovalRequested(request_id=request_id):
                self._waiting.add(request_id)
                if not self._answers:
                    self._deny(request_id)
            case ApprovalResolved(request_id=request_id):
                self._waiting.discard(request_id)
            case SessionSaveFailed() | SessionSaved():
                self.is_unsaved = isinstance(envelope.event, SessionSaveFailed)
            # A sub-agent that fails does not decide the exit code.
            case RunEnded(report=AgentRunReport() as report) if not envelope.origin.depth:
                self.code = code_of(report, stuck=self._questions.stuck)
            case _:
                pass

    def _write(self, envelope: Envelope) -> None:
        self._output.put(self._reporter.render(envelope))
        self.say(self._reporter.note(envelope))
        if isinstance(envelope.event, RunEnded) and envelope.event.report and not envelope.origin.depth:
            self.sum_up(envelope.event.report, self.code)
            self.say(self._reporter.report_note(envelope.event.report, self.code))

    def _deny(self, request_id: str) -> None:
        self._bench.agent.resolve_approval(request_id, ApprovalDecision(decision="deny", note=INPUT_ENDED), by="nobody")

    async def _save(self) -> None:
        """Wait until all events are saved. A failure is ignored here: the journal's writer publishes it, and the
        conversation continues."""
        if self._bench.save is not None:
            with suppress(SessionError):
                await self._bench.save()
