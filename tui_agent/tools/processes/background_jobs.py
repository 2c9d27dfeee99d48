"""Commands that continue after their calls, and the running calls that can still be sent to the background.

Each command runs in a task of the session. Its call waits for it, or returns without it; the command itself does not
notice. When the session ends, so do its commands.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from tui_agent.protocol.activity_events import ENDED_WITH_SESSION
from tui_agent.protocol.background import run_service
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import AgentEvent, BackgroundEnded, BackgroundOutput, BackgroundStarted
from tui_agent.protocol.tool import ToolContext

from .captured_output import Captured, CapturedOutput, LiveOutput
from .orphans import enter_background
from .process import ProcessOutcome, Release
from .process_tree import TreeMark

KIND = "bash"
"""Kind of all jobs in `background.*` events, and prefix of their ids."""

MOST_JOBS = 16
"""Most commands in the background at the same time."""

MOST_REMEMBERED = 64
"""Most ended ones whose output can still be read."""

PUBLISHED_OUTPUT = 64 * 1024
"""Most characters of one job's output in events: the journal keeps them, and a server may run for days."""

KILLED = "killed"
"""Status of a job that the user or the model ended."""

_NOT_OPEN = "Background commands are not available here."

Work = Callable[["Job"], Awaitable[ProcessOutcome]]
"""Runs the command of a job until its token is set or it ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of a command that others wait for."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its process runs, or could not be started."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its call need not wait: it has ended, or was sent to the background."""
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its shell has ended, whatever it has left running."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it has ended."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its call has ended without it, so that its end may be reported."""


@dataclass(slots=True, eq=False)
class Job:
    """One command, waited for by its call or in the background."""

    call_id: str
    agent: str
    """The agent that made the call."""
    command: str
    output: CapturedOutput
    live: LiveOutput
    """Passes its output on: to its call, then as events."""
    token: CancellationToken = field(default_factory=CancellationToken)
    """Ends the command when cancelled."""
    mark: TreeMark = field(default_factory=TreeMark.new)
    """Mark of everything it starts."""
    task_id: str = ""
    """Its id once it is in the background; empty before."""
    began: float = field(default_factory=time.monotonic)
    """Time of its start on the monotonic clock."""
    outcome: ProcessOutcome | None = None
    """None while it runs, and if it could not be run."""
    error: OSError | ToolError | None = None
    """The reason why it could not be run."""
    ended_by: str = ""
    """The party that ended it on purpose: `session`, `model` or `user`; empty if none did."""
    needs_terminal: bool = False
    """True if it was ended because it drew a screen and waited for keys."""
    was_sent: bool = False
    """True if the user sent it to the background, which lifts its time limit."""
    before: Captured | None = None
    """Its output until it was in the background."""
    at_end: Callable[[], Awaitable[str]] | None = None
    """Called when it ended in the background; returns what the model has to know about its effects."""
    readers: int = 0
    """Calls that wait for its end and report it."""
    moments: Moments = field(default_factory=Moments)
    release: Release | None = None
    """Lets it run on when the program ends; None: that is impossible."""
    left: ProcessOutcome | None = None
    """Its end, if it has left processes running, which `ended` names; None as long as it runs itself."""

    @property
    def status(self) -> str:
        """`running`, or how it ended, as in `background.ended`."""
        if not self.moments.over.is_set():
            return "running"
        if self.outcome is None:
            return "failed"
        if self.outcome.ending == "exited":
            return "exited"
        if self.outcome.ending == "let go":
            return "detached"
        if self.outcome.ending == "timeout":
            return "timeout"
        return ENDED_WITH_SESSION if self.ended_by == "session" else KILLED

    @property
    def code(self) -> int | None:
        """Exit code of a command that ended by itself, negative for a signal; None while it runs or if it was ended."""
        return self.outcome.returncode if self.outcome is not None and self.outcome.ending == "exited" else None

    @property
    def words(self) -> str:
        """Its state in words, for the model and the user."""
        match self.status:
            case "running":
                return "is running" if self.left is None else f"{_end(self.left)} and left running: {self.names_left}"
            case "exited" if self.left is not None:
                return "has ended with everything it had left running"
            case "exited":
                return _end(self.outcome)
            case "timeout":
                return "was stopped after its time limit"
            case "detached":
                pid = self.release.pid if self.release is not None else 0
                return f"was detached by the user and runs on without tui-agent (pid {pid}, output in {self.file})"
            case "failed":
                return f"could not be run: {self.error}"
            case _:
                by = {"session": " with the session", "user": " by the user"}
                return f"was stopped{by.get(self.ended_by, '')}"

    @property
    def names_left(self) -> str:
        """Names and ids of the processes that it left running when it ended."""
        return ", ".join(self.left.ended) if self.left is not None else ""

    @property
    def file(self) -> Path | None:
        """File with the whole output; None while the output is short, or if it could not be saved."""
        return self.output.peek().path

    @property
    def elapsed(self) -> float:
        """Seconds it has run."""
        if self.moments.over.is_set():
            return self.outcome.seconds if self.outcome is not None else 0.0
        return time.monotonic() - self.began

    @property
    def is_in_background(self) -> bool:
        """True if it runs without its call."""
        return bool(self.task_id) and not self.moments.over.is_set()


class BackgroundJobs:
    """The commands of one session. A context manager: none of them outlives it."""

    def __init__(
        self,
        publish: Callable[[AgentEvent], object] | None = None,
        *,
        first_number: int = 1,
    ) -> None:
        """
        Args:
            first_number: number in the id of the first job.
        """
        self._publish = publish or _ignore
        self.notify: Callable[[str, str], object] = _ignore
        """Called with an agent and a text that its model must read at the next boundary."""
        self.variables: dict[str, str] = {}
        """Variables that commands get beside the environment; hooks of the session's start may set them."""
        self.in_trial: set[str] = set()
        """Calls whose commands run in a trial, which ends with the call."""
        self._number = first_number
        self._group = asyncio.TaskGroup()
        self._is_open = False
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._late_work: set[asyncio.Task[None]] = set()
        self._at_call: dict[str, Job] = {}
        """Commands that their calls wait for, by call."""
        self._jobs: dict[str, Job] = {}
        """Background commands by id, those that ended included."""

    async def __aenter__(self) -> "BackgroundJobs":
        await self._group.__aenter__()
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        self._end_all()
        # Without the error, for which the group would cancel the very tasks that end the commands.
        await self._group.__aexit__(None, None, None)

    @property
    def is_open(self) -> bool:
        """True until the session ends."""
        return self._is_open

    @property
    def all(self) -> tuple[Job, ...]:
        """Every background command of this session, the oldest first."""
        return tuple(self._jobs.values())

    @property
    def running(self) -> tuple[Job, ...]:
        """Those that run."""
        return tuple(job for job in self._jobs.values() if job.is_in_background)

    def publish(self, event: AgentEvent) -> None:
        """Publish an event of the session."""
        self._publish(event)

    def find(self, task_id: str) -> Job:
        """Return a job by its id.

        Raises:
            ToolError: no job has this id.
        """
        job = self._jobs.get(task_id)
        if job is None:
            known = ", ".join(job.task_id for job in self.running) or "none"
            raise ToolError(f"No background command is called {task_id!r}. Running: {known}.")
        return job

    def check_room(self) -> None:
        """Check that one more command may run in the background.

        Raises:
            ToolError: there are as many as there may be, or the session has ended.
        """
        if not self._is_open:
            raise ToolError(_NOT_OPEN)
        if len(self.running) >= MOST_JOBS:
            names = ", ".join(job.task_id for job in self.running)
            raise ToolError(f"{MOST_JOBS} commands run in the background already ({names}). kill_bash ends one.")

    def launch(self, command: str, output: CapturedOutput, work: Work, context: ToolContext) -> Job:
        """Start the command of a call in a task of the session, and return its job.

        Raises:
            ToolError: the session has ended.
        """
        if not self._is_open:
            raise ToolError(_NOT_OPEN)
        live = LiveOutput(output, lambda chunk, total: context.output(chunk, bytes_total=total))
        mark = TreeMark(context.mark) if context.mark else TreeMark.new()
        job = Job(context.call_id, context.agent, command, output, live, mark=mark)
        self._at_call[job.call_id] = job
        task = self._tasks[job] = self._group.create_task(self._run(job, work))
        task.add_done_callback(lambda _: self._tasks.pop(job))
        return job

    def finish_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Finish the work of a call that ends now; `settled` and the end of the session wait for it."""
        task = self._group.create_task(work)
        self._late_work.add(task)
        task.add_done_callback(self._late_work.discard)

    async def settled(self) -> None:
        """Wait until the effects of all calls that have ended are published."""
        while self._late_work:
            # Another call may have ended meanwhile.
            await asyncio.wait(tuple(self._late_work))

    async def wait_for(self, job: Job, cancellation: CancellationToken, until: asyncio.Event) -> None:
        """Wait until an event of a job; the token, and cancelling this task, end the command.

        Raises:
            CancelledError: the task was cancelled; the command has ended.
        """
        forget = cancellation.on_cancel(lambda: job.token.cancel(cancellation.reason))
        try:
            await until.wait()
        except asyncio.CancelledError:
            job.token.cancel("the call was cancelled")
            # However often the task is cancelled: no call ends before its command.
            while not job.moments.over.is_set():
                with suppress(asyncio.CancelledError):
                    await job.moments.over.wait()
            raise
        finally:
            forget()

    def send(self, call_id: str) -> Job | None:
        """Send the command of a running call to the background; None if it does not run (yet) or is not a command.

        Raises:
            ToolError: it runs in a trial, too many commands are there already, or the session has ended.
        """
        if call_id in self.in_trial:
            raise ToolError("This command runs in a trial. Only one that runs outside can be sent to the background.")
        job = self._at_call.get(call_id)
        if job is None or job.moments.over.is_set() or not job.moments.started.is_set():
            return None
        self.put(job)
        job.was_sent = True
        return job

    def put(self, job: Job) -> None:
        """Give a job an id: from now on it runs in the background.

        Raises:
            ToolError: too many commands are there already, or the session has ended.
        """
        self.check_room()
        self._at_call.pop(job.call_id, None)
        enter_background(job.mark.limit)
        job.task_id, self._number = f"{KIND}_{self._number}", self._number + 1
        self._forget_oldest()
        self._jobs[job.task_id] = job
        self._publish(BackgroundStarted(task_id=job.task_id, kind=KIND, command=job.command))
        job.live.close()
        # From here on its output is published and read apart from what the call has shown.
        job.before = job.output.keep_unread()
        # No one waits for it any more: once a second is enough for the screen.
        job.live = LiveOutput(job.output, partial(self._pass_on, job, [PUBLISHED_OUTPUT]), interval=1.0)
        job.moments.settled.set()

    def keep_left(self, job: Job, outcome: ProcessOutcome) -> bool:
        """Let run on what a command has left running, as a background command; return False if that is impossible."""
        is_known = bool(job.task_id)
        if not self._is_open or job.token.is_set():
            return False
        if not is_known:
            try:
                self.check_room()
            except ToolError:
                return False
        job.left = outcome
        job.moments.exited.set()
        if not is_known:
            self.put(job)
        elif job.moments.left.is_set() and not job.readers:
            self.notify(job.agent, f"The background command {job.task_id} (`{shortened(job.command)}`) {job.words}.")
        return True

    def kill(self, task_id: str, *, by: str) -> Job:
        """Begin to end a job with everything it started, and return it; `moments.over` is set when that is done.

        Args:
            by: `user` or `model`.

        Raises:
            ToolError: no job has this id.
        """
        job = self.find(task_id)
        if not job.moments.over.is_set():
            job.ended_by = job.ended_by or by
            job.token.cancel("the background command was stopped")
        return job

    async def detach(self, task_id: str) -> Job:
        """Let a job run on when the program ends, and return it; it is not a job of this session any more.

        Raises:
            ToolError: no job has this id, it has ended, or it cannot be let go.
        """
        job = self.find(task_id)
        if job.moments.over.is_set():
            raise ToolError(f"{task_id} {job.words} already.")
        if job.release is None:
            raise ToolError(
                f"{task_id} cannot be detached: only a command that the model started with run_in_background, and "
                "outside the sandbox, can outlive tui-agent."
            )
        job.release.problem = ""
        # A first try that failed has set it.
        job.release.answered.clear()
        job.release.wanted.set()
        await job.release.answered.wait()
        if job.release.problem:
            raise ToolError(f"{task_id} cannot be detached, and runs on as before: {job.release.problem}.")
        await job.moments.over.wait()
        return job

    async def end_all(self) -> tuple[Job, ...]:
        """End every command because the session ends, wait for that, and return those that ran in the background."""
        ending = self.running
        self._end_all()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        return ending

    def _end_all(self) -> None:
        for job in (*self.running, *self._at_call.values()):
            job.ended_by = job.ended_by or "session"
            job.token.cancel("the session ended")

    async def _run(self, job: Job, work: Work) -> None:
        """Run one job to its end, and report the end if its call does not."""
        try:
            job.outcome = await run_service("a command", self._attempt(job, work))
        finally:
            if job.outcome is None and job.error is None:
                job.error = ToolError("tui-agent failed while it ran the command; the log says why")
            self._at_call.pop(job.call_id, None)
            job.live.close()
            if job.task_id:
                job.output.close()
            job.moments.exited.set()
            job.moments.over.set()
            if job.release is not None:
                job.release.answered.set()
            # Set last, so that a task which waits for these two finds that it is over.
            job.moments.started.set()
            job.moments.settled.set()
        if job.task_id:
            await self._report_end(job)

    async def _attempt(self, job: Job, work: Work) -> ProcessOutcome | None:
        try:
            return await work(job)
        except (OSError, ToolError) as error:
            job.error = error
            return None

    async def _report_end(self, job: Job) -> None:
        await job.moments.left.wait()
        effects = await run_service("the end of a command", job.at_end()) if job.at_end is not None else None
        self._publish(BackgroundEnded(task_id=job.task_id, kind=KIND, status=job.status, code=job.code))
        if job.ended_by == "session" or ((job.readers or job.ended_by == "model") and not effects):
            return  # The model knows, or no one reads any more.
        text = f"The background command {job.task_id} (`{shortened(job.command)}`) {job.words}."
        output = "" if job.status == "detached" else "bash_output has its output."
        self.notify(job.agent, " ".join(filter(None, (text, output, effects))))

    def _pass_on(self, job: Job, room: list[int], chunk: str, _total: int) -> None:
        """Publish a piece of output while there is room for it."""
        if room[0] <= 0:
            return
        room[0] -= len(chunk)
        if room[0] <= 0:
            chunk = f"{chunk[: len(chunk) + room[0]]}\n[… later output is not published …]\n"
        self._publish(BackgroundOutput(task_id=job.task_id, kind=KIND, chunk=chunk))

    def _forget_oldest(self) -> None:
        """Forget the oldest ended jobs beyond those that are remembered."""
        ended = [task_id for task_id, job in self._jobs.items() if job.moments.over.is_set()]
        for task_id in ended[: max(0, len(ended) - MOST_REMEMBERED)]:
            del self._jobs[task_id]


def shortened(command: str, limit: int = 80) -> str:
    """Return a command in one line of at most `limit` characters, with `…` for a cut."""
    line = " ".join(command.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _end(outcome: ProcessOutcome | None) -> str:
    code = (outcome.returncode or 0) if outcome is not None else 0
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _ignore(*_: object) -> None:
    """Do nothing, without a session."""
