"""Scripts of a project that its hooks run: what a hook does may change although its command stays the same."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.regular_file import read_regular_file, target_outside

from .file_hook import FileHook

PROJECT_DIR = "CLAUDE_PROJECT_DIR"
"""Variable with the directory of a hook's project."""
MAX_SCRIPTS = 500
"""Most scripts of one project whose content is read; of further ones, the status is compared."""

_VARIABLE = re.compile(r"\$(?:CLAUDE_PROJECT_DIR\b|\{CLAUDE_PROJECT_DIR[^}]*\})")
_WORDS = re.compile(r"[^\s;|&<>()=`]+")
_SUFFIXES = frozenset(
    (".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".awk",
     ".sed", ".jq")
)  # fmt: skip
_FOLDER = Path(".claude/hooks")

Status = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Script:
    """One script as it was read."""

    digest: str
    """SHA-256 of the content; of the status if the content was not read."""
    status: Status
    """Inode, size, times of content and of status: the same ones mean the same content."""


def read_scripts(hooks: Iterable[FileHook], known: Mapping[str, Script] | None = None) -> dict[str, Script]:
    """Return the scripts of a project's hooks by path. Blocks; never raises.

    These are the scripts in `.claude/hooks`, and those that the commands name; files without a script's suffix or
    permission, such as logs, do not count, nor do files outside the repository. `known` scripts of the same
    status are not read again.
    """
    found: dict[str, Script] = {}
    for path in _paths(hooks):
        try:
            status = os.stat(path)
        except OSError:
            continue
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        before = (known or {}).get(path)
        if before is not None and before.status == seen:
            found[path] = before
        elif status.st_mode & 0o111 or Path(path).suffix in _SUFFIXES:
            found[path] = Script(_digest(path, seen, is_read=len(found) < MAX_SCRIPTS), seen)
    return found


def changed_script(before: Mapping[str, Script], hooks: Iterable[FileHook]) -> str | None:
    """Return the path of a script that is not as it was, or is new or gone; None if all are the same. Blocks."""
    present = read_scripts(hooks, before)
    for path in dict.fromkeys((*before, *present)):
        if path not in before or path not in present or before[path].digest != present[path].digest:
            return path
    return None


def _paths(hooks: Iterable[FileHook]) -> Iterator[str]:
    """Yield the files that may be scripts, each once."""
    seen: set[str] = set()
    all_hooks = tuple(hooks)
    folders = dict.fromkeys(hook.project_dir for hook in all_hooks)
    # Those that commands name come first: their content is read even if a folder has very many others.
    named = ((hook.project_dir, path) for hook in all_hooks for path in _named(hook))
    listed = ((folder, path) for folder in folders for path in _listed(folder / _FOLDER))
    for folder, found in (*named, *listed):
        path = os.path.normpath(found)
        if path not in seen and os.path.isfile(path) and target_outside(Path(path), folder) is None:
            seen.add(path)
            yield path


def _named(hook: FileHook) -> Iterator[str]:
    """Yield the paths that a command may name."""
    folder = str(hook.project_dir)
    text = _VARIABLE.sub(lambda _: folder, re.sub("[\"']", "", hook.line))
    for word in _WORDS.findall(text):
        if "\0" not in word:
            yield os.path.join(folder, os.path.expanduser(word))


def _listed(folder: Path) -> Iterator[str]:
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "node_modules", ".git"))
        for name in sorted(names):
            yield os.path.join(top, name)


def _digest(path: str, status: Status, *, is_read: bool) -> str:
    if is_read:
        with suppress(OSError):
            return hashlib.sha256(read_regular_file(path)).hexdigest()
    # One that is too large to be read can still run, so that every change of it counts.
    return f"status {hashlib.sha256(repr(status).encode()).hexdigest()}"
