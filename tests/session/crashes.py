"""Sessions that are killed at a chosen operation on the disk, resumed and checked.

The child process is forked from one that has everything imported. It wraps the few system calls that write to the disk;
at the chosen one it ends as by SIGKILL: before the call, in the middle of a write, or after it. A `Scene` of
`crash_scenes.py` says what is played, and what must be true afterwards.
"""

import asyncio
import os
import random
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOMENTS = 3
"""Points of an operation at which the process is killed: before, in the middle, after."""

WRAPPED = ("fsync", "fdatasync", "rename", "replace", "link", "ftruncate", "unlink", "rmdir", "mkdir", "sendfile")


@dataclass(frozen=True)
class Scene:
    """A scene, played in its own directory."""

    name: str
    play: Callable[[Path], Awaitable[None]]
    """Continues after a kill and plays the scene to its end."""
    faults: Callable[[Path], list[str]]
    """Returns faults right after a kill."""
    end_faults: Callable[[Path], list[str]]
    """Returns faults at the end of the scene."""


class Killer:
    """Counts disk operations and kills the process at one of them."""

    def __init__(self, at: int) -> None:
        self.at, self.moment = divmod(at, MOMENTS)
        """Number of the fatal operation, from 1 (0 for none), and the point: before, in the middle or after."""
        self.done = 0

    def install(self) -> None:
        """Wrap the calls of this process."""
        write = os.write

        def half_written(descriptor: int, data: Any) -> int:
            return write(descriptor, bytes(data)[: len(data) // 2])

        whole = self.around(write, half_written)
        os.write = lambda descriptor, data: whole(descriptor, data) if descriptor > 2 else write(descriptor, data)
        for name in WRAPPED:
            setattr(os, name, self.around(getattr(os, name)))

    def around(self, function: Callable[..., Any], half: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            self.done += 1
            if self.done != self.at:
                return function(*arguments, **named)
            if self.moment == 1 and half is not None:
                half(*arguments)
            elif self.moment == 2:
                function(*arguments, **named)
            die()
            raise AssertionError

        return called


def die() -> None:
    """End the process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Sweep:
    """Result of many kills."""

    points: int = 0
    killed: int = 0
    taken_up_twice: int = 0
    """Sessions that were killed again during their resume."""
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.points} points, {self.killed} killed, {self.taken_up_twice} killed twice, "
            f"{len(self.faults)} faults, {self.seconds:.0f} s"
        )


def whole(scene: Scene, root: Path) -> tuple[int, float]:
    """Return the disk operations and the seconds of a whole scene, which must have no faults."""
    count, place = root / f"count-{scene.name}", root / f"whole-{scene.name}"
    begun = time.monotonic()
    forked(lambda: count.write_text(str(play(scene, place, 0, 0.0))))
    seconds = time.monotonic() - begun
    assert scene.end_faults(place) == []
    return int(count.read_text()), seconds


def points_of(operations: int) -> list[int]:
    """Return every point of every operation."""
    return list(range(MOMENTS, MOMENTS * (operations + 1)))


def sweep(scene: Scene, root: Path, points: list[int], seed: int = 0) -> Sweep:
    """Kills one scene at each point, takes it up again, and looks for anything lost, doubled or invalid.

    A point is a moment of an operation, as `points_of` numbers them; a negative one is a kill from outside after that
    many microseconds of the scene's own time.
    """
    chance, begun = random.Random(seed), time.monotonic()
    found = Sweep()
    for number, point in enumerate(points):
        place = root / f"{scene.name}-at{number}"
        found.points += 1
        found.killed += forked(lambda place=place, point=point: play(scene, place, max(point, 0), -min(point, 0) / 1e6))
        again = chance.randrange(MOMENTS, 12 * MOMENTS) if chance.random() < 0.25 else 0
        if again:
            found.taken_up_twice += forked(lambda place=place, again=again: play(scene, place, again, 0.0))
        faults = scene.faults(place)
        if forked(lambda place=place: play(scene, place, 0, 0.0)):
            faults.append("it could not be taken up")
        faults += scene.end_faults(place)
        found.faults += [f"{scene.name}, point {point}{' and again' if again else ''}: {fault}" for fault in faults]
        shutil.rmtree(place)
    found.seconds = time.monotonic() - begun
    return found


def forked(work: Callable[[], object]) -> bool:
    """Run `work` in a process of its own; return True if that was killed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise AssertionError(f"the session's process failed with {os.WEXITSTATUS(status)}")
    return False


def play(scene: Scene, place: Path, kill_at: int, kill_after: float) -> int:
    """Continue the scene at `place` to its end; return the number of operations."""
    place.mkdir(parents=True, exist_ok=True)
    killer = Killer(kill_at)
    killer.install()
    if kill_after:
        signal.signal(signal.SIGALRM, lambda *_: die())
        signal.setitimer(signal.ITIMER_REAL, kill_after)
    asyncio.run(_played(scene, place))
    return killer.done


async def _played(scene: Scene, place: Path) -> None:
    await scene.play(place)
