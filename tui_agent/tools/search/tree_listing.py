"""Listing of the files in a workspace that are watched for changes: those git tracks or would track.

Outside of git these are the files that no `.gitignore` excludes. A file that git has unchanged need not be read,
because git stores its content.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.git.read_only_git import read_git
from tui_agent.tools.pinned_directory import ResolvedPath

from .file_listing import walk_files
from .path_patterns import SearchScope

LISTING_SECONDS = 1.5
"""Most seconds for listing the names."""

_OBJECTS_SECONDS = 15.0
"""Most seconds for reading contents, which are needed to undo a change."""

_STATUS = ("status", "--porcelain=v1", "--branch", "-z", "--no-renames", "--ignore-submodules=dirty", "--", ".")

STATUS_COMMAND = " ".join(("git", *_STATUS))
"""Command line of `GitFiles.status`, to be judged by the permission rules."""

STATUS_SECONDS = 1.0
"""Most seconds for a status."""

_SUBMODULE = "160000"
_OBJECTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class TreeListing:
    """The files in a tree."""

    names: dict[str, str]
    """Path below the root → git object with its content; empty if the file itself has to be read."""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class GitFiles:
    """The files and contents that git has for a directory. Blocks."""

    root: Path
    is_trusted: bool = True
    """False if git may run only behind walls."""

    def list(self, *, compared: bool) -> TreeListing | None:
        """Return the tracked files and those neither tracked nor ignored; None if this is not a work tree.

        Args:
            compared: also compare the tracked files with git's objects, and name the objects of unchanged ones.
        """
        compare = ("-m", "-d") if compared else ()
        arguments = ("ls-files", "-z", "-v", "-s", "-c", "-o", *compare, "--exclude-standard")
        output = self._run(arguments, b"", LISTING_SECONDS)
        if output is None:
            return None
        names: dict[str, str] = {}
        changed: set[str] = set()
        for record in os.fsdecode(output).split("\0")[:-1]:
            if record.startswith("? "):
                names[record[2:]] = ""
                continue
            facts, _, name = record.partition("\t")
            tag, mode, identity, stage = facts.split(" ")
            # A submodule has files of its own, which its own repository knows.
            if mode != _SUBMODULE:
                names.setdefault(name, identity)
                # A lower-case tag marks a file that git assumes to be unchanged without looking.
                if tag != "H" or stage != "0":
                    changed.add(name)
        for name in changed if compared else names:
            names[name] = ""
        return TreeListing(names)

    def status(self) -> bytes | None:
        """Return the branch and the changed files below the directory, as `STATUS_COMMAND` writes them.

        None if this is not a work tree, or git does not answer in time.
        """
        return self._run(_STATUS, b"", STATUS_SECONDS)

    def contents(self, objects: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each object's name and content, in order; objects that git does not have are left out."""
        # In portions, as all contents of one are in memory at the same time.
        for start in range(0, len(objects), _OBJECTS_AT_ONCE):
            requests = "\n".join(objects[start : start + _OBJECTS_AT_ONCE]) + "\n"
            output = self._run(("cat-file", "--batch"), requests.encode(), _OBJECTS_SECONDS)
            yield from _read_objects(output or b"")

    def _run(self, arguments: tuple[str, ...], stdin: bytes, seconds: float) -> bytes | None:
        return read_git(self.root, arguments, seconds=seconds, stdin=stdin, is_trusted=self.is_trusted)


def walked_listing(root: Path) -> TreeListing:
    """Return the files of a directory that is not a work tree, except those that `.gitignore` excludes. Blocks.

    The listing is incomplete if the directory cannot be read, or not in time.
    """
    try:
        scope = SearchScope.of(ResolvedPath(root), root)
        listing = walk_files(scope, lambda: False, LISTING_SECONDS, links=True)
    except OSError:
        return TreeListing({}, complete=False)
    return TreeListing(dict.fromkeys(listing.names, ""), listing.complete)


def _read_objects(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each object in the output of `git cat-file --batch`."""
    position = 0
    while position < len(output):
        end = output.find(b"\n", position)
        head = output[position:end].split(b" ")
        position = end + 1
        if len(head) == 3 and head[1] == b"blob":
            size = int(head[2])
            yield head[0].decode(), output[position : position + size]
            position += size + 1
