"""Effects of `git`, `tar`, `unzip`, `find` and `dd`, whose first words decide how they treat the rest."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tui_agent.permissions.shell.syntax import UNKNOWN, names

from .argv import Arguments, is_remote, parse_arguments
from .catalogue import CommandFacts, git_subcommand_at, matching_row, writer
from .find_words import find_roots
from .writes import Write, attached_paths, scripts_of, writes_of

_FIND_TAKES_ALL = names("-delete -depth -d -print -print0 -xdev -mount -noleaf -ls -L -H -P -follow -a -and")
"""Options and actions of `find` that leave no match out."""
_FIND_FILES = names("-fprint -fprint0 -fls -fprintf")
_GIT_MESSAGE = re.compile(r"-[A-Za-z]*[mF]\Z|--(?:message|file|grep|author|date|trailer)\Z")
_GIT_ATTACHED_MESSAGE = re.compile(r"-m.|--(?:message|grep|author|date|trailer|format|pretty)=")
_TRANSPORT = re.compile(r"[\w+-]+::")
_GIT_READING = names(
    "add am apply bisect blame branch bundle cherry-pick commit describe diff fetch format-patch gc grep hash-"
    "object log ls-files maintenance merge notes prune pull push rebase reflog remote repack reset revert show "
    "stash status submodule switch tag update-index update-ref worktree write-tree"
)
"""Subcommands that only read the files they name, or whose arguments are not files of the working tree."""
_ONLY_SHOWS = names("--check --stat --numstat --summary --cached")
"""Options of `git apply` that leave the files of the working tree as they are."""
_OLD_TAR = re.compile(r"[A-Za-z0-9]+\Z")
_TAR_VALUES = "fgCTXIFbHKLNV"
_TAR_WRITING = ("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--concatenate", "--catenate", "--delete")
_TAR_TAKING = ("-x", "--extract", "--get")


@dataclass(frozen=True, slots=True)
class Copy:
    """A directory, or an archive, and the path its contents go to."""

    source: str | None
    """Path of the directory or archive; None for one that the words do not name, a patch or another machine's."""
    into: str
    is_archive: bool = False


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of one command, as far as its words tell."""

    writes: tuple[Write, ...] = ()
    mentions: tuple[Write, ...] = ()
    """Paths that the command may change or only read."""
    code: tuple[str, ...] = ()
    """Programs in other languages, which may name paths anywhere."""
    runs_in: str | None = None
    """Directory that the command changes to first."""
    works_in: tuple[str, ...] = ()
    """Directories that it works in."""
    changes_matches: bool = False
    """True if it changes the files that it finds, or passes them to a command that may."""
    copies: tuple[Copy, ...] = ()
    """Files and directories copied with their contents, and archives unpacked."""
    links: tuple[str, ...] = ()
    """Files and directories that get another name, through which later commands may change them."""
    attached: tuple[Write, ...] = ()
    """Parts of unknown options that may be paths that the command changes."""


def subcommand_effects(name: str, words: Sequence[str]) -> Effects | None:
    """Return the effects of a command by its name, or None for another command."""
    match name:
        case "git":
            return _git(words)
        case "find":
            return _find(words)
        case "tar" | "bsdtar" | "gtar":
            return _tar(words)
        case "dd":
            return Effects(tuple(Write(word[3:]) for word in words[1:] if word.startswith("of=")))
        case "unzip":
            return _unzip(words)
        case _:
            return None


def _find(words: Sequence[str]) -> Effects:
    writes = [Write(after) for before, after in pairwise(words) if before in _FIND_FILES]
    roots = find_roots(words)
    if "-delete" not in words:
        return Effects(tuple(writes))
    # Without a test everything below the roots is deleted.
    if all(word in _FIND_TAKES_ALL for word in words[1:] if word.startswith(("-", "!", "("))):
        return Effects((*writes, *(Write(root, whole=True) for root in roots)))
    return Effects((*writes, *(Write(root) for root in roots)), changes_matches=True)


def _unzip(words: Sequence[str]) -> Effects:
    if any(re.match(r"-[lvtpczZ]", word) for word in words[1:]):
        return Effects()
    into = [after for before, after in pairwise(words) if re.match(r"-[A-Za-z]*d\Z", before)]
    into += [word[2:] for word in words[1:] if re.match(r"-d.", word)]
    given = words[1 : words.index("-x")] if "-x" in words else words[1:]
    members = [word for word in given if not word.startswith("-") and word not in into][1:]
    archives = [word for word in words[1:] if not word.startswith("-") and word not in into][:1]
    named = next((name for name in archives if "*" not in name), None)
    copies = tuple(Copy(named, path, is_archive=True) for path in into or ["."])
    writes = [Write(path) for path in into or ["."]]
    writes += [Write(f"{path}/{member}") for path in into or ["."] for member in members]
    return Effects(tuple(writes), copies=copies)


def _tar(words: Sequence[str]) -> Effects:
    """Return tar's effects: the archive it writes, or the directory and the members it extracts."""
    rest = tar_with_dashes(words[1:])
    # The mode is only known once the options are parsed, and the modes take different values.
    entry = writer("tar", "create") or CommandFacts("tar")
    found = parse_arguments(entry, rest)
    if found.has(*_TAR_TAKING) or not found.has(*_TAR_WRITING):
        entry = writer("tar", "extract") or CommandFacts("tar")
        found = parse_arguments(entry, rest)
    writes = [Write(path) for path in found.written if path != "-" and not is_remote(path)]
    copies: tuple[Copy, ...] = ()
    if found.has(*_TAR_TAKING) and not found.has("-O", "--to-stdout"):
        tops = [word.partition("=")[2] for word in rest if re.match(r"--one[a-z-]*=", word)] + found.written or ["."]
        archives = [path for path in found.read if path != "-" and not is_remote(path)]
        copies = tuple(Copy(archives[0] if len(archives) == 1 else None, top, is_archive=True) for top in tops)
        writes += [Write(top) for top in tops]
        writes += [Write(f"{top}/{member}") for top in tops for member in found.operands]
        # With -P, members are extracted to the paths stored in the archive.
        if found.has("-P", "--absolute-names"):
            writes += [Write(UNKNOWN), *(Write(member) for member in found.operands)]
    elif found.has(*entry.removing):
        writes += [Write(operand, whole=True) for operand in found.operands]
    mentions = found.unclear if found.has(*_TAR_TAKING, *_TAR_WRITING) else ()
    return Effects(
        tuple(dict.fromkeys(writes)),
        tuple(Write(path) for path in mentions),
        tuple(found.code),
        copies=copies,
        attached=attached_paths(found),
    )


def tar_with_dashes(words: Sequence[str]) -> list[str]:
    """Return tar's words in the dashed form.

    The first word may be letters without a dash, whose values follow in order.
    """
    if not words or not _OLD_TAR.match(words[0]):
        return [f"-{words[0]}", *words[1:]] if words and words[0][0] != "-" else list(words)
    rest = list(words[1:])
    options: list[str] = []
    for letter in words[0]:
        options.append(f"-{letter}")
        if letter in _TAR_VALUES and rest:
            options.append(rest.pop(0))
    return options + rest


def _git(words: Sequence[str]) -> Effects:
    """Return git's effects: its output files, the files it removes or restores, the directories it makes."""
    at = git_subcommand_at(words)
    settings = tuple(after for before, after in pairwise(words) if before == "-c")
    # `ext::COMMAND` as a repository runs a command.
    settings += tuple(word for word in words[1:] if _TRANSPORT.match(word))
    places: dict[str, str] = {}
    for option, following in pairwise(words[1 : at + 1]):
        name, equals, value = option.partition("=")
        if name in ("-C", "--work-tree", "--git-dir"):
            places[name] = value if equals else following
    directory, work_tree = places.get("-C"), places.get("--work-tree", "")
    if work_tree:
        directory = work_tree if directory is None or work_tree[0] == "/" else f"{directory}/{work_tree}"
    mentions = ["."] if work_tree else []
    rest = words[at:]
    found = matching_row(words)
    if found is not None and found[0].has_effects:
        effects = _by_git_entry(*found, directory, mentions)
    else:
        mentions += [name for name in rest[:1] if UNKNOWN in name]
        named = _without_messages(rest[1:])
        options = [word for word in named if word.startswith("-")]
        operands = () if rest and rest[0] in _GIT_READING else named
        attached = attached_paths(Arguments(attached=options))
        effects = Effects(mentions=_paths([*mentions, *operands]), runs_in=directory, attached=attached)
    return replace(
        effects,
        code=(*effects.code, *settings),
        attached=(*effects.attached, *_paths(mentions)),
        works_in=tuple(places.values()),
    )


def _by_git_entry(entry: CommandFacts, words: Sequence[str], directory: str | None, mentions: list[str]) -> Effects:
    found = parse_arguments(entry, words)
    writes = writes_of("git", entry, found)
    # `git restore --staged` alone changes only the index.
    if entry.name == "git restore" and found.has("--staged", "-S") and not _restores_files(found):
        writes = []
    if entry.name in ("git checkout", "git restore", "git checkout-index"):
        writes = [replace(write, below=True) for write in writes]
    is_patch = entry.name == "git apply" and not found.has(*_ONLY_SHOWS)
    return Effects(
        tuple(writes),
        _paths([*mentions, *_without_messages(found.unclear)]),
        (*found.code, *scripts_of(entry, found)),
        found.directory or directory,
        copies=(Copy(None, found.into or "."),) if is_patch else (),
        attached=attached_paths(replace(found, attached=_without_messages(found.attached))),
    )


def _restores_files(found: Arguments) -> bool:
    return found.has("--worktree", "-W")


def _without_messages(words: Iterable[str]) -> list[str]:
    """Return the words of a git command without free text such as a commit's message."""
    kept: list[str] = []
    is_message = False
    for word in words:
        if not is_message and not _GIT_ATTACHED_MESSAGE.match(word):
            kept.append(word)
        is_message = bool(_GIT_MESSAGE.match(word))
    return kept


def _paths(words: Sequence[str]) -> tuple[Write, ...]:
    return tuple(Write(word) for word in words if word)
