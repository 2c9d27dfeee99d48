"""Records of what one command reads, changes and runs, as far as its words tell."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Reach = Literal["tracked", "untracked", "anything"]
"""Files that change below a pathspec: tracked ones, untracked ones that are not ignored, or all untracked ones."""

_CUTS = re.compile(r"[\s'\"`(),;:=<>|&+\[\]{}@#%^$]+")
_SHORT = re.compile(r"-\w")


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Filter for the files of a tree that a command reads or changes; the default is everything. Paths are relative."""

    wanted: tuple[str, ...] = ()
    """Patterns for file names; if there are any, only matching files are taken."""
    unwanted: tuple[str, ...] = ()
    """Patterns for names of excluded files."""
    without: tuple[str, ...] = ()
    """Patterns for names of directories excluded with their contents."""
    is_hidden_out: bool = False
    """True if hidden directories are excluded, and hidden files unless `has_hidden_files`."""
    has_hidden_files: bool = False
    below: tuple[str, ...] = ()
    """Patterns for paths; if there are any, only matches and the files below them are taken."""

    def enters(self, path: str) -> bool:
        """True if the command may take anything in a directory."""
        parts = path.split("/")
        is_out = any(_fits(part, self.without) for part in parts)
        return not is_out and not (self.is_hidden_out and any(part.startswith(".") for part in parts))

    def includes(self, path: str) -> bool:
        """True if the command may take a file."""
        above, _, name = path.rpartition("/")
        is_hidden = self.is_hidden_out and not self.has_hidden_files and name.startswith(".")
        if is_hidden or (above and not self.enters(above)) or _fits(name, (*self.without, *self.unwanted)):
            return False
        is_below = not self.below or any(_is_below(path, pattern) for pattern in self.below)
        return is_below and (not self.wanted or _fits(name, self.wanted))


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_below(path: str, pattern: str) -> bool:
    return _fits(path, (pattern, f"{pattern}/*")) or pattern.startswith(f"{path}/")


@dataclass(frozen=True, slots=True)
class Reads:
    """Everything that a read-only command does."""

    paths: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    """Directories read with everything below them."""
    listed: tuple[str, ...] = ()
    """Directories whose names are shown, with all names below them but no contents."""
    includes: FileFilter | None = None
    """Filter for the files read in `trees`; None for all."""
    shows_remote_urls: bool = False
    """True if the output includes the URLs of the repository's remotes."""
    from_top: bool = False
    """True if the reads may be anywhere in the repository, not only in `trees`."""
    follows_links: bool = False
    """True if links in `trees` are followed; none may lead out of its tree."""
    only_files: bool = False
    """True if links inside a directory are followed; no path may be a directory."""
    repository: str | None = None
    """Directory whose repository, with its settings, is used."""


@dataclass(frozen=True, slots=True)
class Write:
    """A path that is changed."""

    path: str
    whole: bool = False
    """True if everything below it is changed, too."""
    below: bool = False
    """True if it may be a directory in which some files are changed."""
    includes: FileFilter | None = None
    """Filter for these files, which a formatter or the like rewrites in place; None for any change."""
    is_mount: bool = False
    """True if a container gets it."""
    reach: Reach | None = None
    """Files that change below it, if it is a pathspec; None for any other path."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A directory, or an archive, and the path its contents go to."""

    source: str | None
    """Path of the directory or archive; None for one that the words do not name, a patch or another machine's."""
    into: str
    is_archive: bool = False
    is_merged: bool = True
    """False if it fails where a directory with contents exists."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One command with its arguments.

    `reads` tells everything or is None. The other fields tell what is certain or possible for any command: a program
    can change files that its words do not name.
    """

    reads: Reads | None = None
    """None if it is not known to be read-only."""
    writes: tuple[Write, ...] = ()
    mentions: tuple[Write, ...] = ()
    """Paths that it may change or only read."""
    attached: tuple[Write, ...] = ()
    """Parts of unknown options that may be paths that it changes."""
    code: tuple[str, ...] = ()
    """Programs in other languages, which may name paths anywhere."""
    runs_in: str | None = None
    """Directory that it changes to first."""
    works_in: tuple[str, ...] = ()
    """Directories that it works in."""
    copies: tuple[Copy, ...] = ()
    """Files and directories copied with their contents, and archives unpacked."""
    links: tuple[str, ...] = ()
    """Files and directories that get another name, through which later commands may change them."""
    repositories: tuple[str, ...] = ()
    """Directories of repositories' data that it makes, whose names do not tell what they are."""
    unknown: tuple[str, ...] = ()
    """Words of a program without facts, each perhaps a path that it changes."""
    changes_tracked: bool = False
    """True if it may change any tracked file of its repository."""
    changes_matches: bool = False
    """True if it changes the files that it finds, or passes them to a command that may."""
    sources: tuple[str, ...] = ()
    """Paths that it reads, directories with everything below them."""
    searches: tuple[str, ...] = ()
    """Directories that it may read with everything below them, though it is not known to be read-only."""
    may_read: tuple[str, ...] = ()
    """Texts that may be paths that it reads."""
    open_reads: tuple[str, ...] = ()
    """Reads whose paths only the running shell knows."""


def writes_to(paths: Iterable[str]) -> tuple[Write, ...]:
    """Return plain writes of paths, without empty ones and duplicates."""
    return tuple(Write(path) for path in dict.fromkeys(paths) if path)


def pieces_of(text: str) -> Iterator[str]:
    """Yield everything in a text that may be a path, split wherever a program may split it."""
    for piece in _CUTS.split(text):
        if piece:
            yield piece
            yield from (piece.lstrip("-+?"),) if piece[0] in "-+?" else ()
            # Such as the level before the file in `vim -V9file`.
            bare = piece.lstrip("-+?0123456789")
            if 3 < len(bare) < len(piece):
                yield bare
            if _SHORT.match(piece):
                yield from (piece[at:] for at in range(2, min(len(piece), 6)) if len(piece) - at > 3)


def attached_paths(words: Iterable[str]) -> tuple[Write, ...]:
    """Return what may be a path in words with options that the facts do not explain."""
    return writes_to(one for word in words for one in (word, *pieces_of(word)))
