"""The files of a workspace that changes are looked for in: those git tracks or would track, else those not ignored.

What git has unchanged need not be read: git keeps its content.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .child_environment import child_environment, read_only_environment
from .file_listing import walk_files
from .ignore_rules import SearchScope
from .pinned_directory import ResolvedPath
from .programs import find_program

LISTING_SECONDS = 1.5
"""Longest time one look at the names may take."""

_OBJECTS_SECONDS = 15.0
"""The same for contents: without them a change cannot be taken back."""

_SUBMODULE = "160000"
_OBJECTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class TreeListing:
    """The files found."""

    names: dict[str, str]
    """Path below the root, and the git object that holds its content; empty where it has to be read."""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class GitFiles:
    """What git knows of a directory. Blocks."""

    root: Path
    program: Path

    @classmethod
    def of(cls, root: Path) -> "GitFiles | None":
        """None where there is no git."""
        program = find_program("git", root)
        return None if program is None else cls(root, program)

    def list(self, *, compared: bool) -> TreeListing | None:
        """The tracked files and those that are neither tracked nor ignored; None where this is no work tree.

        Args:
            compared: find out which tracked files are as git has them, and name the objects that hold those.
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
            if mode != _SUBMODULE:
                names.setdefault(name, identity)
                # Small letters are files that git was told to take for unchanged.
                if tag != "H" or stage != "0":
                    changed.add(name)
        for name in changed if compared else names:
            names[name] = ""
        return TreeListing(names)

    def contents(self, objects: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The contents git keeps under these names, by name; those it does not have are left out."""
        for start in range(0, len(objects), _OBJECTS_AT_ONCE):
            asked = "\n".join(objects[start : start + _OBJECTS_AT_ONCE]) + "\n"
            output = self._run(("cat-file", "--batch"), asked.encode(), _OBJECTS_SECONDS)
            yield from _read_objects(output or b"")

    def _run(self, arguments: tuple[str, ...], given: bytes, seconds: float) -> bytes | None:
        """Return the output of git; None if it fails or takes too long."""
        try:
            done = subprocess.run(
                (str(self.program), *arguments),
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.root,
                env=read_only_environment(child_environment(os.environ), self.root),
                timeout=seconds,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None


def walked_listing(root: Path) -> TreeListing:
    """The files of a directory that is no work tree, but for those that `.gitignore` files leave out. Blocks."""
    try:
        scope = SearchScope.of(ResolvedPath(root), root)
        listing = walk_files(scope, lambda: False, LISTING_SECONDS, links=True)
    except OSError:
        return TreeListing({}, complete=False)
    return TreeListing(dict.fromkeys(listing.names, ""), listing.complete)


def _read_objects(output: bytes) -> Iterator[tuple[str, bytes]]:
    """The objects in what `git cat-file --batch` writes."""
    place = 0
    while place < len(output):
        end = output.find(b"\n", place)
        head = output[place:end].split(b" ")
        place = end + 1
        if len(head) == 3 and head[1] == b"blob":
            size = int(head[2])
            yield head[0].decode(), output[place : place + size]
            place += size + 1
