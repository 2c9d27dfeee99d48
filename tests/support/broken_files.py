"""Malformed files to put in the place of settings, themes, sessions and recordings."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

LARGE = 100_000_000


def _holding(content: bytes) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.write_bytes(content)

    return put


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGE)


def _link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _socket(path: Path) -> None:
    # Bind a relative name: the path of a test may exceed the length of a socket address.
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(before)


NOT_A_FILE: dict[str, Callable[[Path], None]] = {
    "directory": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": _socket,
    "endless": _link_to("/dev/zero"),
    "terminal": _link_to("/dev/tty"),
    "loop": _loop,
    "large": _large,
}
"""Paths that cannot be read as a file, or not completely."""

NO_TEXT: dict[str, Callable[[Path], None]] = {
    "not utf-8": _holding(b"model = '\xff\xfe'\n"),
    "utf-16": _holding("model = 'x'\n".encode("utf-16")),
    "surrogate": _holding(b"model = '\xed\xa0\x80'\n"),
    "nul": _holding(b"model = 'a\0b'\n"),
}
"""Content that is not text, and therefore neither TOML nor JSON."""

NO_TOML: dict[str, Callable[[Path], None]] = {
    "deep lists": _holding(b"model = " + b"[" * 10_000),
    "deep closed lists": _holding(b"model = " + b"[" * 200 + b"]" * 200),
    "deep tables": _holding(b"model = " + b"{a = " * 10_000),
    "deep key": _holding(b".".join([b"a"] * 20_000) + b" = 1\n"),
    "deep header": _holding(b"[" + b" . ".join([b'"a"'] * 20_000) + b"]\n"),
    "key given twice": _holding(b"model = 'x'\nmodel = 'y'\n"),
    "table given twice": _holding(b"[ui]\n[ui]\n"),
    "large number": _holding(b"max_steps = " + b"9" * 5_000 + b"\n"),
    "carriage returns": _holding(b"model = 'x'\rmax_steps = 3\r"),
    "escaped surrogate": _holding(b'model = "\\ud800"\n'),
    "escaped beyond": _holding(b'model = "\\U00110000"\n'),
    "cut": _holding(b"[permissions"),
}
"""Content that is not TOML."""

NO_SETTINGS: dict[str, Callable[[Path], None]] = {
    "date": _holding(b"model = 2020-01-01\n"),
    "time as a number": _holding(b"tool_timeout = 07:32:00\n"),
    "nan": _holding(b"tool_timeout = nan\n"),
    "infinity": _holding(b"tool_timeout = inf\n"),
    "infinite budget": _holding(b"[budget]\nseconds = inf\n"),
    "large hexadecimal": _holding(b"max_steps = 0x" + b"f" * 5_000 + b"\n"),
    "many at once": _holding(b"strategy = 'batched:" + b"9" * 5_000 + b"'\n"),
    "acting key": _holding(b'"\\u001b]0;x\\u0007\\u202e" = 1\n'),
    "long key": _holding(b"k" * 900_000 + b" = 1\n"),
    "section as a value": _holding(b"ui = 3\n"),
    "value as a section": _holding(b"[model]\nx = 1\n"),
    "empty key": _holding(b'"" = 1\n'),
}
"""TOML without valid settings."""

GOOD: dict[str, Callable[[Path], None]] = {
    "empty": _holding(b""),
    "byte order mark": _holding(b"\xef\xbb\xbf"),
    "line ends of Windows": _holding(b"# a\r\n"),
    "long line": _holding(b"# " + b"x" * 900_000),
    "dangling": _link_to("nowhere"),
}
"""Valid files that set nothing."""
