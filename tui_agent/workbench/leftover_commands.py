"""Processes that outlive their command: orphans of this program, and commands of one that was killed."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.session.event_folds import LostProcess
from tui_agent.tools.processes.detached_commands import end_recorded, running_of
from tui_agent.tools.processes.orphans import become_subreaper, own_children, resign_as_subreaper, unclaimed_orphans
from tui_agent.tools.processes.process import GRACE
from tui_agent.tools.processes.process_tree import TreeMark, end_tree, is_zombie

if TYPE_CHECKING:
    # `tui-agent sessions` opens no session.
    from .opened_session import OpenedSession

NONE_RUNNING = "No command of an earlier tui-agent is running."
_MAX_SHOWN = 3
"""Most commands shown, and most processes of each."""
_MAX_COMMAND_LENGTH = 60
_PAUSE = 0.5
"""Seconds between two checks for zombies."""
_CHECKS_BEFORE_REAP = 3
"""Checks after which a zombie counts as an orphan. If this program started the child, a thread collects its exit status
at once; reaping it here would lose that status."""


@dataclass(frozen=True, slots=True)
class LeftoverCommand:
    """A command that is still running since tui-agent was killed."""

    lost: LostProcess
    pids: tuple[int, ...]
    """Its running processes."""

    def __str__(self) -> str:
        command = " ".join(self.lost.command.split()) or "a command"
        shown = command if len(command) <= _MAX_COMMAND_LENGTH else f"{command[: _MAX_COMMAND_LENGTH - 1]}…"
        pids = [str(pid) for pid in self.pids[:_MAX_SHOWN]]
        more = f" and {len(self.pids) - len(pids)} more" if len(self.pids) > len(pids) else ""
        return f"{shown} (pid {', '.join(pids)}{more})"


@dataclass(frozen=True)
class LeftoverCommands:
    """The leftover commands of one session."""

    lost: Sequence[LostProcess]
    bus: EventBus
    end_command: str
    """Command with which the user ends them, such as `/jobs kill`."""

    @classmethod
    async def open(cls, session: "OpenedSession", *, has_screen: bool) -> "LeftoverCommands | None":
        """Return the leftover commands of a resumed session, and warn if some are still running.

        None for a new session, and for one that is not saved.

        Args:
            has_screen: True if the warning names `/jobs kill`, False if `tui-agent sessions end-processes ID`.
        """
        stored = session.stored
        if not stored.resumed or stored.path is None:
            return None
        end = "/jobs kill" if has_screen else f"`tui-agent sessions end-processes {stored.id}`"
        leftover = cls(stored.lost_processes, session.bus, end)
        await leftover.warn()
        return leftover

    async def warn(self) -> None:
        """Publish one warning that names the commands that are still running, if any."""
        if left := await self._find_running():
            self.bus.publish(Warned(code="left_running", text=self._describe(left)))

    async def report(self) -> None:
        """Publish a notice with the commands that are still running, or that none is."""
        left = await self._find_running()
        self.bus.publish(Noticed(code="left_running", text=self._describe(left) if left else NONE_RUNNING))

    async def end(self, pid: int | None) -> None:
        """End a command with everything it started, and publish a notice with the processes, or that none is running.

        Args:
            pid: id of any of the command's processes; None: end all commands.
        """
        left = [command for command in await self._find_running() if pid is None or pid in command.pids]
        if not left:
            text = NONE_RUNNING if pid is None else f"No process {pid} of an earlier tui-agent is running."
        else:
            text = f"Ended: {', '.join(await run_shielded_in_thread(lambda: end_all(left)))}."
        self.bus.publish(Noticed(code="left_ended", text=text))

    async def _find_running(self) -> list[LeftoverCommand]:
        return await run_shielded_in_thread(lambda: find_running_commands(self.lost)) if self.lost else []

    def _describe(self, left: Sequence[LeftoverCommand]) -> str:
        shown = ", ".join(str(command) for command in left[:_MAX_SHOWN])
        more = f" and {len(left) - _MAX_SHOWN} more commands" if len(left) > _MAX_SHOWN else ""
        them = "it" if len(left) == 1 else "them"
        return f"Still running since tui-agent was killed: {shown}{more}. {self.end_command} ends {them}."


def find_running_commands(lost: Sequence[LostProcess]) -> list[LeftoverCommand]:
    """Return the commands that still have processes. Blocks."""
    found = ((process, tuple(running.pid for running in running_of(process.process))) for process in lost)
    return [LeftoverCommand(process, pids) for process, pids in found if pids]


def end_all(commands: Sequence[LeftoverCommand]) -> tuple[str, ...]:
    """End commands with everything they started; return name and id of each process. Blocks."""
    return end_recorded([command.lost.process for command in commands], grace=GRACE)


@asynccontextmanager
async def adopt_orphans() -> AsyncGenerator[None]:
    """Make orphans children of this program while the context is open; end the remaining ones when it closes."""
    if not await asyncio.to_thread(become_subreaper):
        yield
        return
    reaper = _Reaper(asyncio.get_running_loop())
    try:
        with suppress(RuntimeError, ValueError):  # Only the main thread may handle signals.
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, reaper.schedule_check)
        yield
    finally:
        try:
            mark = TreeMark.new()
            if unclaimed_orphans(mark.limit):
                await run_shielded_in_thread(partial(end_tree, None, mark, grace=GRACE))
        finally:
            reaper.close()
            resign_as_subreaper()


class _Reaper:
    """Reaps adopted orphans by their ids; `waitpid(-1)` would also take the exit status of other children."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._checks: dict[int, int] = {}
        """Number of checks that found each zombie."""

    def schedule_check(self) -> None:
        """Check for zombies after a pause, so that code that waits for a child can reap it first."""
        if self._timer is None:
            self._timer = self._loop.call_later(_PAUSE, self._check)

    def close(self) -> None:
        """Stop checking."""
        self._loop.remove_signal_handler(signal.SIGCHLD)
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._timer = None
        self._checks = {pid: self._checks.get(pid, 0) + 1 for pid in own_children() if is_zombie(pid)}
        for pid, checks in self._checks.items():
            if checks >= _CHECKS_BEFORE_REAP:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        if self._checks:
            self.schedule_check()
