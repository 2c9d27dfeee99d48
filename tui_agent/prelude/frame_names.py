"""Names of the files with start pages: digests of everything that the page depends on.

A page is shown only if nothing of that has changed since it was painted, so it never shows an old mode or model.
"""

import os
import sys
from _blake2 import blake2b

from tui_agent import __version__

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VARIABLES = (
    "COLORFGBG", "COLORTERM", "FORCE_COLOR", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR", "TERM", "TERM_PROGRAM",
    "XDG_CONFIG_HOME", "XDG_STATE_HOME",
)  # fmt: skip
_PREFIXES = ("TUI_AGENT_", "TEXTUAL_", "RICH_")
_MOST_THEMES = 64
_MOST_FOLDERS = 64
_SMALL = 4096


class FrameNames:
    """The names for one start of the program."""

    def __init__(self, arguments: "Sequence[str]", environment: "Mapping[str, str]") -> None:
        """Look at everything that the page depends on. Blocks."""
        config, state = user_directories(environment)
        self.folder = f"{state}/start"
        """Directory of the files."""
        themes = f"{config}/themes"
        variables = sorted(
            item for item in environment.items() if item[0] in _VARIABLES or item[0].startswith(_PREFIXES)
        )
        # Only whether they exist: one of them is a key.
        variables += sorted((name, "") for name in environment if name.startswith("ANTHROPIC_"))
        theme = [arguments[place : place + 2] for place, each in enumerate(arguments) if each.startswith("--theme")]
        kind = [environment.get(name) for name in ("TERM", "TERM_PROGRAM")]
        self.light_mark = self._path("light", kind)
        """Path of an empty file that exists if the terminal last reported a light background."""
        self.light = os.path.exists(self.light_mark)
        """True if it exists."""
        self._look = [__version__, self.light, variables, theme, _state_of(f"{config}/config.toml"), _state_of(themes)]
        self._look += [_state_of(f"{themes}/{name}") for name in _names_in(themes)]
        folder = os.getcwd()
        self._launch = [*arguments, folder, _state_of(f"{folder}/.tui-agent/config.toml")]
        self._launch += [_state_of(f"{state}/trust/{_digest_of(folder)}.json"), _head_of(folder)]

    def page(self, columns: int, lines: int) -> str:
        """Return the path of the page for a window of this size."""
        return self._path("page", self._look, self._launch, columns, lines)

    def look(self, columns: int, lines: int) -> str:
        """Return the path of the page without its text, which any start with the same theme may use."""
        return self._path("look", self._look, columns, lines)

    def _path(self, kind: str, *facts: object) -> str:
        # A digest, because arguments and variables may hold a secret.
        return f"{self.folder}/{_digest_of(repr((kind, facts)))}"


def user_directories(environment: "Mapping[str, str]") -> tuple[str, str]:
    """Return the user's directories for settings and for state, as `Locations` does, whose library loads slowly."""
    if home := environment.get("TUI_AGENT_HOME"):
        return f"{home}/config", f"{home}/state"
    if sys.platform == "darwin":
        both = os.path.expanduser("~/Library/Application Support")
        defaults = both, both
    else:
        defaults = os.path.expanduser("~/.config"), os.path.expanduser("~/.local/state")
    names = "XDG_CONFIG_HOME", "XDG_STATE_HOME"
    config, state = (environment.get(name, "").strip() or path for name, path in zip(names, defaults, strict=True))
    return f"{config}/tui-agent", f"{state}/tui-agent"


def _digest_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _state_of(path: str) -> tuple[int, ...]:
    """Return what changes with a file's content; empty for a missing file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST_THEMES]
    except OSError:
        return []


def _head_of(folder: str) -> str:
    """Return the text in which git names the branch; empty outside a repository."""
    for _ in range(_MOST_FOLDERS):
        pointer = f"{folder}/.git"
        if os.path.isfile(pointer):
            pointer = os.path.join(folder, _small_text(pointer).removeprefix("gitdir:").strip())
        if head := _small_text(f"{pointer}/HEAD"):
            return head
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return ""


def _small_text(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _SMALL).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
