"""One session of an editor: prompts run one after another, or steer the run that is in progress."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from acp import RequestError
from acp.helpers import update_available_commands
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    ConfigOptionUpdate,
    PromptResponse,
    StopReason,
    UnstructuredCommandInput,
    Usage,
)

from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import SessionError, TuiAgentError
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Failed,
    McpStatus,
    MessageEnded,
    PermissionModeChanged,
    RunStarted,
)
from tui_agent.protocol.messages import AssistantMessage
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.server_entries import ToolServer

from .editor_client import EditorClient, PermissionQuestions
from .editor_host import EditorBench, accepted_servers, config_options
from .prompt_reader import Prompt, PromptBlock, PromptReader
from .rpc_transport import INTERNAL_ERROR, NO_KEY
from .session_updates import SessionUpdates, note_of, note_update

PACE = 0.05
"""Seconds for which deltas are collected before they are sent."""
RUN_END_TIMEOUT = 4.0
"""Seconds that a run gets to end when its session is closed."""
CANCELLED = "cancelled by the user"
MOST_NOTES = 50
"""Notes that are kept until the next prompt."""


@dataclass(eq=False, slots=True)
class _Turn:
    """A prompt that waits for its answer."""

    prompt: Prompt | None = None
    steering_id: str | None = None
    """Id of the message in the agent's queue; None if the prompt has a run of its own."""
    answer: asyncio.Future[PromptResponse] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def resolve(self, outcome: PromptResponse | RequestError) -> None:
        if self.answer.done():
            return
        if isinstance(outcome, RequestError):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


class EditorSession:
    """One session with its engine. All methods but `serve` may be called while it serves."""

    def __init__(self, opened: EditorBench, client: EditorClient, cwd: Path, closed: asyncio.Event) -> None:
        """
        Args:
            closed: set once the session is closed and can be opened again.
        """
        self.id = opened.bench.events.origin.session_id
        self.opened = opened
        self.closed = closed
        self._client = client
        self._loop = opened.bench.agent
        self._servers: dict[str, ToolServer] = {}
        self._updates = SessionUpdates(cwd, terminals=client.shows_terminals)
        self._reader = PromptReader(cwd, opened)
        self._queue: asyncio.Queue[_Turn | None] = asyncio.Queue()
        self._turns: list[_Turn] = []
        """All prompts without an answer, in order."""
        self._admission = asyncio.Lock()
        self._questions: PermissionQuestions | None = None
        # Now: what the engine says before the first prompt waits here until the client knows the session.
        self._subscription = opened.bench.events.subscribe(since=0)
        self._notes: list[str] = []
        self._failures: list[str] = []
        self._note_count = 0
        self._commands: list[AvailableCommand] = []
        self._running: _Turn | None = None
        self._is_cancelled = False
        self._server_scope: asyncio.Timeout | None = None
        """Ends the question about tool servers, if it is open."""
        self._last_stop: str | None = None
        """Reason why the model stopped last."""
        self._announced, self._closing = asyncio.Event(), asyncio.Event()

    # --- for the editor -----------------------------------------------------------------------------------------------

    def offer(self, servers: dict[str, ToolServer], problems: Sequence[str]) -> None:
        """Ask about these tool servers of the editor with the first prompt, and report those that cannot be used."""
        self._servers = servers
        self._notes += problems

    async def replay(self) -> None:
        """Send the conversation so far."""
        for update in self._updates.replay(self.opened.past):
            self._client.update(self.id, update)
            await self._client.room()

    def announce(self) -> None:
        """Begin to send updates. Called once the editor knows the session's id."""
        self._announced.set()

    async def prompt(self, blocks: Sequence[PromptBlock]) -> PromptResponse:
        """Run a prompt to its end; if a run is in progress, steer it.

        Raises:
            RequestError: the prompt cannot be used, or the run failed.
        """
        if self._closing.is_set():
            raise RequestError(INTERNAL_ERROR, "the session is being closed")
        turn = _Turn()
        self._turns.append(turn)
        try:
            # One after another: reading a file takes time, and prompts keep their order.
            async with self._admission:
                await self._admit(turn, blocks)
            return await turn.answer
        finally:
            self._turns.remove(turn)

    def cancel(self) -> None:
        """End the run now, and answer every prompt as cancelled; the running ones once the run has ended."""
        if not self._turns:
            return
        # Without a run there is nothing that a later run would have to know.
        self._is_cancelled = self._running is not None
        if self._loop.running:
            self._loop.abort(CANCELLED)
        for turn in self._turns:
            if turn.steering_id is not None:
                # An editor does not show what is queued, so it would surprise the next turn.
                self._loop.drop_message(turn.steering_id)
            elif turn is not self._running:
                turn.resolve(PromptResponse(stop_reason="cancelled"))
        self._end_server_question()

    def close(self) -> None:
        """End the run, and the session."""
        self._closing.set()

    @property
    def is_busy(self) -> bool:
        """True if a prompt has no answer yet."""
        return bool(self._turns)

    # --- the session --------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run prompts until the session is closed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._questions = PermissionQuestions(self.id, self._client, self.opened.bench, tasks)
                tasks.create_task(self._relay())
                runs = tasks.create_task(self._run_turns())
                await self._closing.wait()
                self._questions.close()
                self._end_server_question()
                self._queue.put_nowait(None)
                if self._loop.running:
                    self._loop.abort(PROGRAM_QUIT)
                await asyncio.wait((runs,), timeout=RUN_END_TIMEOUT)
                runs.cancel()
                self._announced.set()
                self._subscription.close()
        finally:
            left = PromptResponse(stop_reason="cancelled")
            for turn in self._turns:
                turn.resolve(
                    left if self._closing.is_set() else RequestError(INTERNAL_ERROR, "the session failed; see the log")
                )

    async def _relay(self) -> None:
        """Send what the engine publishes."""
        await self._announced.wait()
        self._announce_commands()
        async for batch in self._subscription.batches(pace=PACE):
            for envelope in batch:
                self._apply(envelope)
            await self._client.room()

    def _apply(self, envelope: Envelope) -> None:
        event = envelope.event
        for update in self._updates.apply(envelope):
            self._client.update(self.id, update)
        match event:
            case ApprovalRequested() if self._questions is not None:
                lines = self.opened.describe(event)
                self._questions.ask(event, self._updates.calls.question(envelope, event, lines))
            case ApprovalResolved(request_id=request_id) if self._questions is not None:
                self._questions.withdraw(request_id)
            case RunStarted() if self._is_cancelled and not envelope.origin.depth:
                self._loop.abort(CANCELLED)  # The cancel came before the run began.
            case MessageEnded(message=AssistantMessage(), stop_reason=stop) if not envelope.origin.depth:
                self._last_stop = stop
            case McpStatus():
                self._announce_commands()
            case PermissionModeChanged() if not envelope.origin.depth:
                self.announce_options()
            case _:
                pass
        # Held back until the end of the run, whose error may be the same.
        if isinstance(event, Failed) and self._running is not None:
            self._failures.append(event.text)
        elif text := note_of(envelope):
            self._note(text)

    def _note(self, text: str) -> None:
        """Send a note now, or with the next prompt if none has been sent: then no one would see it."""
        if self._running is None:
            self._notes = [*self._notes, text][-MOST_NOTES:]
            return
        self._note_count += 1
        self._client.update(self.id, note_update(text, self._note_count))

    def _announce_commands(self) -> None:
        """Send the `/` commands, if they changed."""
        commands = [
            AvailableCommand(
                name=one.slash,
                description=one.help,
                input=AvailableCommandInput(UnstructuredCommandInput(hint=one.argument)) if one.argument else None,
            )
            for one in self.opened.commands
        ]
        # A tool server that connects again reports the same prompts.
        if commands != self._commands:
            self._commands = commands
            self._client.update(self.id, update_available_commands(commands))

    def announce_options(self) -> None:
        """Send the values of all options."""
        options = config_options(self.opened)
        self._client.update(self.id, ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def _admit(self, turn: _Turn, blocks: Sequence[PromptBlock]) -> None:
        """Queue a prompt for a run, or for the run in progress."""
        turn.prompt = prompt = await self._reader.read(blocks)
        # It was cancelled while its files were read.
        if turn.answer.done():
            return
        defined = self.opened.bench.definitions
        if self._loop.running and self._queue.empty() and not defined.needs_own_run(prompt.text):
            # The protocol leaves a second prompt open; an error, or an answer after the first, would end steering.
            turn.steering_id = self._loop.steer(prompt.message(defined.expanded(prompt.text))).id
        else:
            self._queue.put_nowait(turn)

    async def _run_turns(self) -> None:
        while (turn := await self._queue.get()) is not None:
            if not turn.answer.done():
                await self._run_turn(turn)

    async def _run_turn(self, turn: _Turn) -> None:
        """Run a prompt, with those that steer it, and answer all of them."""
        self._running, self._is_cancelled = turn, False
        notes, self._notes = self._notes, []
        for text in notes:
            self._note(text)
        try:
            outcome = await self._outcome(turn)
            # All updates of a run come before its answer, after which an editor takes it for over.
            for envelope in self._subscription.drain():
                self._apply(envelope)
            outcome = self._finished(outcome)
            if self.opened.bench.save is not None:
                with suppress(SessionError):  # The engine has published it.
                    await self.opened.bench.save()
        finally:
            self._running = None
        turn.resolve(outcome)
        for other in self._turns:
            if other.steering_id is not None:
                self._loop.drop_message(other.steering_id)  # Left over if the run failed.
                other.resolve(outcome)

    async def _outcome(self, turn: _Turn) -> AgentRunReport | RequestError | None:
        assert turn.prompt is not None, "a queued prompt was read"
        try:
            await self._start_servers()
            if self._is_cancelled:
                return None
            report = await self.opened.bench.prompts.run_message(turn.prompt.text, turn.prompt.message)
            while report is not None and report.reason == "done" and self._has_steering and not self._is_cancelled:
                # Messages that came too late for the run.
                report = await self._loop.run(None)
        except TuiAgentError as error:
            return RequestError(INTERNAL_ERROR, str(error))
        return report

    @property
    def _has_steering(self) -> bool:
        waiting = {message.id for message in self._loop.waiting_messages}
        return any(turn.steering_id in waiting for turn in self._turns)

    async def _start_servers(self) -> None:
        """Ask about the editor's tool servers, once, and start those that the user accepts."""
        # Taken before the question, so that a second prompt does not ask again.
        servers, self._servers = self._servers, {}
        if not servers:
            return
        answer = self.opened.server_treatment
        accepted: dict[str, ToolServer] = servers if answer == "allow" else {}
        if answer == "ask":
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._server_scope:
                    accepted = await accepted_servers(self.id, self._client, servers)
            self._server_scope = None
        if self._is_cancelled:
            self._servers = servers  # Asked about with the next prompt.
            return
        if left := [name for name in servers if name not in accepted]:
            self._note(f"Not started: the tool server{'s' if len(left) > 1 else ''} {', '.join(left)} of the editor.")
        for note in await self.opened.add_servers(accepted) if accepted else ():
            self._note(note)

    def _end_server_question(self) -> None:
        if self._server_scope is not None:
            self._server_scope.reschedule(asyncio.get_running_loop().time())

    def _finished(self, outcome: AgentRunReport | RequestError | None) -> PromptResponse | RequestError:
        """Return the answer to the prompts of a run."""
        failures, self._failures = self._failures, []
        error = outcome.error if isinstance(outcome, AgentRunReport) else None
        for text in failures:
            # The answer says it already.
            if text != error:
                self._note(text)
        if self._is_cancelled or outcome is None:
            return PromptResponse(stop_reason="cancelled")
        if isinstance(outcome, RequestError):
            return outcome
        if outcome.reason == "error":
            # The code at which an editor offers its sign-in again.
            code = NO_KEY if outcome.error_kind == "authentication" else INTERNAL_ERROR
            return RequestError(code, outcome.error or "the run failed")
        return PromptResponse(stop_reason=stop_reason(outcome, self._last_stop), usage=_usage(outcome))


def stop_reason(report: AgentRunReport, model_stop: str | None) -> StopReason:
    """Return the protocol's reason for the end of a run that did not fail.

    Args:
        model_stop: the reason why the model stopped last; None without a message of it.
    """
    match report.reason:
        case "aborted":
            return "cancelled"
        case "max_steps" | "budget" | "loop_detected":
            return "max_turn_requests"
        case "guardrail" | "input_rejected":
            return "refusal"
        case _:
            pass
    if model_stop == "refusal":
        return "refusal"
    return "max_tokens" if model_stop in ("max_tokens", "model_context_window_exceeded") else "end_turn"


def _usage(report: AgentRunReport) -> Usage:
    spent = report.total_usage
    cached = spent.cache_read_tokens + spent.cache_write_tokens
    return Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cached_read_tokens=spent.cache_read_tokens,
        cached_write_tokens=spent.cache_write_tokens,
        total_tokens=spent.input_tokens + spent.output_tokens + cached,
    )
