"""The ways to run a command in a trial, each of which works on every Linux machine with user namespaces."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.trial.command_walls import BubblewrapWalls, LandlockWalls
from tui_agent.trial.trial_layer import TrialLayer
from tui_agent.trial.trials import Trials
from tui_agent.walls.bubblewrap import Bubblewrap, found_bubblewraps

OLD = Path("/opt/bwrap/usr/bin/bwrap")
"""A bubblewrap that cannot mount layers, where this machine has one."""
UNSHARE = (shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--mount")


def walls_of(way: str) -> BubblewrapWalls | LandlockWalls:
    """Return the walls of a way by its name."""
    newest = found_bubblewraps(Path("/nowhere"))[0]
    old = Bubblewrap(OLD, False) if OLD.exists() else newest
    return {
        "overlay": BubblewrapWalls(newest, True),
        "unshare": BubblewrapWalls(old, True, UNSHARE),
        "unshare with the newest": BubblewrapWalls(newest, True, UNSHARE),
        "read-only": BubblewrapWalls(newest, False),
        "read-only with an old one": BubblewrapWalls(old, False),
        "Landlock": LandlockWalls(),
    }[way]


LAYERS = ("overlay", "unshare", "unshare with the newest")
READ_ONLY = ("read-only", "read-only with an old one")
LANDLOCK = "Landlock"
"""It has neither a loopback nor a `/tmp`: `TMPDIR` names another one."""


@dataclass(frozen=True)
class Ran:
    """Result of a command."""

    code: int
    text: str
    layer: TrialLayer


def force(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trials use one way only."""
    monkeypatch.setattr(Trials, "_ways", lambda _: iter([walls_of(way)]))


def run_in(layer: TrialLayer, script: str, environment: Mapping[str, str] | None = None, timeout: float = 60) -> Ran:
    """Run a script of bash in a layer to its end."""
    variables = {**child_environment(os.environ, is_confined=True), **(environment or {})}
    command = layer.walled(("/bin/bash", "--noprofile", "--norc", "-c", script), variables)
    done = subprocess.run(
        command.argv,
        env=command.environment,
        pass_fds=command.descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=timeout,
        start_new_session=True,
    )
    assert layer.started(done.stdout, done.returncode) == ""
    layer.end()
    return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), layer)


def wait_for_removals(trials: Trials) -> None:
    """Wait until the mounts of all ended commands and all discarded layers are removed."""
    assert trials._held is not None
    trials._held._later.submit(int).result()


def tree_state(top: Path) -> dict[str, object]:
    """Return type, mode, time and content of everything in a directory, by path."""
    found: dict[str, object] = {}
    for directory, directories, files in os.walk(top):
        for path in [Path(directory), *(Path(directory, name) for name in (*directories, *files))]:
            status = path.lstat()
            if path.is_symlink():
                content: object = os.readlink(path)
            else:
                content = path.read_bytes() if path.is_file() else b""
            changed = 0 if stat.S_ISFIFO(status.st_mode) else status.st_mtime_ns
            found[str(path)] = (status.st_mode, status.st_ino, status.st_uid, changed, content)
    return found


def made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, **more: Any
) -> Iterator[tuple[Trials, Path, Callable[..., Ran]]]:
    """Yield trials that use one way, their workspace, and a function that runs a script in a new layer."""
    force(way, monkeypatch)
    root = tmp_path / "work"
    root.mkdir(exist_ok=True)
    trials = Trials(root, tmp_path / "state" / "trials", "one", **more)
    try:
        yield trials, root, lambda script, **options: run_in(trials.open("call"), script, **options)
    finally:
        trials.close()
