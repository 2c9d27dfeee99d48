"""Messages between the driver of a fleet and its workers; plain data that pickles.

A worker that begins a unit sends `UnitClaimed` and waits. The driver answers with `UnitGranted`, which holds everything
that the unit needs at this moment: for a unit whose worker died, its journal and its last commit. So a scheduler may
start a unit again as often as it likes: it gets the present state, and a new epoch, or a refusal. Messages of an older
epoch are ignored.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.fleet_records import UnitChanges, UnitTask


@dataclass(frozen=True, slots=True)
class UnitClaimed:
    """A worker is ready to run a unit."""

    unit_id: str
    claim: str
    """Random name of this start; the answer names it."""
    worker: str
    sandboxed: bool


@dataclass(frozen=True, slots=True)
class EventsReported:
    """Events of a unit, in order."""

    unit_id: str
    epoch: int
    lines: tuple[bytes, ...]
    """Lines of stream-json without line feeds: facts and, merged or left out under load, deltas."""


@dataclass(frozen=True, slots=True)
class CommitReported:
    """State of the worktree, with the events that were held back until it was saved.

    An event that says that a call ended is never saved without the call's effect on the worktree. The first message has
    the commit that the unit begins with, and neither bundle nor events.
    """

    unit_id: str
    epoch: int
    commit: str
    bundle: bytes
    """Git bundle from the commit reported last to this commit; empty if nothing changed."""
    lines: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitEnded:
    """End of a unit on a worker; its last message."""

    unit_id: str
    epoch: int
    exit_code: int | None
    """Exit code of the process; None if it did not start."""
    reason: str
    """Failure, in words for the user; empty for success."""
    verified: bool | None = None
    verify_output: str = ""
    """Last 64 KiB of the output of `verify`."""
    stderr: str = ""
    """Last 64 KiB of the process's standard error, without secrets."""
    changes: UnitChanges | None = None
    patch: bytes = b""
    """The unit's changes in the form of `git format-patch`; empty without changes."""


@dataclass(frozen=True, slots=True)
class UnitAbandoned:
    """The backend cannot run a unit: its workers died too often, or the scheduler refused it."""

    unit_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker died or left."""

    worker: str
    reason: str


WorkerMessage: TypeAlias = UnitClaimed | EventsReported | CommitReported | UnitEnded | UnitAbandoned | WorkerLost


@dataclass(frozen=True, slots=True)
class UnitGranted:
    """Answer to a claim: run the unit."""

    claim: str
    epoch: int
    task: UnitTask
    options: tuple[str, ...]
    """Further options of the command line, such as `--demo`; never a key."""
    journal: bytes = b""
    """Journal to resume; empty for a start."""
    base: str = ""
    """Commit that the unit began with; empty for a start, which resolves the task's ref."""
    note: str = ""
    """Message that a resumed unit begins with, such as the output of a failed `verify`; empty for a general one."""
    bundles: tuple[bytes, ...] = ()
    """Git bundles that lead from the base to the last reported commit."""
    used: float = 0.0
    """Seconds of the time limit that earlier starts used."""


@dataclass(frozen=True, slots=True)
class UnitRefused:
    """Answer to a claim: the unit has ended or runs elsewhere."""

    claim: str


@dataclass(frozen=True, slots=True)
class UnitInput:
    """A command for the unit's process."""

    line: bytes
    """One line of stream-json input without line feed."""


@dataclass(frozen=True, slots=True)
class UnitCancelled:
    """End the unit now and kill its processes."""

    reason: str


DriverMessage: TypeAlias = UnitGranted | UnitRefused | UnitInput | UnitCancelled


@dataclass(frozen=True, slots=True)
class DriverLink:
    """Connection between one start of a unit and the driver."""

    send: Callable[[WorkerMessage], Awaitable[None]]
    """Sends a message; waits while too much is on its way."""
    receive: Callable[[], Awaitable[DriverMessage]]
