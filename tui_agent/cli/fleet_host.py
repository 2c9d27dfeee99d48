"""`tui-agent fleet run`: puts directory, backend and driver together, or starts a driver as a process of its own."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui_agent.fleet.backend import Backend, BackendLostError, ClusterChoice, LocalBackend
from tui_agent.fleet.driver import FleetDriver
from tui_agent.fleet.driver_control import serve_viewers
from tui_agent.fleet.fleet_directory import FleetDirectory, is_driven, read_records, read_tasks
from tui_agent.fleet.task_file import TaskMistakesError, read_line_tasks, read_toml_tasks
from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.background import first_error
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import UnitTask
from tui_agent.protocol.messages import JsonObject, is_object, now_ms
from tui_agent.protocol.pipes import read_everything
from tui_agent.protocol.visible_text import escaped

from .fleet_cluster import cluster_arguments, cluster_backend, unit_host
from .fleet_views import end_line, report_progress
from .process.controlling_terminal import say_error

LARGEST_TASK_FILE = 16 * 1024 * 1024
MOST_MISTAKES = 20
"""Mistakes in tasks that are reported."""
START_SECONDS = 120.0
"""Seconds that a driver of its own may take until it serves viewers."""
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Options of `fleet run` and `fleet retry`."""

    places: int | None = None
    """Units at the same time on this machine; None: as at the start of the fleet."""
    demo: bool = False
    cluster: ClusterChoice | None = None
    """Dask cluster; None with no `places`: as at the start of the fleet."""

    @property
    def unit_options(self) -> tuple[str, ...]:
        """Options for every unit's command line; stored with the fleet."""
        return ("--demo",) if self.demo else ()


def read_tasks_of(path: Path) -> tuple[UnitTask, ...]:
    """Return the units of a file, or of standard input for `-`.

    Raises:
        ConfigurationError: it cannot be read, or has mistakes; each of them was reported in a line of its own.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        return _tasks_in(path)
    except TaskMistakesError as error:
        for mistake in error.mistakes[:MOST_MISTAKES]:
            say_error(f"{name}: {mistake}")
        text = f"{name} has {count_text(len(error.mistakes), 'mistake')}; nothing was started"
        raise ConfigurationError(text) from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from error


def _tasks_in(path: Path) -> tuple[UnitTask, ...]:
    if str(path) == "-":
        return read_line_tasks(read_everything(0), Path.cwd())
    try:
        # Before it is read: a wrong name may be that of a huge file.
        if path.stat().st_size > LARGEST_TASK_FILE:
            raise ConfigurationError(f"larger than {LARGEST_TASK_FILE // 1024 // 1024} MiB")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror or error}") from error
    read = read_toml_tasks if path.suffix == ".toml" else read_line_tasks
    return read(content, path.absolute().parent)


def create_fleet(out: Path, options: FleetOptions, tasks: tuple[UnitTask, ...]) -> None:
    """Make the directory of a new fleet.

    Raises:
        ConfigurationError: it cannot be made.
    """
    settings: JsonObject = {"started": now_ms(), "options": list(options.unit_options), "places": options.places or 1}
    if options.cluster is not None:
        settings["cluster"] = options.cluster.model_dump(mode="json")
    FleetDirectory.create(out, tasks, settings).close()


def remove_unstarted(out: Path, *, keeps_directory: bool) -> None:
    """Remove a fleet that was just made and could not run; not if a unit has started, or if a driver works on it."""
    try:
        directory = FleetDirectory.open(out)
    except ConfigurationError:
        return
    try:
        # From then on, work of a unit could be lost. The caller reports why the start failed, so nothing else may.
        try:
            if any(record.get("type") == "granted" for record in read_records(out)):
                return
        except ConfigurationError:
            return
        for entry in out.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if not keeps_directory:
            with suppress(OSError):
                out.rmdir()
    finally:
        directory.close()


def check_idle(out: Path) -> None:
    """Raise unless a fleet is there and has no driver.

    Raises:
        ConfigurationError: see above.
    """
    read_tasks(out)
    if is_driven(out):
        raise ConfigurationError(f"the fleet in {out} is running; watch it with: tui-agent fleet status --watch {out}")


def drive_fleet(out: Path, options: FleetOptions, *, denies_questions: bool) -> int:
    """Drive a fleet to its end and return the exit code: 0 if every unit is done, 1 if not, 130 if interrupted.

    `denies_questions` denies requests for approval while no viewer is there.

    Raises:
        ConfigurationError: the directory is wrong or in use, or no unit can run.
    """
    directory = FleetDirectory.open(out)
    try:
        return asyncio.run(_drive(directory, options, denies_questions=denies_questions))
    except ExceptionGroup as group:
        error = first_error(group)
        if not isinstance(error, BackendLostError):
            raise error from None
        say_error(f"fleet: {error}. What was reported is kept; to continue: tui-agent fleet retry {out}")
        return 1
    finally:
        directory.close()


def start_driver(out: Path, options: FleetOptions) -> None:
    """Start a driver in a process of its own, which survives this one, and wait until it serves viewers.

    Raises:
        ConfigurationError: it ended before; the text has its reason.
    """
    # The program itself, so that the driver has the imports and the signals of a start.
    argv = [sys.executable, "-m", "tui_agent", "fleet", "drive", str(out)]
    argv += [f"--local={options.places}"] if options.places else []
    argv += cluster_arguments(options.cluster)
    if not is_driven(out):
        # The socket of a driver that was killed would count as that of the new one.
        (out / "control.sock").unlink(missing_ok=True)
    log = os.open(out / "driver.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        driver = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
        )
    finally:
        os.close(log)
    deadline = time.monotonic() + START_SECONDS
    while driver.poll() is None and time.monotonic() < deadline:
        if (out / "control.sock").exists():
            return
        time.sleep(0.02)
    # A short fleet may be over before its socket was seen.
    if driver.poll() is None or driver.returncode in (0, 1):
        return
    # Its last line is the reason, as `say_error` wrote it.
    lines = (out / "driver.log").read_text("utf-8", "replace").strip().splitlines()
    reason = lines[-1].removeprefix("tui-agent: ") if lines else f"code {driver.returncode}"
    raise ConfigurationError(f"the driver ended: {reason}")


async def _drive(directory: FleetDirectory, options: FleetOptions, *, denies_questions: bool) -> int:
    tasks = await asyncio.to_thread(read_tasks, directory.path)
    backend = await asyncio.to_thread(backend_of, directory.path, options)
    driver = FleetDriver(directory, backend, tasks)
    driver.denies_questions = denies_questions
    driver.say = lambda notice: say_error(f"fleet: {escaped(notice)}")
    await asyncio.to_thread(driver.load)
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    async with asyncio.TaskGroup() as group:
        helpers = [
            group.create_task(_stop_when(interrupted, driver)),
            group.create_task(report_progress(driver, say_error)),
        ]
        status = await driver.run(serve_viewers)
        for helper in helpers:
            helper.cancel()
    say_error(end_line(status, directory.path))
    if interrupted.is_set():
        return INTERRUPTED
    return 0 if all(row.state == "done" for row in status.rows) else 1


async def _stop_when(interrupted: asyncio.Event, driver: FleetDriver) -> None:
    await interrupted.wait()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A second signal ends the driver at once, and its units with it.
        asyncio.get_running_loop().remove_signal_handler(number)
    say_error("fleet: stopping; each unit ends its commands and saves its work first")
    await driver.stop(now=True)


def backend_of(out: Path, options: FleetOptions) -> Backend:
    """Return the backend that the options choose, or the one that the fleet began with. Blocks.

    Raises:
        ConfigurationError: Dask is not installed.
    """
    none: JsonObject = {}
    stored = next((record for record in read_records(out) if record.get("type") == "fleet"), none)
    if options.cluster is not None:
        return cluster_backend(options.cluster, out / "cluster")
    if options.places is None and is_object(stored.get("cluster")):
        return cluster_backend(ClusterChoice.model_validate(stored["cluster"]), out / "cluster")
    places = options.places or stored.get("places")
    return _local_backend(out, places if isinstance(places, int) else 1)


def _local_backend(out: Path, places: int) -> Backend:
    work, mirrors = out / "work", out / "mirrors"
    for directory in (work, mirrors):
        directory.mkdir(mode=0o700, exist_ok=True)
    return LocalBackend(places, unit_host("local", work, mirrors))
