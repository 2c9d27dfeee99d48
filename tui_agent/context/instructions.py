"""Instruction files (AGENTS.md) of the user and of the repository, as layers of the system prompt.

The closest file comes last. `CLAUDE.md` is read where a directory has no `AGENTS.md`. Links out of the repository are
not followed; the user's own files may be links to anywhere. A mention such as `@docs/style.md` adds that file at the
end; mentions in code are text, and so are those of files that do not exist, such as names of users and packages.
"""

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tui_agent.protocol.regular_file import repository_root, target_outside

from .registry import ContextLayer

FILE_NAMES = ("AGENTS.md", "CLAUDE.md")
"""File names in order of preference; one file per directory is read."""

SIZE_CAP = 32 * 1024
"""Maximum bytes read of each file."""

INSTRUCTIONS_PRIORITY = 60

_OWNER = "instructions"

MAX_IMPORT_DEPTH = 5
"""Most files between an imported file and the one with the instructions, itself included."""
MAX_IMPORTS = 20
"""Most files that one instruction file imports."""

_MENTION = re.compile(r"(?:^|(?<=[\s(]))@([^\s@`]+)")
_CODE = re.compile(r"(`+)(?:(?!\1).)*\1")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_SHOWN_FOLDERS = frozenset((".agents", ".claude", ".github", ".tui-agent"))
"""Hidden folders that hold instructions; others, such as files with secrets, are not imported."""


def load_instructions(user_dir: Path | None, working_dir: Path) -> tuple[ContextLayer, ...]:
    """Read the instruction files that apply in `working_dir`, one layer a file. Blocks: call it in a thread.

    Order: `user_dir` (None: nothing of the user), then each directory from the repository root down to `working_dir`;
    outside a repository only `working_dir`. The layer of an unreadable file contains the error. Never raises.
    """
    own = load_own_instructions(user_dir) if user_dir else ()
    return (*own, *load_project_instructions(working_dir, own))


def load_own_instructions(user_dir: Path) -> tuple[ContextLayer, ...]:
    """Read the user's instructions for all projects. Blocks; never raises."""
    path = next((path for path in _candidates(user_dir) if _is_file(path)), None)
    if path is None:
        return ()
    root = _resolved(user_dir)
    return (_layer_of(path, lambda file: None if (real := _resolved(file)).is_relative_to(root) else real),)


def load_project_instructions(working_dir: Path, own: Sequence[ContextLayer] = ()) -> tuple[ContextLayer, ...]:
    """Read the instructions of the repository around `working_dir`, except files that are among the user's `own`.
    Blocks; never raises."""
    read = _resolved_paths(own)
    layers: list[ContextLayer] = []
    for directory in _down_to(working_dir):
        found = (path for path in _candidates(directory) if _is_file(path))
        path = next((path for path in found if _resolved(path) in read or not target_outside(path, directory)), None)
        if path is not None and _resolved(path) not in read:
            read.add(_resolved(path))
            layers.append(_layer_of(path, partial(target_outside, folder=directory)))
    return tuple(layers)


def foreign_instructions(working_dir: Path, own: Sequence[ContextLayer] = ()) -> tuple[tuple[Path, Path], ...]:
    """Return the instruction files that are not read because they lead out of the repository, each with its target.

    Files among the user's `own` are left out. Blocks; never raises.
    """
    read = _resolved_paths(own)
    found: list[tuple[Path, Path]] = []
    for directory in _down_to(working_dir):
        for path in _candidates(directory):
            outside = target_outside(path, directory) if _is_file(path) else None
            if outside is not None and _resolved(path) not in read:
                found.append((path, outside))
    return tuple(found)


def _down_to(working_dir: Path) -> Iterator[Path]:
    """Yield the directories from the repository root down to `working_dir`."""
    here = _resolved(working_dir)
    root = repository_root(here)
    yield from reversed([here, *(parent for parent in here.parents if parent.is_relative_to(root))])


def _candidates(directory: Path) -> Iterator[Path]:
    yield from (directory / name for name in FILE_NAMES)


def _resolved_paths(layers: Sequence[ContextLayer]) -> set[Path]:
    return {_resolved(Path(str(layer.metadata["path"]))) for layer in layers}


def _layer_of(path: Path, outside: Callable[[Path], Path | None]) -> ContextLayer:
    cut: list[str] = []
    read = partial(_read, cut=cut)
    imports = _Imports(path, read, outside)
    text = imports.text_with(path, read(path))
    return ContextLayer(
        name=f"{_OWNER}:{path}",
        content=f"Instructions from {path}:\n\n{text}",
        priority=INSTRUCTIONS_PRIORITY,
        tags=("system", _OWNER),
        owner=_OWNER,
        metadata={
            "path": str(path),
            **({"imports": list(map(str, imports.paths))} if imports.paths else {}),
            **({"cut": cut} if cut else {}),
        },
    )


def cut_instructions(layers: Sequence[ContextLayer]) -> tuple[str, ...]:
    """Return a message about each instruction file of which only the beginning is used."""
    files = [file for layer in layers for file in layer.metadata.get("cut", ())]
    return tuple(f"{file}: only the first {SIZE_CAP:,} bytes are used; shorten it, or split it" for file in files)


def _read(path: Path, cut: list[str]) -> str:
    """Return the text of a file, or why it cannot be read; add the file to `cut` if it is too long."""
    try:
        with path.open("rb") as file:
            # One byte more shows that something is left out.
            head = file.read(SIZE_CAP + 1)
    except OSError as error:
        return f"(This file could not be read: {error.strerror or error}.)"
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    # The cut may go through a character.
    text = head[:SIZE_CAP].decode(encoding, "ignore" if len(head) > SIZE_CAP else "replace").strip()
    if len(head) > SIZE_CAP:
        cut.append(str(path))
    return f"{text}\n\n(Cut here: only the first {SIZE_CAP} bytes are read.)" if len(head) > SIZE_CAP else text


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


class _Imports:
    """The files that one instruction file imports, in order of their first mention."""

    def __init__(self, path: Path, read: Callable[[Path], str], target_outside: Callable[[Path], Path | None]) -> None:
        self._read = read
        self._target_outside = target_outside
        """Returns the target of a path that may not be imported; None for others."""
        self._seen = {os.path.realpath(path)}
        self.paths: list[Path] = []
        """The files."""
        self._texts: list[str] = []

    def text_with(self, path: Path, text: str) -> str:
        """Return the text of the instruction file, followed by those of the imported files. Blocks."""
        self._add(path, text, 1)
        return "\n\n".join([text, *self._texts])

    def _add(self, path: Path, text: str, depth: int) -> None:
        for name in _mentions(text):
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
            if depth > MAX_IMPORT_DEPTH:
                self._texts.append(f"(@{name}: not imported, files import each other too deeply.)")
            elif self._target_outside(file) is not None:
                self._texts.append(f"(@{name}: not imported, it is outside the workspace.)")
            # The model cannot read a binary file.
            elif "\0" not in (imported := self._read(file)):
                self.paths.append(file)
                self._texts.append(f"Imported from {file}:\n\n{imported}")
                self._add(file, imported, depth + 1)


def _mentions(text: str) -> Iterator[str]:
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
