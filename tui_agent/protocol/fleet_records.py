"""Records of a fleet: its units, their states, questions and sums, for the driver and for the screen alike.

A fleet runs one prompt over many repositories. A unit is one attempt at one task: one headless process in a git
worktree of its own. Everything here is plain data that becomes JSON.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import Field

from .messages import FrozenModel
from .permissions import ApprovalRequest, PermissionMode

UnitState: TypeAlias = Literal[
    "queued", "starting", "running", "asking", "verifying", "resuming", "interrupted", "done", "failed", "stopped"
]
"""`asking`: a call waits for an approval. `resuming`: its worker died, and another one continues it. `interrupted`: the
driver is gone, and with it the unit's process; no driver has this state itself, only a view without one."""

ENDED_STATES: frozenset[UnitState] = frozenset({"done", "failed", "stopped"})
"""States whose end a driver recorded; only `fleet retry` leaves them."""
INTERRUPTED = "the driver is gone; fleet retry continues it"
"""Reason of a unit that was at work when its driver went."""
NOT_STARTED = "the driver is gone; fleet retry starts it"
"""Reason of a unit that was queued when its driver went."""


class UnitPermissions(FrozenModel):
    """Rights of a unit. `allow` applies only on a host with a working sandbox; elsewhere such a unit fails."""

    mode: PermissionMode = PermissionMode.ACCEPT_EDITS
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class UnitTask(FrozenModel):
    """Everything that is known about a unit before it runs. It holds no key: the worker's environment has it."""

    id: str
    """Unique in the fleet and valid as a file name: the task's number and, with several attempts, `.1`, `.2`, …"""
    task: str
    """Id of the task; equal for all attempts."""
    attempt: int = 1
    prompt: str
    """Prompt with its fields filled in."""
    repo: str
    """Absolute path or URL of a git repository."""
    ref: str = "HEAD"
    fields: dict[str, str] = Field(default_factory=dict)
    verify: str = ""
    """Shell command that must end with code 0 in the worktree; empty for none."""
    model: str = ""
    budget: float | None = None
    """Most that the unit may cost, in US dollars; None for the limit of the worker's settings."""
    permissions: UnitPermissions = UnitPermissions()
    timeout: float | None = None
    """Seconds from its start to its end, verification included; None for no limit."""


class WorkerSpan(FrozenModel):
    """Time that a unit spent on one worker, for the timeline."""

    worker: str
    started: int
    """Milliseconds since the epoch."""
    ended: int | None = None
    """Milliseconds since the epoch; None while it is there."""
    lost: bool = False
    """True if the worker was lost."""

    def lost_at(self, at: int) -> "WorkerSpan":
        """Return the span with its end, in milliseconds since the epoch: the worker was lost, not before it began."""
        return self.model_copy(update={"ended": max(self.started, at), "lost": True})


class UnitChanges(FrozenModel):
    """Size of a unit's patch."""

    files: int = 0
    insertions: int = 0
    deletions: int = 0


class UnitRow(FrozenModel):
    """State of one unit now."""

    unit: UnitTask
    state: UnitState = "queued"
    epoch: int = 0
    """Number of its starts: 1 for the first worker, 2 for the one that resumed it."""
    spans: tuple[WorkerSpan, ...] = ()
    step: int = 0
    activity: str = ""
    """Last tool call or text, in one line; may contain any character."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars."""
    reason: str = ""
    """Reason for `failed`, `stopped`, `interrupted`, and for `queued` without a driver; empty otherwise."""
    unknown_effects: int = 0
    """Calls whose worker died while they ran and that may have had an effect outside the worktree."""
    verified: bool | None = None
    """Result of `verify`; None if it did not run."""
    changes: UnitChanges | None = None
    """None before the unit ended."""

    @property
    def id(self) -> str:
        """Id of the unit."""
        return self.unit.id

    @property
    def ended(self) -> bool:
        """True if the unit will not run again by itself."""
        return self.state in ENDED_STATES

    def without_driver(self, at: int) -> "UnitRow":
        """Return the row once the driver is gone: a unit that has not ended is interrupted, or was never started.

        An open span ends at the driver's last sign, in milliseconds since the epoch.
        """
        if self.ended or self.state == "interrupted":
            return self
        if self.state == "queued":
            return self.model_copy(update={"reason": NOT_STARTED})
        ends = (span if span.ended is not None else span.lost_at(at) for span in self.spans)
        return self.model_copy(update={"state": "interrupted", "reason": INTERRUPTED, "spans": tuple(ends)})


class UnitQuestion(FrozenModel):
    """A request for approval of one unit."""

    unit_id: str
    request: ApprovalRequest


class FleetStatus(FrozenModel):
    """State of a whole fleet; `OUT/status.json`, and the first answer of the driver."""

    name: str
    """Last part of the fleet's directory."""
    started: int
    """Milliseconds since the epoch."""
    running: bool
    """True while a driver works on the fleet."""
    rows: tuple[UnitRow, ...]
    questions: tuple[UnitQuestion, ...] = ()
    paused_until: int = 0
    """Milliseconds since the epoch until which a rate limit delays the whole fleet; 0 for no delay."""
    notices: tuple[str, ...] = ()
    """Last notices of the driver, such as a lost worker; the oldest first."""

    def without_driver(self, at: int) -> "FleetStatus":
        """Return the status once the driver is gone: nothing runs, asks or waits for a limit.

        `at` is the time of its last sign, in milliseconds since the epoch.
        """
        rows = tuple(row.without_driver(at) for row in self.rows)
        return self.model_copy(update={"running": False, "rows": rows, "questions": (), "paused_until": 0})


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """Units by their state, and the sum of what they used so far."""

    states: Counter[UnitState]
    input_tokens: int
    output_tokens: int
    cost: float
    unknown_effects: int

    @property
    def units(self) -> int:
        """All units."""
        return self.states.total()

    @property
    def ended(self) -> int:
        """Units that ended."""
        return sum(self.states[state] for state in ENDED_STATES)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    @property
    def working(self) -> int:
        """Units on a worker."""
        return self.units - self.ended - self.states["queued"] - self.states["interrupted"]


def count_rows(rows: Iterable[UnitRow]) -> FleetCounts:
    """Return the sums."""
    states: Counter[UnitState] = Counter()
    read = written = unknown = 0
    cost = 0.0
    for row in rows:
        states[row.state] += 1
        read += row.input_tokens
        written += row.output_tokens
        cost += row.cost
        unknown += row.unknown_effects
    return FleetCounts(states, read, written, cost, unknown)
