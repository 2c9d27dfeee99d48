"""Files that differ from an earlier state: the list for a session, the differences of one file, and undo."""

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tui_agent.protocol.amounts import bytes_text
from tui_agent.protocol.diffs import NO_DIFF, NOTHING, Diff, DiffHunk
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import (
    FileChanged,
    FileState,
)
from tui_agent.protocol.facts.change_facts import ChangedFile, FileDifference, FileStep
from tui_agent.tools.file_states import (
    CONTENT_LIMIT,
    DIFFED_LIMIT,
    ContentStore,
    content_of,
    diff_between,
    read_file_state,
    same_file,
)
from tui_agent.tools.file_versions import digest_of
from tui_agent.tools.pinned_directory import open_regular_file
from tui_agent.tools.text_format import is_binary, printable_name

from .planner import CHANGED_SINCE, NOT_KEPT, NOT_KNOWN, by_path, kind_of_step

_COUNT_SECONDS = 0.5
"""Most seconds for counting lines of a list; other files are counted when they are shown."""
_TOO_LARGE = "it is too large to be saved, so an undo could not be undone"
_HAS_CHANGED = "it changed after its differences were shown; it was not touched"


def restores_start(steps: Iterable[FileStep], changes: Iterable[FileChanged]) -> bool:
    """Return True if the steps bring each of their files to its state before the session."""
    first = {Path(path): recorded[0].before for path, recorded in by_path(changes).items()}
    return all(step.path in first and same_file(first[step.path], step.target) for step in steps)


def changed_files(
    changes: Iterable[FileChanged], contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[ChangedFile, ...]:
    """Return the files that a session has changed and that are not as they were before, by name. Blocks."""
    deadline = time.monotonic() + _COUNT_SECONDS
    found: list[ChangedFile] = []
    for name, recorded in by_path(changes).items():
        file = _changed_file(Path(name), recorded[0], recorded[-1], shown)
        if file is None:
            continue
        if not file.problem and time.monotonic() < deadline:
            diff = compare(file, file.before, content_of(file.before, contents)).diff
            file = replace(file, counts=(diff.added, diff.removed)) if diff else file
        found.append(file)
    return tuple(sorted(found, key=lambda file: file.shown))


def _changed_file(
    path: Path, first: FileChanged, last: FileChanged, shown: Callable[[Path], str]
) -> ChangedFile | None:
    """Return a file that the session has changed; None if it is as before."""
    file = ChangedFile(path, shown(path), "changed", "session", before=first.before)
    try:
        now = read_file_state(path, None)
    except OSError as error:
        return replace(file, problem=f"it cannot be read: {error.strerror or error}")
    if first.known and same_file(now, first.before):
        return None
    file = replace(file, change="deleted" if now is None else "added" if first.before is None else "changed")
    if not first.known:
        return replace(file, change="changed", problem=NOT_KNOWN)
    if first.before is not None and not first.before.kept:
        return replace(file, problem=NOT_KEPT)
    is_others = last.known and not same_file(now, last.after)
    return replace(file, note=f"{CHANGED_SINCE}; that change is shown here, too") if is_others else file


# --- the differences of one file --------------------------------------------------------------------------------------


def compare(file: ChangedFile, before: FileState | None, content: bytes | None) -> FileDifference:
    """Return the differences between an earlier state of a file, None without one, and the present one. Blocks.

    The earlier content is empty if there was none, and None if it is not known.

    Raises:
        OSError: the file cannot be read.
    """
    now = read_file_state(file.path, None)
    present = _present_content(file.path, now)
    problem = file.problem
    if now is not None and now.size > CONTENT_LIMIT:
        problem = problem or _TOO_LARGE
    notes = [*([file.note] if file.note else ()), *_notes(file, before, now)]
    if content is None or present is None:
        notes += [] if problem else [_size_note(before, now)]
        return FileDifference(file, NO_DIFF, before, now, tuple(notes), problem)
    names = (_side("a", file.old_shown or file.shown, before), _side("b", file.shown, now))
    if any(state is not None and state.is_link for state in (before, now)):
        return FileDifference(
            file, NO_DIFF, before, now, (*notes, *_link_notes(before, now, content, present)), problem
        )
    diff = diff_between(content, present, names) or NO_DIFF
    if not diff and content != present:
        is_text = not (is_binary(content) or is_binary(present))
        notes.append("too large to be compared line by line" if is_text else _binary_note(before, now))
    # Only if all parts together give the earlier content is each of them certain.
    has_parts = (
        bool(diff) and before is not None and now is not None and _undone(diff.hunks, content, present) == content
    )
    return FileDifference(file, diff, before, now, tuple(notes), problem, has_parts and not problem)


def _present_content(path: Path, now: FileState | None) -> bytes | None:
    """Return the content of a file in a state; None if it is large, or has changed meanwhile."""
    if now is None:
        return b""
    if now.is_link:
        return os.fsencode(os.readlink(path))
    if now.size > DIFFED_LIMIT:
        return None
    with open_regular_file(path, str(path)) as (descriptor, _), open(descriptor, "rb", closefd=False) as file:
        content = file.read(DIFFED_LIMIT + 1)
    # It may have changed between the two looks.
    return content if digest_of(content) == now.digest else None


def _side(letter: str, shown: str, state: FileState | None) -> str:
    return NOTHING if state is None else f"{letter}/{printable_name(shown)}"


def _notes(file: ChangedFile, before: FileState | None, now: FileState | None) -> Iterator[str]:
    if file.old_shown:
        yield f"renamed from {printable_name(file.old_shown)}"
    if before is None or now is None:
        return
    if before.is_link != now.is_link:
        yield "a file became a symbolic link" if now.is_link else "a symbolic link became a file"
    elif not now.is_link and stat.S_IMODE(before.mode) != stat.S_IMODE(now.mode):
        yield f"mode {before.mode:o} → {now.mode:o}"


def _link_notes(before: FileState | None, now: FileState | None, content: bytes, present: bytes) -> Iterator[str]:
    for words, state, target in (("pointed", before, content), ("points", now, present)):
        if state is not None and state.is_link:
            yield f"a symbolic link that {words} to {printable_name(os.fsdecode(target))}"


def _binary_note(before: FileState | None, now: FileState | None) -> str:
    sizes = " → ".join("nothing" if state is None else bytes_text(state.size) for state in (before, now))
    return f"a binary file: {sizes}"


def _size_note(before: FileState | None, now: FileState | None) -> str:
    largest = max((state.size for state in (before, now) if state is not None), default=0)
    return f"too large to be compared line by line: {bytes_text(largest)}"


# --- undo -------------------------------------------------------------------------------------------------------------


def undo_steps(
    shown: FileDifference, content: bytes | None, parts: Collection[int] | None, contents: ContentStore
) -> tuple[FileStep, ...]:
    """Return the steps that undo the differences of a file as the user saw them. Blocks.

    The content that they write is saved in `contents`.

    Args:
        content: the earlier content; empty if the file did not exist, None if it is not known.
        parts: indices into `shown.diff.hunks`, from 0; None: everything.

    Raises:
        ToolError: the file has changed since, or its earlier content is not known.
        OSError: the file cannot be read.
    """
    file, before, now = shown.file, shown.before, shown.now
    if shown.problem:
        raise ToolError(shown.problem)
    if content is None or (before is not None and digest_of(content) != before.digest):
        raise ToolError("its earlier content is not there any more; it was not touched")
    if not same_file(read_file_state(file.path, None), now):
        raise ToolError(_HAS_CHANGED)
    if parts is not None and now is not None:
        present = _present_content(file.path, now)
        if present is None:
            raise ToolError(_HAS_CHANGED)
        hunks = [hunk for index, hunk in enumerate(shown.diff.hunks) if index in parts]
        lines = [line.kind for hunk in hunks for line in hunk.lines]
        # A step takes what it writes from the saved contents, so it must be there first.
        target = _saved(_undone(hunks, content, present), now.mode, contents)
        counted = Diff(counts=(lines.count("removed"), lines.count("added")))
        return (FileStep(file.path, file.shown, "restore", now, target, counted),)
    counted = Diff(counts=(shown.diff.removed, shown.diff.added))
    target = None if before is None else _saved(content, before.mode, contents, is_link=before.is_link)
    if file.old_path is None:
        return (FileStep(file.path, file.shown, kind_of_step(now, target), now, target, counted),)
    old = FileStep(file.old_path, file.old_shown, "create", read_file_state(file.old_path, None), target)
    if old.now is not None:
        raise ToolError(f"{file.old_shown} exists again; neither was touched")
    return (FileStep(file.path, file.shown, "delete", now, None, counted), old)


def _saved(content: bytes, mode: int, contents: ContentStore, *, is_link: bool = False) -> FileState:
    digest, kept = contents.put(content, durable=True)
    if not kept:
        raise ToolError("its earlier content cannot be saved, so it was not touched")
    return FileState(digest=digest, size=len(content), mode=0 if is_link else mode, is_link=is_link, kept=True)


def _undone(hunks: Iterable[DiffHunk], before: bytes, now: bytes) -> bytes:
    """Return the present content with the earlier lines in place of some hunks, byte for byte.

    Undoing all hunks gives the earlier content only if lines end where the diff says, which callers check.
    """
    old, new = _lines(before), _lines(now)
    # From the end, so that the places of the others stay.
    for hunk in sorted(hunks, key=lambda hunk: hunk.new_index, reverse=True):
        first, start = hunk.new_index, hunk.old_index
        new[first : first + hunk.new_count] = old[start : start + hunk.old_count]
    return b"".join(new)


def _lines(content: bytes) -> list[bytes]:
    *lines, last = content.split(b"\n")
    return [*(line + b"\n" for line in lines), *([last] if last else [])]
