"""Reads of a command that is not known to be read-only, as far as its words tell.

There are two kinds: sources, which are certainly read (by `cp`, `mv`, `ln`, `tar` and the like, and by options of
known writers), and mentions, which an unknown program may read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui_agent.permissions.shell.syntax import names

from .argv import is_known, is_remote, parse_arguments
from .catalogue import canonical_name, read_only_command, wrapper, writer

_READ_SOURCES = names("cp mv ln link install rsync scp ditto zip gzip gunzip bzip2 bunzip2 xz unxz zstd split csplit")
"""Commands whose sources or operands are read."""
_SCRIPTED = names("sed awk")
"""Commands whose first operand is a program."""
_TEXT_ONLY = ("ANY", "TEXT", "NONE")
_CREATE_FIRST = names("zip")
_NO_READERS = names(
    "rm rmdir unlink shred trash touch truncate mkdir mkfifo mknod mktemp tee fallocate chmod chown chgrp chattr chcon "
    "setfacl setfattr kill killall pkill"
)
"""Commands that read none of the files their words name."""
_MESSAGES = names("-m --message --title --body --notes --description")
"""Options whose value is text for readers."""
_EXCLUDING = re.compile(r"--?[\w-]*(?:ignore|exclude|skip|omit|without)[\w-]*(?:=|\Z)")
_ATTACHED = re.compile(r"-[A-Za-z](?=[^-=])")


@dataclass(frozen=True, slots=True)
class Sources:
    """Reads of a command, as far as its words tell."""

    read: tuple[str, ...] = ()
    """Paths that are read, directories with everything below them."""
    mentioned: tuple[str, ...] = ()
    """Texts that may be paths that are read."""
    open: tuple[str, ...] = ()
    """Reads of a reader whose paths only the running shell knows."""


def sources_of(words: Sequence[str]) -> Sources:
    """Return the reads of a command's words, its name included, as the shell would pass them."""
    if not words:
        return Sources()
    name = canonical_name(words[0])
    if name in _NO_READERS:
        return Sources()
    if name == "dd":
        return Sources(tuple(word[3:] for word in words[1:] if word.startswith("if=")))
    if name in ("tar", "unzip", "cpio"):
        return Sources(tuple(word for word in _operands(words[1:]) if not is_remote(word)))
    entry = writer(name) or wrapper(name)
    found = parse_arguments(entry, words[1:]) if entry else None
    if found is None or entry is None or name not in _READ_SOURCES:
        read = tuple(found.read) if found else ()
        return Sources(read, tuple(_mentions(words[1:])), tuple(_open_operands(name, words[1:])))
    # The first operand of zip is the archive it makes.
    taken = found.sources if entry.writes in ("LAST", "MOVE") else found.operands[name in _CREATE_FIRST :]
    return Sources(tuple(word for word in (*taken, *found.read) if not is_remote(word)))


def _operands(words: Sequence[str]) -> Iterator[str]:
    """Yield operands, and values attached to their option.

    Leading letters such as in `tar xf` count as a file name; no file has it.
    """
    for word in _without_exclusions(words):
        if not word.startswith("-"):
            yield word
        elif "=" in word:
            yield word.partition("=")[2]
        elif _ATTACHED.match(word):
            yield word[2:]


def _open_operands(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the uncertain operands of a reader, without the pattern or program it may begin with."""
    command = read_only_command(name)
    if (command is None or command.reads in _TEXT_ONLY) and name not in _SCRIPTED:
        return
    operands = [word for word in words if not word.startswith("-")]
    skips = name in _SCRIPTED or (command is not None and command.reads in ("PATTERN", "SEARCH"))
    yield from (word for word in operands[skips:] if not is_known(word))


def _mentions(words: Sequence[str]) -> Iterator[str]:
    """Yield words other than exclusions and messages."""
    kept = list(_without_exclusions(words))
    for before, word in pairwise(("", *kept)):
        if before not in _MESSAGES and not re.match(r"https?://", word):
            yield word


def _without_exclusions(words: Sequence[str]) -> Iterator[str]:
    for before, word in pairwise(("", *words)):
        if not _EXCLUDING.match(word) and not (_EXCLUDING.match(before) and "=" not in before):
            yield word
