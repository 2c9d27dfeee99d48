"""`tar`, `unzip` and other programs that unpack archives, whose members only the archive names."""

import re
from collections.abc import Sequence
from itertools import pairwise

from tui_agent.permissions.shell.syntax import UNKNOWN, names

from .argv import arguments_of, is_remote
from .catalogue import canonical_name, pairs
from .invocation import Copy, Invocation, Write, attached_paths, writes_to
from .row_effects import with_endings

_OLD_TAR = re.compile(r"[A-Za-z0-9]+\Z")
_TAR_VALUES = "fgCTXIFbHKLNV"
_TAR_WRITING = ("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--concatenate", "--catenate", "--delete")
_TAR_TAKING = ("-x", "--extract", "--get")
_BY_FIRST_WORD = names("ar jar 7z 7za 7zr 7zz rar unrar")
"""Programs whose first word tells what they do."""


def unpacks_into(words: Sequence[str]) -> str | None:
    """Return the directory that a command (with its name) unpacks into, or None."""
    name = canonical_name(words[0])
    for programs, unpacks, prints, directs in pairs("unpacking"):
        if name not in programs.split():
            continue
        options = (words[1:2] if name in _BY_FIRST_WORD else words[1:]) or [""]
        if not any(re.match(unpacks, word) for word in options) or any(re.match(prints, word) for word in words):
            return None
        for word, after in pairwise((*words[1:], ".")):
            if found := re.match(directs, word):
                return next(filter(None, found.groups()), after)
        return "."
    return None


def unzip_invocation(words: Sequence[str]) -> Invocation:
    """Return the directory and the members that `unzip` extracts."""
    if any(re.match(r"-[lvtpczZ]", word) for word in words[1:]):
        return Invocation()
    into = [after for before, after in pairwise(words) if re.match(r"-[A-Za-z]*d\Z", before)]
    into += [word[2:] for word in words[1:] if re.match(r"-d.", word)]
    given = words[1 : words.index("-x")] if "-x" in words else words[1:]
    archive, *members = [word for word in given if not word.startswith("-") and word not in into] or [""]
    named = archive if archive and "*" not in archive else None
    tops = into or ["."]
    writes = writes_to([*tops, *(f"{top}/{member}" for top in tops for member in members)])
    return Invocation(writes=writes, copies=tuple(Copy(named, top, is_archive=True) for top in tops))


def tar_invocation(words: Sequence[str]) -> Invocation:
    """Return the archive that `tar` writes, or the directory and the members that it extracts."""
    rest = tar_with_dashes(words[1:])
    # The mode is only known once the options are parsed, and the modes take different values.
    found = arguments_of(("tar", "create", *rest))
    if found.has(*_TAR_TAKING) or not found.has(*_TAR_WRITING):
        found = arguments_of(("tar", "extract", *rest))
    writes = [Write(path) for path in found.of("write") if path != "-" and not is_remote(path)]
    copies: tuple[Copy, ...] = ()
    if found.has(*_TAR_TAKING) and not found.has("-O", "--to-stdout"):
        tops = [word.partition("=")[2] for word in words if re.match(r"--one[a-z-]*=", word)] + found.of("write") or [
            "."
        ]
        archives = [path for path in found.of("read", "script") if path != "-" and not is_remote(path)]
        copies = tuple(Copy(archives[0] if len(archives) == 1 else None, top, is_archive=True) for top in tops)
        writes += [Write(path) for top in tops for path in (top, *(f"{top}/{member}" for member in found.operands))]
        # With -P, members are extracted to the paths stored in the archive.
        if found.has("-P", "--absolute-names"):
            writes += [Write(UNKNOWN), *(Write(member) for member in found.operands)]
    elif found.has("--remove-files"):
        writes += [Write(operand, whole=True) for operand in found.operands]
        writes += [Write(UNKNOWN)] if found.of("list") else []
    writes += with_endings(writes, found)
    mentions = found.unclear if found.has(*_TAR_TAKING, *_TAR_WRITING) else ()
    return Invocation(
        writes=tuple(dict.fromkeys(writes)),
        mentions=writes_to(mentions),
        code=tuple(found.of("code", "program")),
        copies=copies,
        attached=attached_paths(found.of("", "optional")),
    )


def tar_with_dashes(words: Sequence[str]) -> list[str]:
    """Return tar's words in the dashed form: the first may be letters without a dash, whose values follow in order."""
    if not words or not _OLD_TAR.match(words[0]):
        return [f"-{words[0]}", *words[1:]] if words and words[0][:1] not in ("", "-") else list(words)
    rest = list(words[1:])
    options: list[str] = []
    for letter in words[0]:
        options.append(f"-{letter}")
        if letter in _TAR_VALUES and rest:
            options.append(rest.pop(0))
    return options + rest
