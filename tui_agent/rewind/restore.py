"""Restoring of one file to an earlier state. Its present content is stored first, and nothing else is replaced."""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.facts.rewind_facts import FileStep
from tui_agent.tools.atomic_write import replace_file, temporary_name
from tui_agent.tools.content_store import ContentStore
from tui_agent.tools.file_states import TreeChange, content_of, read_file_state, same_file
from tui_agent.tools.pinned_directory import ResolvedPath, pinned_directory


def carry_out(step: FileStep, contents: ContentStore, mark: str = "") -> tuple[TreeChange, ...]:
    """Carry out one step and return its change; none if the file already has its target state. Blocks.

    Args:
        step: what to do.
        contents: store for contents.
        mark: part of the names of temporary files, by which they are found if the program is killed; empty: any.

    Raises:
        ToolError: the step was not carried out: the file is not in the state that was shown to the user, or cannot be
            stored or written.
    """
    try:
        now = read_file_state(step.path, contents)
        if same_file(now, step.target):
            return ()
        if not same_file(now, step.now):
            raise ToolError("it changed after the page was shown; it was not touched")
        if now is not None and not now.kept and (step.kind != "delete" or step.is_conflict):
            raise ToolError("its present content cannot be saved, so it was not replaced")
        content = content_of(step.target, contents)
        if content is None:
            raise ToolError("its saved content is damaged or missing")
        if now is None and step.target is not None:
            _remove_empty_directory(step.path)
        if step.target is None:
            _delete(step.path)
        elif step.target.is_link or (now is not None and now.is_link):
            _put(step.path, step.target, content, mark)
        else:
            _write(step.path, step.shown, step.target, content, mark)
    except OSError as error:
        raise ToolError(error.strerror or str(error)) from error
    return (TreeChange(step.path, now, step.target),)


def order_steps(steps: Sequence[FileStep]) -> tuple[FileStep, ...]:
    """Return the steps in the order to carry them out: deletions first, inner paths before outer ones."""
    gone = [step for step in steps if step.target is None]
    return (
        *sorted(gone, key=lambda step: step.path, reverse=True),
        *(step for step in steps if step.target is not None),
    )


def _delete(path: Path) -> None:
    with pinned_directory(path.parent) as directory:
        os.unlink(path.name, dir_fd=directory)


def _remove_empty_directory(path: Path) -> None:
    """Remove a directory at the path of a former file if it contains nothing but directories.

    Raises:
        ToolError: the directory contains files.
        OSError: the directory cannot be removed.
    """
    with suppress(FileNotFoundError), pinned_directory(path.parent) as directory:
        if not stat.S_ISDIR(os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_mode):
            return
        if any(files for _, _, files, _ in os.fwalk(path.name, dir_fd=directory)):
            raise ToolError("it is a directory now, and not an empty one")
        for _, names, _, held in os.fwalk(path.name, topdown=False, dir_fd=directory):
            for name in names:
                os.rmdir(name, dir_fd=held)
        os.rmdir(path.name, dir_fd=directory)


def _write(path: Path, shown: str, target: FileState, content: bytes, mark: str) -> None:
    """Write the content and mode of a regular file."""
    place = ResolvedPath(path)
    before: os.stat_result | None = None
    try:
        with pinned_directory(path.parent) as directory:
            before = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        pass
    replace_file(place, content, before, shown, mark)
    with pinned_directory(path.parent) as directory:
        status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) != target.mode:
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fchmod(descriptor, target.mode)
            finally:
                os.close(descriptor)


def _put(path: Path, target: FileState, content: bytes, mark: str) -> None:
    """Create a symbolic link, or a file in place of one, atomically."""
    temporary = temporary_name(path.name, mark)
    with pinned_directory(path.parent, create=True) as directory:
        try:
            if target.is_link:
                os.symlink(os.fsdecode(content), temporary, dir_fd=directory)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
                    file.write(content)
                    os.fchmod(file.fileno(), target.mode)
            os.rename(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if error.errno != errno.ENOENT:
                os.unlink(temporary, dir_fd=directory)
            raise
