"""The fleet behind `tui-agent fleet`: composes directory, backend and driver, and reports progress."""

import asyncio
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from tui_agent.fleet.backend import Backend
from tui_agent.fleet.cluster_choice import ClusterChoice
from tui_agent.fleet.driver import FleetDriver
from tui_agent.fleet.fleet_counts import count_rows
from tui_agent.fleet.fleet_directory import FleetDirectory
from tui_agent.fleet.local_backend import LocalBackend
from tui_agent.fleet.task_file import read_line_tasks, read_toml_tasks
from tui_agent.fleet.unit_runner import UnitHost
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus, UnitTask
from tui_agent.protocol.messages import JsonObject, now_ms
from tui_agent.protocol.pipes import read_everything
from tui_agent.tools import sandbox_problem

from .fleet_cluster import cluster_backend
from .fleet_progress import report_progress, used_parts
from .process.controlling_terminal import say_error

LARGEST_TASK_FILE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Options of `fleet run` and `fleet retry`."""

    out: Path
    """Absolute path of the fleet's directory."""
    places: int = 1
    """Units at the same time on this machine."""
    demo: bool = False
    cluster: ClusterChoice | None = None
    """Dask cluster instead of this machine's processes."""

    @property
    def unit_options(self) -> tuple[str, ...]:
        """Options for every unit's command line."""
        return ("--demo",) if self.demo else ()


def read_tasks_of(path: Path) -> tuple[UnitTask, ...]:
    """Return the units of a file, or of standard input for `-`.

    Raises:
        ConfigurationError: it cannot be read, or has mistakes.
    """
    if str(path) == "-":
        return read_line_tasks(read_everything(0), Path.cwd())
    try:
        if path.stat().st_size > LARGEST_TASK_FILE:
            raise ConfigurationError(f"{path} is larger than {LARGEST_TASK_FILE // 1024 // 1024} MiB")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        read = read_toml_tasks if path.suffix == ".toml" else read_line_tasks
        return read(content, path.absolute().parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def run_fleet(options: FleetOptions, tasks: tuple[UnitTask, ...]) -> int:
    """Run a new fleet in the foreground and return the exit code.

    Raises:
        ConfigurationError: its directory cannot be made, or no unit can run here.
    """
    settings: JsonObject = {"started": now_ms(), "options": list(options.unit_options), "places": options.places}
    directory = FleetDirectory.create(options.out, tasks, settings)
    return drive(directory, options, tasks, retry=False)


def drive(directory: FleetDirectory, options: FleetOptions, tasks: tuple[UnitTask, ...], *, retry: bool) -> int:
    """Drive a fleet to its end and return the exit code: 0 if every unit is done, 1 if not, 130 if interrupted."""
    try:
        return asyncio.run(_drive(directory, options, tasks, retry=retry))
    finally:
        directory.close()


async def _drive(directory: FleetDirectory, options: FleetOptions, tasks: tuple[UnitTask, ...], *, retry: bool) -> int:
    driver = FleetDriver(directory, await asyncio.to_thread(_backend, options), tasks)
    driver.denies_questions = True
    await asyncio.to_thread(lambda: driver.load(retry=retry))
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupted.set)
    async with asyncio.TaskGroup() as tasks_group:
        helpers = [
            tasks_group.create_task(_stop_when(interrupted, driver)),
            tasks_group.create_task(report_progress(driver, say_error)),
        ]
        status = await driver.run(_serve_nobody)
        for helper in helpers:
            helper.cancel()
    say_error(end_line(status, directory.path))
    if interrupted.is_set():
        return 130
    return 0 if all(row.state == "done" for row in status.rows) else 1


async def _serve_nobody(_: FleetDriver) -> None:
    return


async def _stop_when(interrupted: asyncio.Event, driver: FleetDriver) -> None:
    await interrupted.wait()
    say_error("stopping; a unit ends its commands and saves its work first")
    await driver.stop(now=True)


def _backend(options: FleetOptions) -> Backend:
    return local_backend(options) if options.cluster is None else cluster_backend(options.cluster)


def local_backend(options: FleetOptions) -> Backend:
    """Return the backend that runs units on this machine. Blocks."""
    work = options.out / "work"
    work.mkdir(mode=0o700, exist_ok=True)
    mirrors = options.out / "mirrors"
    mirrors.mkdir(mode=0o700, exist_ok=True)
    host = UnitHost(
        worker="local",
        work=work,
        mirrors=mirrors,
        program=(sys.executable, "-m", "tui_agent"),
        sandboxed=sandbox_problem(work) is None,
    )
    return LocalBackend(options.places, host)


def end_line(status: FleetStatus, out: Path) -> str:
    """Return the last line of a fleet."""
    counts = count_rows(status.rows)
    states = [f"{counts.states[state]} {state}" for state in ("done", "failed", "stopped") if counts.states[state]]
    text = f"fleet: {' · '.join((*states, *used_parts(counts)))}; results: tui-agent fleet results {out}"
    unfinished = counts.units - counts.states["done"]
    return f"{text}; {unfinished} not done, go on with: tui-agent fleet retry {out}" if unfinished else text
