"""What a command's words say about the files it changes.

Nothing here is a proof: a program can change what its words do not name. It is what makes `cp x .git/hooks/y` and
`tee ../outside` be judged like the file tools, and what the dialog shows as targets.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .read_only_check import is_reader, own_name, read_only_use
from .read_only_find import find_roots
from .shell_syntax import SimpleCommand, names
from .wrapper_table import INTERPRETERS, SHELLS
from .writer_options import Write, is_remote, sort_words, writes_of
from .writer_table import Writer, writer

_CODE_OPTIONS = names("-c -e -E -r --eval --execute -pe -ne -i -le -lne -lpe")
_FIND_NARROWING = names(
    "-name -iname -path -ipath -regex -iregex -size -mtime -mmin -newer -empty -user -perm -wholename -samefile -inum"
)
_FIND_FILES = names("-fprint -fprint0 -fls -fprintf")
_EXCLUDING = re.compile(r"--?[\w-]*(?:ignore|exclude|skip|omit|without)[\w-]*(?:=|\Z)")
_GIT_GLOBAL_VALUES = names("-C -c --git-dir --work-tree --namespace --exec-path --config-env")
_GIT_OUTPUTS = {
    "archive": ("-o", "--output"),
    "format-patch": ("-o", "--output-directory"),
    "config": ("-f", "--file"),
    "diff": ("--output",),
    "log": ("--output",),
    "show": ("--output",),
    "init": ("--separate-git-dir",),
    "clone": ("--separate-git-dir",),
}
_GIT_CHANGING = names("rm mv checkout restore clean")


@dataclass(frozen=True, slots=True)
class Effects:
    """What the words of one command tell of its effects."""

    writes: tuple[Write, ...] = ()
    mentions: tuple[Write, ...] = ()
    """Paths that may be changed or only read."""
    code: tuple[str, ...] = ()
    """Programs in other languages, which may name paths anywhere."""
    runs_in: str | None = None
    """Directory that the command goes to first."""


def effects_of(words: Sequence[str], raw: SimpleCommand) -> Effects:
    """The effects of a command.

    Args:
        words: its words as the shell would pass them on, with its name.
        raw: the command before expansion.
    """
    if not words:
        return Effects()
    name = own_name(words[0])
    match name:
        case "git":
            return _git(words)
        case "find":
            return _find(words)
        case "tar":
            return _tar(words)
        case "dd":
            return Effects(tuple(Write(word[3:]) for word in words[1:] if word.startswith("of=")))
        case "unzip":
            lists = any(re.match(r"-[lvtpczZ]", word) for word in words[1:])
            return Effects() if lists else Effects(tuple(Write(path) for path in _values(words, "d", "") or ["."]))
        case _:
            return _by_name(name, words, raw)


def _by_name(name: str, words: Sequence[str], raw: SimpleCommand) -> Effects:
    entry = writer(name)
    effects = _by_entry(name, entry, words) if entry else Effects()
    if name in ("awk", "sed"):
        if read_only_use(words, raw) is not None:
            return effects
        return replace(effects, code=tuple(word for word in words[1:] if not word.startswith("-")))
    if name in INTERPRETERS:
        code = [after for before, after in pairwise(words) if before in _CODE_OPTIONS]
        if raw.heredoc is not None:
            code.append(raw.heredoc)
        return replace(effects, mentions=_mentioned(words[2:]), code=tuple(code))
    if entry or is_reader(words[0]) or name in SHELLS:
        return effects
    return Effects(mentions=_mentioned(words[1:]))


def _by_entry(name: str, entry: Writer, words: Sequence[str]) -> Effects:
    found = sort_words(name, entry, words[1:])
    writes = writes_of(name, entry, found)
    mentions: tuple[Write, ...] = ()
    if name == "ln" and found.has("-s", "--symbolic"):
        mentions = tuple(Write(source) for source in found.sources)
    elif name == "ln" or (name == "cp" and found.has("-l", "--link")):
        # A hard link makes the same file changeable under another name.
        writes.extend(Write(source) for source in found.sources)
    return Effects(tuple(writes), mentions, runs_in=found.directory)


def _find(words: Sequence[str]) -> Effects:
    writes = [Write(after) for before, after in pairwise(words) if before in _FIND_FILES]
    roots = find_roots(words)
    if "-delete" not in words:
        return Effects(tuple(writes))
    if _FIND_NARROWING.isdisjoint(words):
        return Effects((*writes, *(Write(root, whole=True) for root in roots)))
    return Effects(
        (*writes, *(Write(root) for root in roots)), mentions=tuple(Write(root, whole=True) for root in roots)
    )


def _tar(words: Sequence[str]) -> Effects:
    """The archive it makes, or the directory it unpacks into."""
    rest = list(words[1:])
    if rest and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"
    letters = {letter for word in rest if re.match(r"-[^-]", word) for letter in word[1:]}
    long_options = {word.partition("=")[0] for word in rest if word.startswith("--")}
    writes: list[Write] = []
    if letters & set("cruA") or long_options & {"--create", "--append", "--update", "--concatenate", "--delete"}:
        archives = _values(rest, "f", "--file")
        writes.extend(Write(path) for path in archives if path != "-" and not is_remote(path))
    if "x" in letters or long_options & {"--extract", "--get"}:
        writes.extend(Write(path) for path in _values(rest, "C", "--directory") or ["."])
    return Effects(tuple(writes))


def _values(words: Sequence[str], letter: str, long_option: str) -> list[str]:
    """The values of an option, wherever it stands."""
    values: list[str] = []
    for word, following in pairwise((*words, "")):
        if long_option and word.startswith(f"{long_option}="):
            values.append(word.partition("=")[2])
        elif word == long_option or (re.match(r"-[^-]", word) and word.endswith(letter)):
            values.extend([following] if following else [])
        elif word.startswith(f"-{letter}"):
            values.append(word[2:])
    return values


def _git(words: Sequence[str]) -> Effects:
    """Git's outputs, the files it takes away or brings back, and the directories it makes."""
    rest = list(words[1:])
    directory: str | None = None
    while rest and rest[0].startswith("-"):
        taken = 2 if rest[0] in _GIT_GLOBAL_VALUES else 1
        if rest[0] == "-C" and len(rest) > 1:
            directory = rest[1]
        rest = rest[taken:]
    if not rest:
        return Effects(runs_in=directory)
    name, arguments = rest[0], rest[1:]
    writes: list[Write] = []
    for word, following in pairwise((*arguments, "")):
        option, equals, value = word.partition("=")
        if option in _GIT_OUTPUTS.get(name, ()) and (value or following):
            writes.append(Write(value if equals else following))
    operands = [word for word in arguments if not word.startswith("-")]
    writes.extend(Write(operand) for operand in _git_targets(name, operands))
    return Effects(tuple(writes), runs_in=directory)


def _git_targets(name: str, operands: list[str]) -> list[str]:
    if name in _GIT_CHANGING:
        return operands
    if name == "init":
        return operands[:1]
    if name == "clone" or (name == "worktree" and operands[:1] == ["add"]):
        return operands[1:2]
    if name in ("bundle", "submodule") and operands[:1] in (["create"], ["add"]):
        return operands[1:2] if name == "bundle" else operands[2:3]
    return []


def _mentioned(words: Sequence[str]) -> tuple[Write, ...]:
    """Everything in a command's words that may be a path; what it is told to leave out is not."""
    found: list[str] = []
    leaves_out = False
    for word in words:
        if leaves_out and not word.startswith("-"):
            leaves_out = False
            continue
        if word.startswith("-"):
            leaves_out = bool(_EXCLUDING.match(word)) and "=" not in word
            if _EXCLUDING.match(word):
                continue
            found.append(word[2:])
        else:
            found.append(word)
        found.append(word.partition("=")[2])
    return tuple(Write(part) for part in found if part)
