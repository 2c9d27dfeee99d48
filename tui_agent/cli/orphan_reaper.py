"""Adoption of orphans while an engine exists: those that outlive their call are ended, and zombies are reaped."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial

import psutil

from tui_agent.tools.orphans import become_subreaper, own_children, resign_as_subreaper, unclaimed_orphans
from tui_agent.tools.process import GRACE
from tui_agent.tools.process_tree import TreeMark, end_tree
from tui_agent.tools.shielded_thread import run_shielded_in_thread

_PAUSE = 0.5
"""Seconds between two checks for zombies."""
_CHECKS_BEFORE_REAP = 3
"""Checks after which a zombie counts as an orphan. If this program started the child, a thread collects its exit status
at once; reaping it here would lose that status."""


@asynccontextmanager
async def adopt_orphans() -> AsyncGenerator[None]:
    """While this is open, orphans become children of this program; those that are left are ended when it closes."""
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
        self._looks: dict[int, int] = {}

    def schedule_check(self) -> None:
        """Check for zombies after a pause, which gives those who wait for a child the time to reap it."""
        if self._timer is None:
            self._timer = self._loop.call_later(_PAUSE, self._look)

    def close(self) -> None:
        """Stop checking."""
        self._loop.remove_signal_handler(signal.SIGCHLD)
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        self._looks = {pid: self._looks.get(pid, 0) + 1 for pid in own_children() if _is_zombie(pid)}
        for pid, looks in self._looks.items():
            if looks >= _CHECKS_BEFORE_REAP:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        if self._looks:
            self.schedule_check()


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
