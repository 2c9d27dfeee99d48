"""Fleets on a Dask cluster of this machine: their cost, their faults, and their throughput.

Run by hand: `python -m tests.benchmarks.fleet PART`.

- `cost [UNITS …]`: units that only claim and end, on 1, 2, 4 and 8 workers: wall, and CPU of driver and scheduler.
- `soak UNITS WORKERS [--kill 2] [--stop 30]`: real units with the offline model, while workers are killed at random
  moments and one is stopped for so many seconds; then every journal and every patch is checked.
- `throughput UNITS WORKERS`: the same units on a cluster and as bare processes of `xargs -P`.
"""

import argparse
import asyncio
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.fleet.dask_fleets import SmallDriver, run_waiting_unit
from tui_agent.fleet.backend import ClusterChoice
from tui_agent.fleet.dask_backend import DaskBackend
from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.fleet_records import FleetStatus

PROGRAM = (sys.executable, "-m", "tui_agent")
REPOSITORIES = 3
SETTINGS = '[permissions]\nrules = [["allow", "bash(*)"]]\nunknown_targets = "allow"\n'
CANARY = "sk-canary-5d20"
PROMPT = "run `echo {mark} >> kept.txt`"


async def measure_cost(units: int, workers: int, scratch: Path) -> None:
    """Print the cost of units that claim, report one line and end."""
    backend = DaskBackend(ClusterChoice(workers=workers), run_waiting_unit, scratch)
    async with backend.opened():
        driver = SmallDriver(backend, {})
        await driver.run([f"warm{number}" for number in range(workers)])
        wall, cpu = time.monotonic(), time.process_time()
        await driver.run([str(number) for number in range(units)])
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        memory = psutil.Process().memory_info().rss / 1e6
    each = f"{1000 * wall / units:6.2f} ms wall, {1000 * cpu / units:5.2f} ms CPU a unit"
    print(f"{units:5} units, {workers} workers: {each}, {memory:.0f} MB", flush=True)


class Soak:
    """One fleet with the offline model in a directory of its own."""

    def __init__(self, directory: Path, units: int, workers: int) -> None:
        self.directory = directory
        self.units = units
        self.workers = workers
        self.out = directory / "out"
        self.environment = {**os.environ, "HOME": str(directory), "XDG_CONFIG_HOME": str(directory / "config")}
        self.environment |= {"XDG_STATE_HOME": str(directory / "state"), "ANTHROPIC_API_KEY": CANARY}
        settings = directory / "config" / "tui-agent"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text(SETTINGS)
        for number in range(REPOSITORIES):
            self._git("init", "-q", f"repo{number}")
            (directory / f"repo{number}" / "kept.txt").write_text("first\n")
            self._git("-C", f"repo{number}", "add", ".")
            identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
            self._git("-C", f"repo{number}", *identity, "commit", "-qm", "First")

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.directory, check=True, env=self.environment)

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the driver."""
        tasks = "".join(
            json.dumps({"prompt": PROMPT, "mark": f"mark-{number}", "repo": f"repo{number % REPOSITORIES}"}) + "\n"
            for number in range(self.units)
        )
        (self.directory / "tasks.jsonl").write_text(tasks)
        options = ("--workers", str(self.workers), "--headless", "--demo", "--out", "out")
        with (self.directory / "driver.txt").open("wb") as log:
            return subprocess.Popen(
                [*PROGRAM, "fleet", "run", "tasks.jsonl", *options],
                cwd=self.directory,
                env=self.environment,
                stderr=log,
            )

    def status(self) -> FleetStatus | None:
        """Return the state that the driver wrote last."""
        try:
            return FleetStatus.model_validate_json((self.out / "status.json").read_bytes())
        except FileNotFoundError:
            return None

    def run(self, kills: int, stopped: float, latest: float = 0.8) -> float:
        """Run the fleet and disturb it; return the seconds from the first start of a unit to the last end.

        Args:
            kills: workers to kill, each after a random share of the units has ended.
            stopped: seconds for which one worker is stopped; 0 for none.
            latest: largest share of the units that has ended before a kill.
        """
        driver = self.start()
        chance = random.Random()
        faults = sorted([(chance.uniform(0.05, latest), "kill") for _ in range(kills)])
        if stopped:
            faults = sorted([*faults, (chance.uniform(0.05, 0.6), "stop")])
        asleep: list[tuple[float, psutil.Process]] = []
        memory = 0
        while driver.poll() is None:
            time.sleep(0.25)
            memory = max(memory, memory_of(driver.pid))
            status = self.status()
            ended = sum(row.ended for row in status.rows) if status else 0
            if status and faults and ended >= faults[0][0] * self.units:
                self._disturb(driver.pid, faults, asleep, stopped)
            for until, process in tuple(asleep):
                if time.monotonic() > until:
                    asleep.remove((until, process))
                    process.resume()
                    print("  a worker is resumed", flush=True)
        print((self.directory / "driver.txt").read_text().strip().splitlines()[-1])
        print(f"driver's memory at most: {memory / 1e6:.0f} MB; exit code {driver.returncode}")
        status = self.status()
        assert status is not None
        spans = [span for row in status.rows for span in row.spans]
        return (max(span.ended or 0 for span in spans) - min(span.started for span in spans)) / 1000

    @staticmethod
    def _disturb(
        driver: int, faults: list[tuple[float, str]], asleep: list[tuple[float, psutil.Process]], stopped: float
    ) -> None:
        busy = [process for process in workers_of(driver) if process not in [one for _, one in asleep]]
        busy = [process for process in busy if process.children()]
        if not busy:
            return
        worker = random.choice(busy)
        if faults.pop(0)[1] == "kill":
            worker.send_signal(signal.SIGKILL)
            print(f"  worker {worker.pid} is killed", flush=True)
        else:
            worker.suspend()
            asleep.append((time.monotonic() + stopped, worker))
            print(f"  worker {worker.pid} is stopped for {stopped:g} s", flush=True)

    def faults(self) -> list[str]:
        """Return what is wrong with the units that ended."""
        status = self.status()
        assert status is not None
        found: list[str] = []
        if [row.id for row in status.rows] != [str(number) for number in range(1, self.units + 1)]:
            found.append("not every unit has a row")
        for number, row in enumerate(status.rows):
            directory = self.out / "units" / row.id
            if row.state != "done":
                found.append(f"{row.id}: {row.state}: {row.reason}")
            found += [f"{row.id}: {problem}" for problem in journal_problems(directory / "journal.jsonl")]
            patch = "".join(path.read_text() for path in sorted(directory.glob("patch/*")))
            written = patch.splitlines().count(f"+mark-{number}")
            # An effect whose call did not end before its worker died is not in the worktree that the next one has.
            if written > 1 or (written == 0 and not row.unknown_effects):
                found.append(f"{row.id}: its effect is there {written} times")
        return found

    def report(self) -> int:
        """Print the states of the units and all faults; return their number."""
        status = self.status()
        assert status is not None
        states = Counter(row.state for row in status.rows)
        starts = Counter(row.epoch for row in status.rows)
        unknown = sum(row.unknown_effects for row in status.rows)
        print(f"states {dict(states)}; units by number of starts {dict(starts)}; effects reported as unknown {unknown}")
        found = self.faults()
        print(f"{len(found)} faults", *found, sep="\n  ")
        return len(found)


def memory_of(pid: int) -> int:
    """Return the resident bytes of a process; 0 if it is gone."""
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def workers_of(driver: int) -> list[psutil.Process]:
    """Return the worker processes of a driver's cluster."""
    try:
        children = psutil.Process(driver).children()
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    except psutil.NoSuchProcess:
        return []


def journal_problems(path: Path) -> list[str]:
    """Return what is wrong with a journal: each line is an event, numbers only rise, the last event ends the run."""
    last, kind = 0, ""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        envelope = read_envelope(line)
        if envelope is None:
            return [f"line {number} is not an event"]
        if envelope.seq <= last:
            return [f"line {number}: event {envelope.seq} follows {last}"]
        last = envelope.seq
        kind = str(json.loads(line).get("type"))
    return [] if kind == "run.ended" else [f"it ends with {kind or 'nothing'}"]


def run_bare(soak: Soak) -> float:
    """Run the units of a fleet as bare processes, each in a clone, and return the seconds."""
    clones = soak.directory / "clones"
    clones.mkdir()
    lines: list[str] = []
    for number in range(soak.units):
        soak._git("clone", "-q", f"repo{number % REPOSITORIES}", f"clones/{number}")
        prompt = PROMPT.format(mark=f"mark-{number}")
        options = ("-p", "--demo", "--permission-mode", "accept_edits", "--output-format", "stream-json")
        command = shlex.join([*PROGRAM, *options, prompt])
        lines.append(f"cd {clones / str(number)} && {command} > events.jsonl 2>&1")
    began = time.monotonic()
    xargs = ["xargs", "-d", "\n", "-P", str(soak.workers), "-I", "{}", "sh", "-c", "{}"]
    subprocess.run(xargs, input="\n".join(lines).encode(), env=soak.environment, check=True)
    return time.monotonic() - began


def main(arguments: Sequence[str]) -> int:
    """Measure a part and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["cost", "soak", "throughput"])
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--stop", type=float, default=0.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    if options.part == "cost":
        for units in options.numbers or (10, 100, 1000):
            for workers in (1, 2, 4, 8):
                with tempfile.TemporaryDirectory(prefix="fleet-") as directory:
                    asyncio.run(measure_cost(units, workers, Path(directory) / "cluster"))
        return 0
    units, workers = options.numbers
    with tempfile.TemporaryDirectory(prefix="fleet-") as directory:
        soak = Soak(Path(directory), units, workers)
        seconds = soak.run(options.kill, options.stop)
        print(f"{units} units on {workers} workers: {seconds:.1f} s, {units / seconds:.2f} a second")
        faults = soak.report()
        if options.part == "throughput":
            bare = run_bare(soak)
            print(f"bare processes: {bare:.1f} s; the fleet takes {100 * (seconds / bare - 1):+.0f} %")
    return min(1, faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
