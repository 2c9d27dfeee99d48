"""The start page that the last start kept in a file: a picture in terminal sequences, and the names of such files.

A file is data: it is used only if it holds printable text and colours, of the right size. Its name is a digest of
everything that the page depends on, so that no page shows an old mode or model.
"""

import os
import stat
import sys
from _blake2 import blake2b

from tui_agent import __version__

from .typed_input import cells

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


LARGEST_FILE = 256 * 1024
"""Most bytes of a file."""
MOST_FILES = 64
"""Files that are kept; the oldest ones make room."""
_FORMAT = "tui-agent start page 1"
_NUMBERS = 5
_LONGEST_NUMBER = 4
_STYLE_CHARACTERS = frozenset("0123456789;:")
_PLAIN = "\x1b[0m"
_REVERSE = "\x1b[7m"
_SIGN = " › "
"""The sign in front of the composer, with its margins."""


class StartFrame:
    """Rows of the start page, and the composer's place in them."""

    __slots__ = ("_place", "columns", "cursor", "rows", "text")

    def __init__(
        self, rows: "Sequence[str]", columns: int, place: tuple[int, int, int], text: str, cursor: str
    ) -> None:
        """Create a frame.

        Args:
            place: row, first column and width of the composer, from 0.
            text: sequence for the colours of typed text.
            cursor: sequence for the colours of the cursor.
        """
        self.rows, self.columns, self._place = tuple(rows), columns, place
        self.text, self.cursor = text, cursor

    @property
    def width(self) -> int:
        """Width of the composer."""
        return self._place[2]

    def painted(self, typed: str) -> str:
        """Return the sequences that paint the page with this text in the composer."""
        rows = "".join(f"\x1b[{place + 1};1H{_PLAIN}{row}" for place, row in enumerate(self.rows))
        return rows + self.echoed(typed)

    def echoed(self, typed: str) -> str:
        """Return the sequences that paint the composer with a text, and put the terminal's cursor at the caret.

        Input methods draw there, although the cursor itself is hidden.
        """
        row, column, width = self._place
        size = sum(map(cells, typed))
        caret = f"\x1b[{row + 1};{column + size + 1}H"
        if not typed:
            return f"\x1b[{row + 1};1H{_PLAIN}{self.rows[row]}{caret}" if row < len(self.rows) else ""
        rest = " " * max(0, width - 1 - size)
        begin = f"\x1b[{row + 1};{column + 1}H{self.text}{typed}{_PLAIN}{self.cursor} "
        return f"{begin}{_PLAIN}{self.text}{rest}{_PLAIN}{caret}"

    def without_text(self) -> "StartFrame":
        """Return the frame with the composer's row alone, the rest in the colour of the page."""
        rows = [
            row if place == self._place[0] else f"{_first_style(row)}{' ' * self.columns}{_PLAIN}"
            for place, row in enumerate(self.rows)
        ]
        return StartFrame(rows, self.columns, self._place, self.text, self.cursor)

    @classmethod
    def empty(cls, columns: int, lines: int) -> "StartFrame":
        """Return an empty page with the composer's sign, for a terminal about whose colours nothing is known."""
        rows = [" " * columns] * lines
        row = max(0, lines - 2)
        width = max(0, columns - len(_SIGN))
        if width and lines:
            rows[row] = f"{_SIGN}{_REVERSE} {_PLAIN}{' ' * (width - 1)}"
        return cls(rows, columns, (row, len(_SIGN), width), _PLAIN, _REVERSE)

    # --- file ---------------------------------------------------------------------------------------------------------

    def encoded(self) -> bytes:
        """Return the content of a file."""
        numbers = " ".join(map(str, (self.columns, len(self.rows), *self._place)))
        return "\n".join((_FORMAT, numbers, self.text, self.cursor, *self.rows)).encode()

    @classmethod
    def decoded(cls, data: bytes, columns: int, lines: int) -> "StartFrame | None":
        """Return the frame in a file for a window of this size; None if the file holds anything else."""
        try:
            form, numbers, text, cursor, *rows = data.decode().split("\n")
        except ValueError:
            return None
        parts = numbers.split(" ")
        if form != _FORMAT or len(parts) != _NUMBERS or not all(map(_is_number, parts)):
            return None
        width, height, row, column, room = map(int, parts)
        fits = (width, height, len(rows)) == (columns, lines, lines) and row < lines and column + room <= columns
        if not fits or not all(map(_only_colours, rows)) or (_words_of(text), _words_of(cursor)) != ("", ""):
            return None
        return cls(rows, columns, (row, column, room), text, cursor)


def read_frame(path: str, columns: int, lines: int) -> StartFrame | None:
    """Return the frame in a file of the user's own; None if there is none that can be used. Blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
        data = os.read(descriptor, LARGEST_FILE) if own and status.st_size < LARGEST_FILE else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return StartFrame.decoded(data, columns, lines)


def write_frame(path: str, frame: StartFrame) -> None:
    """Write a frame to a file, unless it could not be read again. Blocks.

    Raises:
        OSError: the file cannot be written.
    """
    data = frame.encoded()
    if len(data) < LARGEST_FILE and StartFrame.decoded(data, frame.columns, len(frame.rows)) is not None:
        write_file(path, data)


def write_file(path: str, data: bytes) -> None:
    """Write a private file, whole or not at all, and delete the oldest of its directory beyond `MOST_FILES`. Blocks.

    Raises:
        OSError: the file cannot be written.
    """
    folder = os.path.dirname(path)
    _make_private(folder)
    new = f"{path}.{os.getpid()}"
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(new, path)
    except OSError:
        _delete(new)
        raise
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
    for entry in found[:-MOST_FILES]:
        _delete(entry.path)


def _make_private(folder: str) -> None:
    """Create a directory and its missing parents with mode 0700, which `os.makedirs` does not give to parents."""
    if not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        os.mkdir(folder, mode=0o700)


def _delete(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _only_colours(row: str) -> bool:
    return (words := _words_of(row)) is not None and words.isprintable()


def _words_of(row: str) -> str | None:
    """Return a row without its colours; None if it contains another sequence."""
    first, *parts = row.split("\x1b[")
    words = [first]
    for part in parts:
        style, end, text = part.partition("m")
        if not end or not _STYLE_CHARACTERS.issuperset(style):
            return None
        words.append(text)
    return "".join(words)


def _first_style(row: str) -> str:
    """Return the colours with which a row begins."""
    return row[: row.index("m") + 1] if row.startswith("\x1b[") else ""
