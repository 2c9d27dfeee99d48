"""Plugin of pytest: `--processes 4` collects the tests once, then runs them in four forked processes.

Each process takes the next file from a common queue; the tests of a file share fixtures and caches. Tests that start
programs mostly wait: half of the processes begin with them, the others with those that compute, so that the processors
always have work.
"""

import atexit
import os
import pickle
import selectors
import signal
import socket
import struct
import traceback
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pytest

NUMBER = struct.Struct("=I")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("processes").addoption("--processes", type=int, default=0, help="run the tests in forked processes")


def pytest_configure(config: pytest.Config) -> None:
    """Replace the loop that runs the tests, where the option asks for it."""
    # New snapshots are written at the end of the main process, which only knows those that it has compared itself.
    alone = config.getoption("--collect-only") or config.getoption("update_snapshots", default=False)
    if config.getoption("--processes") and not alone:
        config.pluginmanager.register(ForkedTests(config.getoption("--processes")))


def units_of(items: list[pytest.Item]) -> list[list[int]]:
    """Return the numbers of the items of each file, those with most work first: the last ones run alone."""

    def work(unit: list[int]) -> int:
        return sum(10 if items[number].get_closest_marker("slow") else 1 for number in unit)

    files = groupby(range(len(items)), lambda number: items[number].path)
    return sorted((list(numbers) for _, numbers in files), key=work, reverse=True)


def queue_of(numbers: Iterable[int]) -> int:
    """Return a queue of several readers: whole numbers fit into a pipe at once, and each read takes one."""
    queue, filler = os.pipe()
    os.write(filler, b"".join(NUMBER.pack(number) for number in numbers))
    os.close(filler)
    return queue


class ForkedTests:
    """Main process and its forks."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._running: dict[socket.socket, tuple[int, int | None]] = {}
        """Process id and the number of the running test, by the socket of a process."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; pytest's own loop reports errors of the collection."""
        if session.testsfailed or not session.items:
            return None
        units = units_of(session.items)
        waiting = {number for number, unit in enumerate(units) if session.items[unit[0]].get_closest_marker("pty")}
        queues = [queue_of(number for number in range(len(units)) if number not in waiting), queue_of(sorted(waiting))]
        directory = session.config._tmp_path_factory.getbasetemp()  # pyright: ignore[reportAttributeAccessIssue]
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        # Results of several files come in turn.
        reporter.showfspath = False
        for number in range(min(self._processes, len(units))):
            queues.reverse()
            ours, its = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                ours.close()
                for other in self._running:
                    other.close()
                become_worker(session, units, queues, its, directory / f"process-{number}")
            its.close()
            self._running[ours] = (pid, None)
        try:
            self._receive(session, queues)
        finally:
            for queue in queues:
                os.close(queue)
            for ours, (pid, _) in self._running.items():
                os.kill(pid, signal.SIGTERM)
                os.waitpid(pid, 0)
                ours.close()
        return True

    def _receive(self, session: pytest.Session, queues: list[int]) -> None:
        done: set[str] = set()
        with selectors.DefaultSelector() as selector:
            for ours in self._running:
                selector.register(ours, selectors.EVENT_READ, ours.makefile("rb"))
            while self._running:
                for key, _ in selector.select():
                    ours: Any = key.fileobj
                    try:
                        message = pickle.load(key.data)
                    except EOFError:
                        selector.unregister(ours)
                        self._end(session, ours, key.data)
                        continue
                    self._handle(session, ours, message, done)
                if session.shouldfail or session.shouldstop:
                    for _ in taken_from(queues):
                        pass
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        if missing := [item.nodeid for item in session.items if item.nodeid not in done]:
            raise session.Interrupted(f"{len(missing)} tests did not run: {', '.join(missing[:10])}")

    def _handle(self, session: pytest.Session, ours: socket.socket, message: Any, done: set[str]) -> None:
        pid, _ = self._running[ours]
        if isinstance(message, int):
            self._running[ours] = (pid, message)
            return
        report = session.config.hook.pytest_report_from_serializable(config=session.config, data=message)
        if report.when == "teardown":
            done.add(report.nodeid)
            self._running[ours] = (pid, None)
        session.config.hook.pytest_runtest_logreport(report=report)

    def _end(self, session: pytest.Session, ours: socket.socket, stream: Any) -> None:
        pid, number = self._running.pop(ours)
        stream.close()
        ours.close()
        _, status = os.waitpid(pid, 0)
        if number is not None:
            item = session.items[number]
            text = f"the process of the test ended with exit code {os.waitstatus_to_exitcode(status)}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            session.config.hook.pytest_runtest_logreport(report=report)


class Worker:
    """Sends the reports of a forked process to the main process."""

    def __init__(self, config: pytest.Config, main: socket.socket) -> None:
        self._config, self._main = config, main

    def send(self, message: object) -> None:
        """Send a report, or the number of the test that starts."""
        self._main.sendall(pickle.dumps(message))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.send(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def become_worker(
    session: pytest.Session, units: list[list[int]], queues: list[int], main: socket.socket, directory: Path
) -> None:
    """Run units until the queues are empty, then end this process."""
    code = 0
    try:
        config = session.config
        separate(config, directory)
        worker = Worker(config, main)
        config.pluginmanager.register(worker)
        numbers = chain.from_iterable(units[number] for number in taken_from(queues))
        # Fixtures of a module end when the next test needs them no more, so the next one is known while one runs.
        number = next(numbers, None)
        while number is not None:
            following = next(numbers, None)
            worker.send(number)
            config.hook.pytest_runtest_protocol(
                item=session.items[number], nextitem=None if following is None else session.items[following]
            )
            number = following
        atexit._run_exitfuncs()
    except BaseException:  # The end of a process may not run the rest of pytest a second time.
        os.write(2, traceback.format_exc().encode())
        code = 1
    os._exit(code)


def taken_from(queues: list[int]) -> Iterator[int]:
    """Yield the numbers that this process takes from the queues, one after the other."""
    for queue in queues:
        while data := os.read(queue, NUMBER.size):
            yield NUMBER.unpack(data)[0]


def separate(config: pytest.Config, directory: Path) -> None:
    """Give this process its own captured output and directory; the main process alone writes to the terminal."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture(in_=False)
    config.pluginmanager.getplugin("terminalreporter")._tw._file = open(os.devnull, "w")  # noqa: SIM115
    directory.mkdir(0o700)
    config._tmp_path_factory._basetemp = directory  # pyright: ignore[reportAttributeAccessIssue]
