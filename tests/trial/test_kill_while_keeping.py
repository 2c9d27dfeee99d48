"""A kill at any step of keeping: after the next start everything that was chosen is kept, or nothing is."""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_agent.protocol.trial import REPOSITORY
from tui_agent.trial.keeping import finish_keeping, keep_changes

from .layers import RealLayer, everything, outside, tree_of
from .test_repository_state import START, state_of

POINTS = int(os.environ.get("TRIAL_KILL_POINTS", "5"))
"""Number of points at which each case is killed, spread over all of them."""

SHORT = 80
"""Most calls of a case that is killed before each of them."""

CASES = {
    "files": (
        "mkdir -p d/e rep; echo a>a; echo b>d/b; echo c>d/e/c; echo x>rep/x; echo z>z; echo m>m; ln -s a l",
        "rm m; mkdir m; echo 1 > m/x; rm -r rep; echo 2 > rep; rm -r d; mkdir -p n/o; echo 3 > n/o/p; echo 4 >> a; "
        "chmod 755 z; ln -sf z l; touch ro; chmod 444 ro; ln a hard",
    ),
    "a directory for a file": ("echo m > m", "rm m; mkdir m; echo 1 > m/x"),
    "repository": (START, "echo 5 > a; rm d/b; git add -A; git commit -qm Five; git checkout -qb x/y; echo 6 > n"),
}

CALLS = ("rename", "link", "unlink", "mkdir", "rmdir", "chmod", "open", "fsync", "symlink", "removexattr", "write")
"""Functions of `os` that change something, or lead to a change."""
_PLAIN = {name: getattr(os, name) for name in CALLS}

Work = Callable[[], object]


def calls_until_killed(work: Work, last: int) -> int | None:
    """Do some work in a child that is killed before its call of `os` with a number.

    Returns:
        The number of its calls; None if it was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            count = _counted(last)
            work()
            _write(writing, str(count[0]).encode())
            status = 0
        finally:
            # Coverage writes its data before the end, and nothing of that is counted.
            vars(os).update(_PLAIN)
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        counted = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    assert status == 0
    return int(counted)


_write = os.write


def _counted(last: int) -> list[int]:
    """Count the calls of this process, and kill it before the last one."""
    count = [0]

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))
    return count


@pytest.fixture(params=["same file system", "another file system"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Directory for layers; on another file system, files are copied instead of renamed."""
    place = tmp_path / "layers"
    if request.param == "another file system":
        place = Path("/dev/shm", f"layers-{os.getpid()}-{tmp_path.name}")
    place.mkdir()
    yield place
    subprocess.run(["chmod", "-R", "u+rwx", str(place)], check=False)
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("case", CASES)
def test_everything_or_nothing_after_a_kill(tmp_path: Path, storage: Path, case: str) -> None:
    """Also where the next start is killed in the same way; no lock and no temporary file stays."""
    start, command = CASES[case]
    expected: dict[bool, object] = {}
    for is_kept in (False, True):
        place = tmp_path / f"expected-{is_kept}"
        place.mkdir()
        outside(place, start)
        if is_kept:
            outside(place, command)
        expected[is_kept] = state_of(place)
    seen: list[bool] = []
    number, step = 100_000, 1
    while number > 0:
        place, layer_directory = tmp_path / f"place-{number}", storage / str(number)
        place.mkdir()
        outside(place, start)
        layer = RealLayer.over(layer_directory, place)
        layer.run(command)
        changes = layer.changes()
        selection = everything(changes)
        total = calls_until_killed(
            lambda layer=layer, changes=changes, selection=selection: keep_changes(layer.directory, changes, selection),
            number,
        )
        calls_until_killed(lambda layer=layer: finish_keeping(layer.directory), number // 2 + 1)
        report = finish_keeping(layer.directory)
        assert report is None or report.problems == {}
        assert state_of(place) == expected[report is not None], (number, report)
        names = [path for path in tree_of(place) if path.endswith((".lock", ".tmp"))]
        assert names == [], number
        seen.append(report is not None)
        if total is not None:
            # Every point of what is short: a kill between two steps of one file needs one certain point.
            step, number = max(1, total // POINTS) if total > SHORT else 1, total + 1
        # The first call is always among them: nothing is kept then.
        number = max(number - step, 1) if number > 1 else 0
    assert set(seen) == {False, True}
    print(f"{len(seen)} kill points")


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_leaves_no_half_of_a_repository(tmp_path: Path, storage: Path, error: int) -> None:
    """One call fails, or no call that needs space works from then on: the state is kept, or as it was before.

    Where the old files are copies on another file system, a full disk may leave that to the next start.
    """
    start = START
    command = "echo 5 > a; rm d/b; git add -A; git commit -qm Five; git branch -D side; git checkout -qb x/y"
    expected: list[object] = []
    for number, commands in enumerate(((start,), (start, command))):
        (place := tmp_path / f"expected-{number}").mkdir()
        for one in commands:
            outside(place, one)
        expected.append(state_of(place))
    outcomes: set[bool] = set()
    number, step = 100_000, 0
    while number > 0:
        (place := tmp_path / f"place-{number}").mkdir()
        outside(place, start)
        layer = RealLayer.over(storage / str(number), place)
        layer.run(command)
        changes = layer.changes()
        with pytest.MonkeyPatch.context() as patch:
            count = _failing(patch, number, error)
            try:
                report = layer.keep(everything(changes), changes)
            except OSError:
                report = None
        is_kept = report is not None and report.repository
        assert is_kept or report is None or REPOSITORY in report.problems, number
        if report is None or "at the next start" not in report.problems.get(REPOSITORY, ""):
            assert state_of(place) == expected[is_kept], (number, report)
        assert [path for path in tree_of(place) if path.endswith((".lock", ".tmp"))] == [], number
        finish_keeping(layer.directory)
        assert state_of(place) == expected[is_kept], (number, report)
        outcomes.add(is_kept)
        step, number = step or max(1, count[0] // POINTS), min(number, count[0] + 1)
        number -= step
    assert outcomes == {False, True}


def _failing(patch: pytest.MonkeyPatch, first: int, error: int) -> list[int]:
    """Let one call of `os` fail; for a full disk, also all later ones that need space. Return the number of calls."""
    count = [0]

    def wrapped(function: Callable[..., Any], *, needs_space: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            is_full = error == errno.ENOSPC and needs_space and count[0] > first
            if count[0] == first or is_full:
                raise OSError(error, os.strerror(error))
            return function(*arguments, **options)

        return call

    for name in CALLS:
        if name not in ("open", "unlink"):
            needs_space = name in ("link", "mkdir", "symlink", "write", "fsync")
            patch.setattr(os, name, wrapped(getattr(os, name), needs_space=needs_space))
    return count
