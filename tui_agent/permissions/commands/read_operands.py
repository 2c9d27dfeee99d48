"""Reads of a command that is not known to be read-only, as far as its words tell.

There are two kinds: sources, which are certainly read (by `cp`, `mv`, `ln`, `tar` and the like, and by options of
known writers), and mentions, which an unknown program may read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui_agent.permissions.shell.syntax import UNKNOWN, names

from .argv import Arguments, is_known, is_remote, parse_arguments
from .catalogue import canonical_name, matching_row, read_only_command
from .read_only_check import is_mostly_read_only
from .sed_scripts import sed_effects

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
_WEB_CLIENTS = names("curl http https httpie xh hurl gh glab")
_SENT_FILE = re.compile(r"(?:\A(?:-[A-Za-z])?|=)[@<](?:@)?([^;]+)|\Afile:/{0,2}(?:localhost)?(/.+)", re.IGNORECASE)
_FROM_LIST = re.compile(r"-?[A-Za-z]*T|--files-")
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
        is_listed = name == "cpio" or any(_FROM_LIST.match(word) for word in words[1:])
        read = tuple(word for word in _operands(words[1:]) if not is_remote(word))
        return Sources(read, open=(UNKNOWN,) if is_listed else ())
    row = matching_row(words)
    found = parse_arguments(*row) if row else Arguments()
    read = [*found.paths, *_at_files(name, words[1:])]
    if name == "curl":
        named = (
            value
            for option in ("--data-urlencode", "--variable", "--url-query")
            for value in found.given.get(option, ())
        )
        read.extend(value.partition("@")[2] for value in named if "@" in value)
        cookies = (value for option in ("-b", "--cookie") for value in found.given.get(option, ()))
        read.extend(value for value in cookies if value and "=" not in value)
    listed = (UNKNOWN,) if found.reads_listed or (name == "zip" and found.has("-@", "--names-stdin")) else ()
    if name == "git" and row and row[0].name == "git grep":
        read.append(".")
    if name == "sed":
        read.extend(sed_effects(words).read)
    if row is None or name not in _READ_SOURCES:
        return Sources(tuple(read), tuple(_mentions(name, words[1:])), (*_open_operands(name, words[1:]), *listed))
    # The first operand of zip is the archive it makes.
    taken = found.sources if row[0].writes in ("LAST", "MOVE") else found.operands[name in _CREATE_FIRST :]
    return Sources(tuple(word for word in (*taken, *read) if not is_remote(word)), open=listed)


def _at_files(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the files that a client for the web sends, such as of `-d @file`, or shows."""
    if name in _WEB_CLIENTS:
        for word in words:
            yield from (path for groups in _SENT_FILE.findall(word) for path in groups if path)


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


def _mentions(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield words other than exclusions and messages."""
    kept = list(_without_exclusions(words))
    messages = () if name != "git" and is_mostly_read_only(name) else _MESSAGES
    for before, word in pairwise(("", *kept)):
        if before not in messages and not re.match(r"https?://", word):
            yield word


def _without_exclusions(words: Sequence[str]) -> Iterator[str]:
    for before, word in pairwise(("", *words)):
        if not _EXCLUDING.match(word) and not (_EXCLUDING.match(before) and "=" not in before):
            yield word
