"""Programs that run beside the calls, such as tool servers: marked, so that all of their processes can be ended."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from .command_launcher import wrap_argv
from .orphans import call_running, enter_background, led_by
from .process_tree import TreeMark, end_tree

GRACE = 0.5
"""Seconds between TERM and KILL for what the program left running."""


class HelperTree:
    """One program and everything it starts, also in other sessions."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._mark = TreeMark.new()
        self._registered = ExitStack()

    def prepare(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the command line and the environment that mark the program; it dies with this one. Blocks."""
        self._registered.enter_context(call_running(self._mark.limit))
        enter_background(self._mark.limit)
        return wrap_argv(argv, self._mark, self._workspace), self._mark.put_into(environment)

    def started(self, pid: int) -> None:
        """Name the first process, which leads a session."""
        led_by(self._mark.limit, pid)

    def end(self, pid: int | None) -> tuple[str, ...]:
        """End everything that still runs; return names and ids. Blocks.

        Args:
            pid: the first process; None: it could not be started.
        """
        with self._registered:
            return end_tree(pid, self._mark, grace=GRACE) if pid is not None else ()
