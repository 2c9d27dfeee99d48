"""The directory of a fleet, `OUT`: its tasks, what its driver decided, and everything that its units reported.

```
OUT/lock              held by the driver
    units.jsonl       the tasks, one unit a line
    driver.jsonl      what the driver decided: grants, first commits, ends
    status.json       the last state, for readers; only a copy
    control.sock      address of the driver while it runs, or a link to it
    units/ID/         journal.jsonl, commits/, stderr.log, verify.txt, report.md, result.json, patch/;
                      stream.jsonl while it runs and a viewer is there
    work/             worktrees of `--local`
```

Everything is private to the user. Lines of a journal and records are on the disk before they count.

Readers of tasks and states raise `ConfigurationError` for anything that is not the directory of a fleet, or cannot be
read.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus, UnitRow, UnitTask
from tui_agent.protocol.messages import JsonObject, is_object, now_ms
from tui_agent.protocol.regular_file import make_private_directories, sync_directory

from .unit_events import JOURNAL, STREAM, seq_of

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600
LONGEST_SOCKET_PATH = 100
"""Bytes of a path that every system accepts for a socket."""
LARGEST_STREAM = 1024 * 1024
"""Bytes of a stream after which it begins anew."""

_TRIES, _PAUSE = 4, 0.02


@dataclass(frozen=True, slots=True)
class UnitFiles:
    """Stored parts of a unit that continues."""

    journal: bytes
    bundles: tuple[bytes, ...]
    last_seq: int


class FleetDirectory:
    """An open directory, held by this driver. All methods block, and raise `OSError` if the disk fails."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock
        self._half_written: set[Path] = set()

    @classmethod
    def create(cls, path: Path, tasks: Sequence[UnitTask], settings: JsonObject) -> "FleetDirectory":
        """Make the directory of a new fleet; the settings, without a key, are the first record of the driver.

        Raises:
            ConfigurationError: something is there already, or it cannot be written.
        """
        try:
            make_private_directories(path)
            if any(path.iterdir()):
                raise ConfigurationError(
                    f"{path} is not empty; name another directory, or continue the fleet in it with: "
                    f"tui-agent fleet retry {path}"
                )
            path.chmod(PRIVATE_DIRECTORY)
            made = cls(path, _locked(path))
            (path / "units").mkdir(mode=PRIVATE_DIRECTORY)
            made._replace("units.jsonl", "".join(f"{task.model_dump_json()}\n" for task in tasks).encode())
            made.record({"type": "fleet", **settings})
            rows = tuple(UnitRow(unit=task) for task in tasks)
            made.save_status(FleetStatus(name=path.name, started=now_ms(), running=False, rows=rows))
            sync_directory(path)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error
        return made

    @classmethod
    def open(cls, path: Path) -> "FleetDirectory":
        """Open the directory of a fleet whose driver is gone.

        Raises:
            ConfigurationError: it is not the directory of a fleet, or its driver runs.
        """
        if not (path / "units.jsonl").is_file():
            raise ConfigurationError(f"{path} is not the directory of a fleet")
        try:
            return cls(path, _locked(path))
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error

    def last_sign(self) -> int:
        """Return the time at which a driver wrote here last, in milliseconds since the epoch; 0 if none did."""
        return _last_sign(self.path)

    def close(self) -> None:
        """Release the directory. May be called again."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def record(self, record: JsonObject) -> None:
        """Append a record of the driver."""
        self._append(self.path / "driver.jsonl", json.dumps(record, ensure_ascii=False).encode() + b"\n")

    def append_events(self, unit_id: str, lines: Iterable[bytes]) -> None:
        """Append facts to the journal of a unit; it is on the disk then. After an error, append the same again."""
        if data := b"".join(line + b"\n" for line in lines):
            self._append(self.unit(unit_id) / JOURNAL, data)

    def show_events(self, unit_id: str, lines: Iterable[bytes]) -> None:
        """Write events for viewers, deltas included; facts must be in the journal already."""
        path = self.unit(unit_id) / STREAM
        try:
            # Removed and not truncated: a viewer that reads it notices the removal, and finishes the old file first.
            if path.exists() and path.stat().st_size > LARGEST_STREAM:
                path.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(path, flags, PRIVATE_FILE), "wb") as file:
                file.write(b"".join(line + b"\n" for line in lines))
        except OSError:
            # Without it, viewers read the journal.
            self.hide_events(unit_id)

    def hide_events(self, unit_id: str) -> None:
        """Remove what `show_events` wrote: from now on the journal has everything."""
        with suppress(OSError):
            (self.unit(unit_id) / STREAM).unlink(missing_ok=True)

    def save_commit(self, unit_id: str, bundle: bytes, first_seq: int, last_seq: int) -> None:
        """Save the changes of a worktree since its state before, ahead of the events that were held back for them.

        The numbers are those of the first and the last of these events.
        """
        commits = self.unit(unit_id) / "commits"
        commits.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        number = len(list(commits.glob("*.bundle")))
        # Its numbers are in the name, so that a listing of the directory shows what fits the journal.
        self._replace(str(commits / f"{number:06}-{first_seq}-{last_seq}.bundle"), bundle)
        sync_directory(commits)

    def load_unit(self, unit_id: str) -> UnitFiles:
        """Return a unit's journal and the states of its worktree that fit it.

        If the machine stopped between a state and its events, neither counts: nothing was taken after them.
        """
        home = self.unit(unit_id)
        self.hide_events(unit_id)
        path = home / JOURNAL
        journal = path.read_bytes() if path.exists() else b""
        # A line without its end was cut off by a kill and never counted.
        journal = journal[: journal.rfind(b"\n") + 1]
        last_seq = _last_seq(journal)
        bundles: list[bytes] = []
        for file in sorted(home.glob("commits/*.bundle")):
            _, first, last = file.stem.split("-")
            if int(last) > last_seq:
                journal = b"".join(line for line in journal.splitlines(keepends=True) if seq_of(line) < int(first))
                self._replace(str(path), journal)
                last_seq = _last_seq(journal)
                file.unlink()
                continue
            bundles.append(file.read_bytes())
        return UnitFiles(journal, tuple(bundles), last_seq)

    def save_result(self, unit_id: str, files: dict[str, bytes]) -> None:
        """Write files of a unit that ended; directories in their names are made."""
        for name, content in files.items():
            target = self.unit(unit_id) / name
            target.parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
            self._replace(str(target), content)

    def save_status(self, status: FleetStatus) -> None:
        """Write `status.json`, as a whole or not at all."""
        self._replace("status.json", status.model_dump_json().encode() + b"\n")

    def forget_result(self, unit_id: str) -> None:
        """Remove the files of a unit's end, because it continues."""
        home = self.unit(unit_id)
        for name in ("result.json", "verify.txt", "report.md"):
            (home / name).unlink(missing_ok=True)
        shutil.rmtree(home / "patch", ignore_errors=True)

    def unit(self, unit_id: str) -> Path:
        """Return the directory of a unit; make it if it is missing."""
        home = self.path / "units" / unit_id
        home.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        return home

    def make_socket_path(self) -> Path:
        """Return the path for the driver's socket, which does not exist. `control.sock` leads to it."""
        address = self.path / "control.sock"
        address.unlink(missing_ok=True)
        # `bind` refuses a longer path, and the user chooses `OUT`.
        if len(os.fsencode(address)) <= LONGEST_SOCKET_PATH:
            return address
        private = Path(tempfile.mkdtemp(prefix="tui-agent-fleet-"))
        address.symlink_to(private / "control.sock")
        return private / "control.sock"

    def _append(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                # The rest of a write that failed, or that a kill cut off; it never counted.
                size = _end_of_last_line(descriptor, size)
                os.ftruncate(descriptor, size)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                # The worker forgets an event as soon as the driver has taken it.
                os.fdatasync(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)

    def _replace(self, name: str, content: bytes) -> None:
        target = self.path / name
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def read_tasks(path: Path) -> tuple[UnitTask, ...]:
    """Return the units of a fleet, in the order of its task file. Blocks.

    Raises:
        ConfigurationError: the directory is not that of a fleet, or cannot be read.
    """
    try:
        lines = (path / "units.jsonl").read_bytes().splitlines()
        return tuple(UnitTask.model_validate_json(line) for line in lines)
    except (OSError, ValidationError) as error:
        raise ConfigurationError(f"{path} is not the directory of a fleet, or it cannot be read") from error


def read_records(path: Path) -> list[JsonObject]:
    """Return the records of the driver in order, without damaged lines; empty if no driver has begun. Blocks.

    Raises:
        ConfigurationError: the file cannot be read: without it, units that have started would start again.
    """
    file = path / "driver.jsonl"
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"{file} cannot be read: {reason}. Nothing was started or changed.") from error
    records: list[JsonObject] = []
    for line in lines:
        with suppress(ValueError):
            record: object = json.loads(line)
            if is_object(record):
                records.append(record)
    return records


def read_status(path: Path) -> FleetStatus:
    """Return the state that the driver wrote last. If the driver is gone, no unit counts as running. Blocks."""
    return _stored_status(path) if is_driven(path) else left_status(path)


def left_status(path: Path) -> FleetStatus:
    """Return the state in which a driver left the fleet: no unit runs. Blocks."""
    return _stored_status(path).without_driver(_last_sign(path))


def written_status(path: Path, seen: int) -> tuple[int, FleetStatus | None]:
    """Return the time of the last state that the driver wrote, and the state; None for it if that is the `seen` time.

    Times are nanoseconds since the epoch; 0 as `seen` always reads it. Blocks.
    """
    try:
        time = (path / "status.json").stat().st_mtime_ns
    except OSError:
        time = 0
    return time, None if time == seen and seen else _stored_status(path)


def _stored_status(path: Path) -> FleetStatus:
    try:
        return FleetStatus.model_validate_json((path / "status.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigurationError(f"{path} is not the directory of a fleet, or its state cannot be read") from error


def is_driven(path: Path) -> bool:
    """Return True if a driver works on the fleet; False if that cannot be found out. Blocks."""
    try:
        # A fleet that is only kept may be on a medium that cannot be written.
        # A driver that was killed leaves its files, but the kernel releases its lock.
        os.close(_locked(path, os.O_RDONLY))
    except ConfigurationError:
        return True
    except OSError:
        return False
    return False


def _locked(path: Path, access: int = os.O_RDWR | os.O_CREAT) -> int:
    descriptor = os.open(path / "lock", access | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    # A reader that only looks holds it for a moment.
    for _ in range(_TRIES):
        try:
            # On the file and not in it: a process id that was written down may be that of another program by now.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
            continue
        return descriptor
    os.close(descriptor)
    raise ConfigurationError(f"the fleet in {path} is running; watch it with: tui-agent fleet status --watch {path}")


def _last_sign(path: Path) -> int:
    files = (path / "status.json", path / "driver.jsonl", *path.glob(f"units/*/{JOURNAL}"))
    return max((round(1000 * file.stat().st_mtime) for file in files if file.exists()), default=0)


def _last_seq(journal: bytes) -> int:
    end = len(journal) - 1
    return seq_of(journal[journal.rfind(b"\n", 0, max(end, 0)) + 1 :]) if journal else 0


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Return the size of the whole lines of a file."""
    step = 1 << 20
    place = size
    while place > 0:
        start = max(0, place - step)
        found = os.pread(descriptor, place - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place = start
    return 0
