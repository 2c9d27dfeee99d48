"""Plugin of pytest that adds up the CPU time of tests and compares each room with its budget.

CPU time includes the programs that a test starts and waits for; it hardly depends on what else the machine does. A room
is a directory of `tests`; the files directly in `tests` are the room `.`.
"""

import json
import os
import time
import tomllib
from collections import Counter
from collections.abc import Generator
from pathlib import Path, PurePosixPath

import pytest

from tests.support.forked_program import server_seconds

PROPERTY = "cpu_seconds"
"""Name under which a report carries the CPU time of its phase from a forked process to the main process."""

LOOP_SECONDS = 0.02
"""CPU time of `loop_seconds` on the machine where the budgets were measured."""


def cpu_seconds() -> float:
    """Return the CPU time of this process, of all children that it has waited for, and of programs forked for it."""
    return sum(os.times()[:4]) + server_seconds()


def room_of(path: str) -> str:
    """Return the room of a file of tests, given relative to the directory of the project."""
    parts = PurePosixPath(path).parts
    return parts[1] if len(parts) > 2 else "."


def loop_seconds() -> float:
    """Return the CPU time of a fixed piece of work, the least of five times."""

    def once() -> float:
        start = time.process_time()
        numbers: dict[str, int] = {}
        for number in range(200_000):
            numbers[str(number % 1_000)] = number
        return time.process_time() - start

    return min(once() for _ in range(5))


def overdrawn(used: dict[str, float], allowed: dict[str, float]) -> list[str]:
    """Return the rooms that used more seconds than allowed; a room without a budget may use none."""
    return [room for room, seconds in sorted(used.items()) if seconds > allowed.get(room, 0.0)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("CPU time")
    group.addoption("--budgets", type=Path, help="fail if a room takes more CPU seconds than this TOML file allows")
    group.addoption("--cpu-times", type=Path, help="write the CPU seconds of each file to this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    """Measure only where an option asks for it."""
    if config.getoption("--budgets") or config.getoption("--cpu-times"):
        config.pluginmanager.register(CpuTimes(config))


class CpuTimes:
    """CPU seconds of each file of tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._budgets: Path | None = config.getoption("--budgets")
        self._times: Path | None = config.getoption("--cpu-times")
        self._seconds: Counter[str] = Counter()
        self._start = 0.0
        self._lines: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._start = cpu_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = cpu_seconds()
        # A copy: all reports of an item share the list.
        report.user_properties = [*report.user_properties, (PROPERTY, now - self._start)]
        self._start = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path = report.nodeid.partition("::")[0]
        self._seconds[path] += sum(float(value) for name, value in report.user_properties if name == PROPERTY)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session if a room has no budget left."""
        if self._times is not None:
            self._times.write_text(json.dumps(dict(self._seconds.most_common()), indent=1))
        if self._budgets is not None:
            self._compare(session, tomllib.loads(self._budgets.read_text("utf-8"))["seconds"])

    def _compare(self, session: pytest.Session, budgets: dict[str, float]) -> None:
        slowness = max(1.0, loop_seconds() / LOOP_SECONDS)
        used: Counter[str] = Counter()
        for path, seconds in self._seconds.items():
            used[room_of(path)] += seconds
        allowed = {room: seconds * slowness for room, seconds in budgets.items()}
        self._lines = [
            f"{room:>12}  {seconds:6.0f}  {allowed.get(room, 0.0):6.0f}" for room, seconds in used.most_common()
        ]
        self._lines.append(f"{'all':>12}  {used.total():6.0f}  {sum(allowed.values()):6.0f}")
        if over := overdrawn(used, allowed):
            self._lines.append(f"over the budget of {self._budgets}: {', '.join(over)}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.section("CPU seconds of the rooms: used, allowed")
            for line in self._lines:
                terminalreporter.write_line(line)
