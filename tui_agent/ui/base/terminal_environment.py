"""What the screen stands in: the terminal's wishes, the directory, and the time. Read once, handed down."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.regular_file import read_regular_file

_LARGEST_POINTER = 65_536
"""Largest size in bytes of a file in which git names a branch or a directory."""

Clock = Callable[[], float]
"""Seconds on a clock that never goes back; tests bring their own."""


@dataclass(frozen=True, slots=True)
class TerminalEnvironment:
    """How to behave in this terminal."""

    no_color: bool = False
    """No colours at all (`NO_COLOR`, `TERM=dumb`)."""
    reduced_motion: bool = False
    """Nothing spins or slides (`TUI_AGENT_REDUCED_MOTION`, `TERM=dumb`)."""
    clock: Clock = time.monotonic

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], *, reduced_motion: bool = False) -> "TerminalEnvironment":
        """What the environment asks for; `reduced_motion` is the setting of the same name."""
        dumb = environment.get("TERM") == "dumb"
        still = environment.get("TUI_AGENT_REDUCED_MOTION", "") not in ("", "0")
        return cls(no_color=bool(environment.get("NO_COLOR")) or dumb, reduced_motion=still or reduced_motion or dumb)


@dataclass(frozen=True, slots=True)
class WorkingDirectory:
    """Where the agent works, as the title bar shows it."""

    directory: str = ""
    """The working directory, with `~` for the home directory."""
    branch: str = ""
    """The checked-out branch; empty outside a repository."""

    @classmethod
    def of(cls, directory: Path, home: Path) -> "WorkingDirectory":
        """The place of a directory; reads at most a few small files of its repository."""
        text = str(directory)
        if directory == home or home in directory.parents:
            text = str(Path("~") / directory.relative_to(home))
        return cls(text, _branch_of(directory))


def _branch_of(directory: Path) -> str:
    """Name of the branch, or the start of the commit's hash; empty where it cannot be told."""
    for folder in (directory, *directory.parents):
        pointer = folder / ".git"
        try:
            if os.path.isfile(pointer):
                pointer = folder / _small_text(pointer).removeprefix("gitdir:").strip()
            head = _small_text(pointer / "HEAD").strip()
        except (OSError, UnicodeDecodeError):
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:7]
    return ""


def _small_text(path: Path) -> str:
    return read_regular_file(str(path), _LARGEST_POINTER).decode("utf-8")
