"""Results of a fleet: the best attempt at each task, and the outcomes and costs of each repository."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.fleet_records import UnitRow


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The attempts at one task."""

    task: str
    """Id of the task."""
    attempts: tuple[UnitRow, ...]
    """The best attempt first; at least one."""

    @property
    def best(self) -> UnitRow:
        """The attempt to use."""
        return self.attempts[0]


@dataclass(frozen=True, slots=True)
class RepositoryResult:
    """Outcomes and cost of all units of one repository."""

    repo: str
    done: int
    """Units that ended well."""
    failed: int
    """Units that failed or were stopped."""
    unfinished: int
    """Units that have not ended."""
    cost: float
    """US dollars of all of them."""


def rank_attempts(rows: Iterable[UnitRow]) -> tuple[TaskResult, ...]:
    """Group units by task, in the order of their first attempts, and rank the attempts of each.

    A unit that is done comes before one that is not. Then one whose `verify` passed comes before one that has none, and
    that before one whose `verify` failed. Among equals the smallest patch wins, except an empty one, then the lower
    cost.
    """
    tasks: dict[str, list[UnitRow]] = {}
    for row in rows:
        tasks.setdefault(row.unit.task, []).append(row)
    return tuple(TaskResult(task, tuple(sorted(attempts, key=_rank))) for task, attempts in tasks.items())


def by_repository(rows: Iterable[UnitRow]) -> tuple[RepositoryResult, ...]:
    """Sum up the units of each repository, the most expensive repository first."""
    repositories: dict[str, list[UnitRow]] = {}
    for row in rows:
        repositories.setdefault(row.unit.repo, []).append(row)
    results = [_summed(repo, units) for repo, units in repositories.items()]
    return tuple(sorted(results, key=lambda result: (-result.cost, result.repo)))


def _summed(repo: str, units: Sequence[UnitRow]) -> RepositoryResult:
    done = sum(unit.state == "done" for unit in units)
    ended = sum(unit.ended for unit in units)
    return RepositoryResult(repo, done, ended - done, len(units) - ended, sum(unit.cost for unit in units))


def _rank(row: UnitRow) -> tuple[bool, int, bool, int, float, int]:
    changed = 0 if row.changes is None else row.changes.insertions + row.changes.deletions
    is_empty = row.changes is None or row.changes.files == 0
    verified = {True: 0, None: 1, False: 2}[row.verified]
    return row.state != "done", verified, is_empty, changed, row.cost, row.unit.attempt
