"""Imports in instruction files: a mention such as `@docs/style.md` adds that file at the end.

Mentions in code are text, and so are those of files that do not exist, such as names of users and packages.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

MAX_DEPTH = 5
"""Most files between an imported file and the one with the instructions, itself included."""
MAX_IMPORTS = 20
"""Most files that one instruction file imports."""

_MENTION = re.compile(r"(?:^|(?<=[\s(]))@([^\s@`]+)")
_CODE = re.compile(r"(`+)(?:(?!\1).)*\1")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_SHOWN_FOLDERS = frozenset((".agents", ".claude", ".github", ".tui-agent"))
"""Hidden folders that hold instructions; others, such as files with secrets, are not imported."""


class Imports:
    """The files that one instruction file imports, in order of their first mention."""

    def __init__(self, path: Path, read: Callable[[Path], str], target_outside: Callable[[Path], Path | None]) -> None:
        """
        Args:
            path: the instruction file.
            read: returns the text of a file.
            target_outside: returns the target of a path that may not be imported; None for others.
        """
        self._read = read
        self._target_outside = target_outside
        self._seen = {os.path.realpath(path)}
        self.paths: list[Path] = []
        """The files."""
        self._texts: list[str] = []

    def text_with(self, path: Path, text: str) -> str:
        """Return the text of the instruction file, followed by those of the imported files. Blocks."""
        self._add(path, text, 1)
        return "\n\n".join([text, *self._texts])

    def _add(self, path: Path, text: str, depth: int) -> None:
        for name in mentions(text):
            # Only the text of a project could make this slow.
            if len(self._seen) > MAX_IMPORTS:
                self._texts.append(f"(@{name}: not imported, only {MAX_IMPORTS} files are.)")
                return
            file = path.parent / name
            real = os.path.realpath(file)
            # A link must not lead to a hidden file, either.
            target = os.path.relpath(real, os.path.realpath(path.parent))
            if not _is_importable(name, file) or _is_hidden(target) or real in self._seen:
                continue
            self._seen.add(real)
            if depth > MAX_DEPTH:
                self._texts.append(f"(@{name}: not imported, files import each other too deeply.)")
            elif self._target_outside(file) is not None:
                self._texts.append(f"(@{name}: not imported, it is outside the workspace.)")
            elif "\0" not in (imported := self._read(file)):
                self.paths.append(file)
                self._texts.append(f"Imported from {file}:\n\n{imported}")
                self._add(file, imported, depth + 1)


def mentions(text: str) -> Iterator[str]:
    """Yield the names of files that a Markdown text mentions with `@`, outside code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1][:3]
        elif not fence:
            for match in _MENTION.finditer(_CODE.sub("", line)):
                yield match[1].rstrip(".,;:!?)'\"")


def _is_importable(name: str, file: Path) -> bool:
    if not name.strip("./") or _is_hidden(name):
        return False
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except (OSError, ValueError):
        return False


def _is_hidden(path: str) -> bool:
    parts = (part for part in path.split("/") if part not in ("", ".", ".."))
    return any(part.startswith(".") and part not in _SHOWN_FOLDERS for part in parts)
