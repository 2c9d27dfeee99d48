"""Facts from the app's environment: the terminal's preferences, the clock and the working directory."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.regular_file import branch_of

_LIGHT_COLOURS = ("7", "15")
"""White and bright white among the sixteen colours of a terminal."""

Clock = Callable[[], float]
"""Returns monotonic seconds; tests pass a clock of their own."""


@dataclass(frozen=True, slots=True)
class TerminalEnvironment:
    """Preferences of the terminal and the user."""

    no_color: bool = False
    """True for no colours (`NO_COLOR`, `TERM=dumb`)."""
    reduced_motion: bool = False
    """True for no animation (`TUI_AGENT_REDUCED_MOTION`, `TERM=dumb`)."""
    clock: Clock = time.monotonic
    light: bool = False
    """True if the environment says that the background is light (`COLORFGBG`)."""

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], *, reduced_motion: bool = False) -> "TerminalEnvironment":
        """Return the preferences in an environment; `reduced_motion` is the setting of that name."""
        dumb = environment.get("TERM") == "dumb"
        still = environment.get("TUI_AGENT_REDUCED_MOTION", "") not in ("", "0")
        return cls(
            no_color=bool(environment.get("NO_COLOR")) or dumb,
            reduced_motion=still or reduced_motion or dumb,
            light=environment.get("COLORFGBG", "").rpartition(";")[2] in _LIGHT_COLOURS,
        )


@dataclass(frozen=True, slots=True)
class WorkingDirectory:
    """The agent's working directory, as the frame of the composer shows it."""

    directory: str = ""
    """The working directory, with `~` for the home directory."""
    branch: str = ""
    """The checked-out branch; empty outside a repository."""

    @classmethod
    def of(cls, directory: Path, home: Path) -> "WorkingDirectory":
        """Return a directory with its branch; reads at most a few small files of the repository."""
        text = str(directory)
        if directory == home or home in directory.parents:
            text = str(Path("~") / directory.relative_to(home))
        return cls(text, branch_of(directory))
