"""Recognition of read-only commands and of the paths they read: the table, and commands too complex for it.

None means only that the command is not known to be harmless.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from tui_agent.permissions.paths.tree_filter import search_filter
from tui_agent.permissions.shell.syntax import SimpleCommand, names

from .argv import Arguments, is_known
from .awk_programs import awk_reads
from .catalogue import canonical_name, read_only_command
from .conditions import conditional_reads, test_command_reads
from .find_words import find_reads
from .git_words import git_reads
from .printf_jq import is_plain_jq, is_plain_yq, printf_reads
from .reads import Reads, parse_options, reads_of
from .sed_scripts import sed_reads
from .shell_builtins import (
    cd_reads,
    declare_reads,
    exec_reads,
    printenv_reads,
    read_builtin_reads,
    set_reads,
    unset_reads,
)
from .wrappers import is_trusted_name

_VERSION_WORDS = (["--version"], ["-V"], ["-version"])
_PS_STYLES = re.compile(r"[aAxulfwjv]+\Z")
_TAR_LETTERS = re.compile(r"[tvzjJf]+\Z")
_DESCENDING = {"grep": ("-r", "-R", "-d", "--recursive", "--directories"), "ls": ("-R", "--recursive")}
"""Arguments with which a command reads everything below its operands."""
_LISTING = names("ls tree du fd")
"""Commands that print the names and sizes of a tree."""
_SPECIAL = names(
    "git find sed awk printf printenv test [ [[ cd pushd popd command read set unset exec export declare typeset local "
    "readonly"
)
_MORE_THAN_READERS = names(
    "read set unset exec export declare typeset local readonly hash alias less more bat man top zcat "
    "gzip gunzip xz unxz xzcat bzip2 bunzip2 bzcat zstdcat ag yq"
)
"""Commands that are read-only with the options of the table, and that set, write or run something with others."""
_PACKED = re.compile(r".*[.-](?:t?gz|taz|z|Z|t?xz|lzma|txz|t?bz2?|zst|tzst)\Z", re.DOTALL)
"""Names used as they are; to other names a program adds its own suffix."""
_GLOB = re.compile(r"[*?\[]")
_PAGE = re.compile(r"[\w.+:@-]+\Z")
_VERSION_ONLY = names(
    "python python3 node npm pip pip3 git ruby perl gcc g++ cc clang make cmake java javac php lua sqlite3 psql rg fd "
    "jq docker curl wget tar zip unzip rsync bash zsh vim"
)
"""Commands allowed only to print their version, without those that a project can replace."""
_SHORT_VERSION = names("node npm ruby php")
"""Programs for which `-v` prints the version, too."""


def collect_reads(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the paths that a command reads, or None if it is not known to be read-only.

    Args:
        words: as the shell would pass them, as far as they are certain.
        raw: the command before expansion.
    """
    if not words or not is_known(words[0]) or not is_trusted_name(words[0]):
        return None
    name = canonical_name(words[0])
    if name in _VERSION_ONLY and list(words[1:]) in _VERSION_WORDS:
        return Reads()
    if name in _SHORT_VERSION and list(words[1:]) == ["-v"]:
        return Reads()
    if name in _SPECIAL:
        return _special_reads(name, words, raw)
    command = read_only_command(name)
    if command is None:
        return None
    if command.reads == "ANY":
        return Reads()
    rest = list(words[1:])
    if name == "tar" and rest and _TAR_LETTERS.match(rest[0]):
        rest[0] = f"-{rest[0]}"  # `tar tf` is `tar -tf`.
    options = parse_options(command, _without_jq_values(rest) if name == "jq" else rest)
    if options is None or not _is_reading(name, options):
        return None
    reads = reads_of(command, options)
    if reads is not None and options.has(*_DESCENDING.get(name, ())):
        reads = Reads(tuple(options.paths), tuple(path for path in reads.paths if path not in options.paths) or (".",))
    if reads is not None and (name in _LISTING or (name == "rg" and options.has("--files"))):
        return replace(reads, trees=(), listed=reads.trees)
    if reads is not None and name in ("grep", "rg") and reads.trees:
        return replace(reads, includes=search_filter(name, options))
    if reads is not None and name == "diff" and options.has("-r", "--recursive"):
        return Reads((), reads.paths, follows_links=not options.has("--no-dereference"))
    if reads is not None and name == "diff" and not options.has("--no-dereference"):
        return Reads(reads.paths, reads.trees, only_files=True)
    return reads


def is_mostly_read_only(word: str) -> bool:
    """True if a command of this name is read-only with most options."""
    name = canonical_name(word)
    return (read_only_command(name) is not None or name in _SPECIAL) and name not in _MORE_THAN_READERS


def shows_environments(words: Sequence[str]) -> bool:
    """True if a command shows the environments of other processes.

    This is `ps` with the letter `e` in a word without a dash, or with an `env` format.
    """
    if not words or canonical_name(words[0]) != "ps":
        return False
    command = read_only_command("ps")
    options = parse_options(command, words[1:]) if command else None
    operands = options.operands if options is not None else [word for word in words[1:] if not word.startswith("-")]
    letters = any(operand.isalpha() and "e" in operand for operand in operands)
    return letters or any("env" in word.lower() for word in words[1:])


def _special_reads(name: str, words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    match name:
        case "git":
            return git_reads(words)
        case "find":
            return find_reads(words)
        case "sed":
            return sed_reads(words)
        case "awk":
            return awk_reads(words)
        case "printf":
            return printf_reads(words)
        case "cd" | "pushd" | "popd":
            return cd_reads(words)
        case "exec":
            return exec_reads(raw)
        case "export" | "declare" | "typeset" | "local" | "readonly":
            return declare_reads(raw)
        case "unset":
            return unset_reads(words)
        case "set":
            return set_reads(words)
        case "read":
            return read_builtin_reads(words)
        case "printenv":
            return printenv_reads(words)
        case "command":
            return Reads() if len(words) >= 3 and words[1] in ("-v", "-V") else None
        case "[[":
            return conditional_reads(words, raw)
        case _:
            return test_command_reads(words, raw)


def _without_jq_values(words: Sequence[str]) -> list[str]:
    """Return the words without `--arg name value`."""
    kept: list[str] = []
    at = 0
    while at < len(words):
        if words[at] in ("--arg", "--argjson") and len(words) >= at + 3 and all(map(is_known, words[at : at + 3])):
            at += 3
        else:
            kept.append(words[at])
            at += 1
    return kept


def _is_reading(name: str, options: Arguments) -> bool:
    """Check the conditions that the notation of the table cannot express."""
    match name:
        case "date":
            # Other operands set the clock.
            return all(operand.startswith("+") for operand in options.operands)
        case "ps":
            formats = (*options.given.get("-o", ()), *options.given.get("--format", ()))
            shows_environment = any("env" in value.lower() for value in formats)
            return not shows_environment and all(_PS_STYLES.match(operand) for operand in options.operands)
        case "strings":
            # `@file` is a file with more arguments.
            return not any(operand.startswith("@") for operand in options.operands)
        case "jq":
            return all(is_plain_jq(operand) for operand in options.operands[:1])
        case "tar":
            # Without -f, tar may read a tape; `host:file` is on another machine.
            return (
                options.has("-t", "--list") and bool(options.paths) and not any(":" in path for path in options.paths)
            )
        case "unzip" | "zipinfo":
            is_listing = name == "zipinfo" or options.has("-l", "-Z", "-p", "-c")
            return is_listing and bool(options.operands) and not any(_GLOB.search(word) for word in options.operands)
        case "zcat" | "gzip" | "gunzip" | "xz" | "unxz" | "xzcat" | "bzip2" | "bunzip2" | "bzcat" | "zstdcat":
            return _is_unpacking(name, options)
        case "tput":
            # Other capabilities write control sequences to the terminal.
            return len(options.operands) == 1 and options.operands[0] in ("cols", "lines", "colors")
        case "less" | "more":
            # `+command` runs a command of the pager.
            return not any(operand.startswith("+") for operand in options.operands)
        case "yq":
            return all(is_plain_yq(operand) for operand in options.operands)
        case "man":
            return all(_PAGE.match(operand) for operand in options.operands)
        case "top":
            return options.has("-b") and options.has("-n")  # Otherwise it is interactive and never ends.
        case "netstat":
            return options.has("-n", "--numeric")  # Otherwise it asks name servers.
        case _:
            return True


def _is_unpacking(name: str, options: Arguments) -> bool:
    """True if a packer only writes to its output and reads only files named in full."""
    shows = name.endswith("cat") or options.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test")
    unpacks = name not in ("gzip", "bzip2", "xz") or options.has(
        "-d", "--decompress", "--uncompress", "-l", "--list", "-t", "--test"
    )
    return shows and unpacks and all(operand == "-" or _PACKED.match(operand) for operand in options.operands)
