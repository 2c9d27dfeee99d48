"""The invocation of one command: its words and its row, seen once for all who judge, show or schedule it.

`reads` proves that a command only reads. Everything else proves nothing: it is how `cp x .husky/y` and `tee ../outside`
are judged like calls of the file tools, and the source of the targets in the dialog.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from urllib.parse import unquote

from tui_agent.permissions.commands.searches import search_filter
from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, SimpleCommand, names

from .archives import tar_invocation, tar_with_dashes, unpacks_into, unzip_invocation
from .argv import Arguments, arguments_of, exact_arguments, is_known, is_remote
from .builtins import bracket_reads, builtin_reads, cd_reads, test_reads
from .catalogue import (
    INTERPRETERS,
    SHELLS,
    canonical_name,
    group,
    is_trusted_name,
    matching_row,
    read_only_command,
    without_interpreter,
    words_by_program,
)
from .invocation import Copy, Invocation, Reads, Write, attached_paths, pieces_of, writes_to
from .row_effects import invocation_by_row, reads_by_row
from .searches import find_invocation, find_reads, find_runs
from .text_scripts import awk_outputs, awk_reads, sed_effects, sed_reads
from .version_control import git_invocation, git_reads, searches_files, shows_patches

_READERS: dict[str, Callable[[Sequence[str], SimpleCommand], Reads | None]] = {
    "git": git_reads, "find": find_reads, "sed": sed_reads, "awk": awk_reads, "cd": cd_reads, "pushd": cd_reads,
    # It only parses one file; with another option it may run some.
    "node": lambda words, _: Reads(tuple(words[2:])) if _CHECKS.fullmatch(" ".join(words[1:])) else None,
    "popd": cd_reads, "test": test_reads, "[": test_reads, "[[": bracket_reads,
    **dict.fromkeys(
        names("printf command read set unset exec export declare typeset local readonly"), builtin_reads
    ),
}  # fmt: skip
"""Commands whose read-only uses no row can tell."""
_INVOCATIONS: dict[str, Callable[[Sequence[str]], Invocation]] = {
    "git": git_invocation, "find": find_invocation, "unzip": unzip_invocation,
    **dict.fromkeys(("tar", "bsdtar", "gtar"), tar_invocation),
    "dd": lambda words: Invocation(writes=writes_to(word[3:] for word in words[1:] if word.startswith("of="))),
}  # fmt: skip
"""Commands whose first words decide how they treat the rest."""
_CHECKS = re.compile(r"(?:-c|--check) (?!-)\S+")
_VERSION_WORDS = (["--version"], ["-V"], ["-version"])
_EXCLUDING = re.compile(r"--?[\w-]*(?:ignore|exclude|skip|omit|without)[\w-]*(?:=|\Z)", re.IGNORECASE)
_FINDS_AND_RUNS = re.compile(r"-[a-zA-Z]*[xX]\Z|--(?:exec|pre|hostname-bin)")
"""Options with which `fd` and `rg` run a program."""
_MAY_CONTAIN_PATH = re.compile(r"[\s'\"`(),;:=<>|&+\[\]{}@#%^$]|\A-\w")
_PROGRAM = re.compile(r"[\s'\"`();<>{}]")
_INPUT = names("- /dev/stdin /dev/fd/0 /proc/self/fd/0") | {PIPE}
"""Names of a command's input, and of another command's output."""
_ALSO_FLAGS = names("-i -p -r")
"""Options with a program that are flags of other interpreters."""
_SCRIPTED = names("sed awk")
"""Commands whose first operand is a program."""
_PROGRAMS = names("program code script")
_RECURSES = re.compile(r"-[A-Za-z0-9]*[rRd]|--(?:r|de|di)")
_OUTPUT_OPTION = re.compile(r"-o|--?out(?:[_-]?(?:put|file|dir|path))*(?:-[\w-]+)?\Z")
_SENT_FILE = re.compile(r"(?:\A(?:-[A-Za-z])?|=)[@<](?:@)?([^;]+)")
_HAS_PATTERN = re.compile(r"[\[{]")
_IN_SCHEME = re.compile(r"[a-zA-Z]*[\[{][^:/?]*:")
_FROM_LIST = re.compile(r"-?[A-Za-z]*T|--files-")
_ATTACHED = re.compile(r"-[A-Za-z](?=[^-=])")


def invocation_of(
    words: Sequence[str],
    raw: SimpleCommand,
    own: Sequence[str],
    reads: Reads | None = None,
    *,
    is_wrapper: bool = False,
) -> Invocation:
    """Return the invocation of a command.

    Args:
        words: as the shell would pass them, with its name; `UNKNOWN` for words whose order is not certain.
        raw: the command before expansion.
        own: the words that describe it, without a command that it runs.
        reads: everything it does, if it only reads.
        is_wrapper: another command follows its own words.
    """
    if not own:
        return Invocation(reads)
    changes = _wrapper(own) if is_wrapper else _changes(words, raw)
    found = _sources(own)
    return replace(
        changes,
        reads=reads,
        sources=found.sources,
        searches=tuple(_searched(own)) if reads is None else (),
        may_read=found.may_read,
        open_reads=found.open_reads,
    )


# --- read-only uses ---------------------------------------------------------------------------------------------------


def read_only_use(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the paths that a command reads, or None if it is not known to be read-only."""
    if not words or not is_known(words[0]) or not is_trusted_name(words[0]):
        return None
    name, rest = canonical_name(words[0]), list(words[1:])
    if (name in group("version_only") and rest in _VERSION_WORDS) or (
        name in group("short_version") and rest == ["-v"]
    ):
        return Reads()
    if special := _READERS.get(name):
        return special(words, raw)
    if name in group("with_reading_actions") and (row := matching_row(words)) and row[0].reads is not None:
        options = exact_arguments(*row)
        return reads_by_row(row[0], options) if options is not None else None
    command = read_only_command(name)
    if command is None or command.reads == "ANY":
        return command and Reads()
    options = exact_arguments(command, tar_with_dashes(rest) if name == "tar" else rest)
    reads = reads_by_row(command, options) if options is not None else None
    if options is None or reads is None or (name == "ps" and shows_environments(words)):
        return None
    if name in ("grep", "rg") and reads.trees:
        return replace(reads, includes=search_filter(name, options))
    if name == "diff" and not options.has("--no-dereference"):
        return replace(reads, follows_links=bool(reads.trees), only_files=not reads.trees)
    return reads


def is_mostly_read_only(word: str) -> bool:
    """True if a command of this name is read-only with most options."""
    name = canonical_name(word)
    return (read_only_command(name) is not None or name in _READERS) and name not in group("more_than_readers")


def accepts_any_files(words: Sequence[str]) -> bool:
    """True if any number of files may follow these words of a read-only command without changing what it does.

    `xargs` passes an unknown part of its input in an unknown number of runs.
    """
    if not words or read_only_use(words, SimpleCommand("", ())) is None:
        return False
    name = canonical_name(words[0])
    command = read_only_command(name)
    if name in group("names_behind_dashes"):
        return "--" in words
    if name in _SCRIPTED:
        # Without a script, the first name would become the script.
        return any(not word.startswith("-") for word in words[1:])
    if name in group("unequal_operands") or command is None:
        return name == "printf" and len(words) > 1
    if command.reads in ("PATTERN", "SEARCH"):
        options = exact_arguments(command, words[1:])
        return options is not None and (bool(options.operands) or options.has(*command.reading.gives_pattern))
    return command.reads in ("ANY", "PATHS", "LIST", "TREES")


def shows_environments(words: Sequence[str]) -> bool:
    """True if a command shows the environments of other processes.

    This is `ps` with the letter `e` in a word without a dash, or with an `env` format.
    """
    if not words or canonical_name(words[0]) != "ps":
        return False
    letters = any(operand.isalpha() and "e" in operand for operand in arguments_of(words).operands)
    return letters or any("env" in word.lower() for word in words[1:])


# --- changes ----------------------------------------------------------------------------------------------------------


def _changes(words: Sequence[str], raw: SimpleCommand) -> Invocation:
    name = canonical_name(words[0])
    found = _INVOCATIONS[name](words) if name in _INVOCATIONS else _by_name(name, words, raw)
    fed = [raw.heredoc] if raw.heredoc is not None and name in group("program_input") else []
    if (directory := unpacks_into([*without_interpreter(words), *fed])) is not None:
        return replace(found, writes=(*found.writes, Write(directory)), copies=(Copy(None, directory),))
    is_running = name in ("fd", "fdfind") and any(map(_FINDS_AND_RUNS.match, words))
    is_running = is_running or (
        name == "find" and any(_may_change(words[run.at : run.end]) for run in find_runs(words))
    )
    return replace(found, changes_matches=True) if is_running else found


def _wrapper(words: Sequence[str]) -> Invocation:
    """Return the invocation of a command that runs another one, by its own words alone."""
    row = matching_row(words)
    return invocation_by_row(canonical_name(words[0]), *row) if row else Invocation(mentions=_mentioned(words[1:]))


def _may_change(words: Sequence[str]) -> bool:
    """True if a command that `find` runs does more than read its arguments."""
    filled, raw = [word.replace("{}", "x") for word in words], SimpleCommand("", ())
    if not filled or read_only_use(filled, raw) is not None:
        return False
    changes = replace(_changes(filled, raw), changes_tracked=False)
    return not is_mostly_read_only(filled[0]) or changes != Invocation()


def _by_name(name: str, words: Sequence[str], raw: SimpleCommand) -> Invocation:
    row = matching_row(words)
    facts, options = row[0] if row else None, arguments_of(words)
    found = invocation_by_row(name, *row) if row else Invocation()
    # The preprocessor of C joins lines first.
    heredoc = (raw.heredoc.replace("\\\n", ""),) if raw.heredoc is not None else ()
    is_configured = name == "wget" and options.has("-i", "--input-file")
    if name in group("program_input") or options.of("script") or is_configured:
        found = replace(found, code=(*found.code, *heredoc))
    if name in _SCRIPTED:
        return _scripted(name, words, raw, found)
    if name in INTERPRETERS:
        code = [after for before, after in pairwise(words) if before in group("code_options")]
        code += [word for word in words[1:] if _PROGRAM.search(word) and word not in code]
        # The first operand is the script.
        mentions = _mentioned([*(word for word in words[1:2] if word.startswith("-")), *words[2:]])
        own = takewhile(lambda word: word.startswith("-"), words[1:])
        attached = attached_paths(word for word in own if word.startswith("--"))
        return replace(found, mentions=(*found.mentions, *mentions), attached=attached, code=(*code, *heredoc))
    if name in SHELLS:
        # The script is the first word without a dash.
        at = next((at for at, word in enumerate(words[1:], start=1) if not word.startswith(("-", "+"))), len(words))
        return Invocation(mentions=_mentioned(words[at + 1 :]))
    # `printf -v` sets a variable.
    runs = name == "printf" or (name in ("fd", "fdfind", "rg") and any(map(_FINDS_AND_RUNS.match, words)))
    # Only the mounts among a container's words are paths of this machine.
    is_container = facts is not None and "mount" in facts.options.values()
    is_explained = facts is not None and not facts.mentions and (facts.has_effects or is_container)
    if not runs and (is_explained or is_mostly_read_only(words[0])):
        return found
    kept = _without(words_by_program("text_options").get(name, ()), words[1:])
    known = facts.options if facts is not None else ()
    outputs = [after for before, after in pairwise(words) if before not in known and _OUTPUT_OPTION.fullmatch(before)]
    outputs += [word.partition("=")[2] for word in words[1:] if _OUTPUT_OPTION.fullmatch(word.partition("=")[0])]
    outputs += [word[2:] for word in words[1:] if facts is None and word.startswith("-o")]
    return replace(
        found,
        mentions=(*found.mentions, *_mentioned([*kept, *heredoc])),
        attached=(*found.attached, *writes_to(outputs)),
        unknown=_named(kept) if facts is None and name not in group("named_by_operands") else (),
    )


def _scripted(name: str, words: Sequence[str], raw: SimpleCommand, found: Invocation) -> Invocation:
    """Return the invocation of `sed` or `awk` with that of its script."""
    if name == "awk" and awk_reads(words, raw) is not None and is_trusted_name(words[0]):
        return found
    # A sed script may run a program that writes another file.
    script = None if name == "awk" else sed_effects(words)
    written = awk_outputs(words).files if script is None else (*script.written, *([UNKNOWN] if script.runs else []))
    code = [word for word in words[1:] if not word.startswith("-")] if script is None or script.runs else []
    return replace(found, writes=(*found.writes, *map(Write, written)), code=(*found.code, *code))


def _mentioned(words: Iterable[str]) -> tuple[Write, ...]:
    """Return everything in words that may be a path."""
    found: list[str] = []
    for word in _without((), words):
        found += [word[2:] if word.startswith("-") else word, word.partition("=")[2]]
        found += pieces_of(word) if _MAY_CONTAIN_PATH.search(word) else ()
    return writes_to(found)


def _named(words: Sequence[str]) -> tuple[str, ...]:
    """Return the operands of an unknown program and the values of its options, without addresses."""
    values = [word.partition("=")[2] if word[:1] == "-" else word for word in dict.fromkeys(words)]
    return tuple([value for value in values if value and not value.startswith(("http://", "https://"))])


def _without(options: Container[str], words: Iterable[str]) -> list[str]:
    """Return the words without some options and their values, such as texts for readers, and without exclusions."""
    kept: list[str] = []
    before = ""
    for word in words:
        is_excluded = _EXCLUDING.match(before) and "=" not in before and not word.startswith("-")
        if not is_excluded and not _EXCLUDING.match(word) and before not in options:
            kept += [word] if word.partition("=")[0] not in options else []
        before = word
    return kept


# --- reads of other commands ------------------------------------------------------------------------------------------


def _sources(words: Sequence[str]) -> Invocation:
    """Return the reads of a command that is not known to be read-only.

    Sources are certainly read (by `cp`, `mv`, `ln`, `tar` and the like, and by options of known writers).
    """
    name, row, found = canonical_name(words[0]), matching_row(words), arguments_of(words)
    if name in group("no_readers"):
        return Invocation(sources=tuple(found.given.get("--random-source", ())))
    if name == "dd":
        return Invocation(sources=tuple(word[3:] for word in words[1:] if word.startswith("if=")))
    read = [*found.paths, *(_sent_files(words, found) if name in group("web_clients") else ())]
    is_listed = bool(found.of("list")) or (name == "zip" and found.has("-@", "--names-stdin"))
    may_read: tuple[str, ...] = ()
    open_reads: list[str] = []
    if name in ("tar", "unzip", "cpio"):
        is_listed = name == "cpio" or any(map(_FROM_LIST.match, words[1:]))
        read = [word for word in _operands(words[1:]) if not is_remote(word)]
    elif row is not None and (name in group("read_sources") or row[0].name.endswith(" cp")):
        # The first operand of zip is the archive it makes.
        taken = found.sources if row[0].writes in ("LAST", "MOVE") else found.operands[name == "zip" :]
        read = [word for word in (*taken, *read) if not is_remote(word)]
    else:
        read += sed_effects(words).read if name == "sed" else ["."] if searches_files(words) else []
        open_reads = list(_open_operands(name, words[1:]))
        may_read = tuple(_may_read(name, words[1:]))
    # A table of sqlite3 that reads whole directories.
    is_listed = is_listed or (name == "sqlite3" and any("fsdir" in word.lower() for word in words))
    open_reads += [UNKNOWN] if is_listed else []
    return Invocation(sources=tuple(read), may_read=may_read, open_reads=tuple(open_reads))


def _searched(words: Sequence[str]) -> Iterator[str]:
    """Yield the directories that a search reads, whatever its other options do."""
    name = canonical_name(words[0])
    operands = [word for word in words[1:] if not word.startswith("-")]
    if name in group("searchers") or (name == "grep" and any(map(_RECURSES.match, words))):
        # The pattern may be an operand or the value of an option.
        yield from operands if len(operands) > 1 else (*operands, ".")
    elif name == "diff" and any(map(_RECURSES.match, words)):
        yield from operands
    elif shows_patches(words):
        yield "."


def may_run_input(words: Sequence[str], *, is_fed: bool) -> bool:
    """True if a command may run shell commands in its input, which a rule for its name does not mean.

    `make -f -` reads a makefile, and editors, debuggers and clients of databases have an escape to the shell.
    """
    name = canonical_name(words[0]) if words else ""
    if name == "make":
        return not _INPUT.isdisjoint(arguments_of(words).of("read"))
    return is_fed and name in group("shell_escapes")


def obeyed_files(words: Sequence[str]) -> Iterator[str]:
    """Yield the files with commands that a command runs or obeys, as far as known: programs, scripts, makefiles."""
    name, found = canonical_name(words[0]), arguments_of(words)
    yield from words[:1] if "/" in words[0] else ()
    yield from (*found.of("script"), *(found.of("read") if name == "make" else ()))
    yield from words_by_program("own_files").get(name, ())
    if name not in _SCRIPTED and (may_run_shell_text(name) or name in INTERPRETERS):
        yield from (word for word in words[1:] if not word.startswith("-"))


def may_run_shell_text(word: str) -> bool:
    """True if a command of this name may run a file of shell commands: a shell, or a program named by its path."""
    return "/" in word or word in SHELLS or word in (".", "source")


def runs_code_from_input(words: Sequence[str]) -> bool:
    """True if a program that a command runs may come from its input, or from the output of a `<(…)`."""
    name = canonical_name(words[0])
    if name in INTERPRETERS and name not in _SCRIPTED:
        if not (group("code_options") - _ALSO_FLAGS).isdisjoint(words[1:]):
            return False
        has_file = any(not word.startswith("-") for word in words[1:])
        return not has_file or "-i" in words[1:2] or not _INPUT.isdisjoint(words[1:])
    return name in group("program_input") or not _INPUT.isdisjoint(arguments_of(words).of("script"))


def has_options_beyond_reading(words: Sequence[str]) -> bool:
    """True if a command that mostly reads has options that write, delete or run something."""
    row = matching_row(words)
    if row is None or canonical_name(words[0]) == "tar":
        return canonical_name(words[0]) in ("find", "git", "tar")
    facts, kinds = row[0], {"write", "into", *_PROGRAMS}
    return facts.reads is not None and bool(facts.changes.spelled or not kinds.isdisjoint(facts.options.values()))


def _sent_files(words: Sequence[str], found: Arguments) -> Iterator[str]:
    """Yield the files that a client for the web sends, such as of `-d @file`, or shows."""
    yield from (path for word in words[1:] for path in _SENT_FILE.findall(word))
    # An address may contain `%2e` for a dot, and a pattern, in its scheme, too; some have no scheme.
    has_files = "file" in "".join(found.given.get("--proto-default", ())).lower()
    for address in (*found.operands, *found.given.get("--url", ())):
        scheme, colon, path = address.partition(":")
        if (colon and scheme.lower() == "file") or _IN_SCHEME.match(address) or (has_files and not colon):
            path = f"/{path.lstrip('/').removeprefix('localhost/')}" if colon else address
            yield UNKNOWN if _HAS_PATTERN.search(address) else unquote(path)
    for option in ("--data-urlencode", "--variable", "--url-query"):
        yield from (value.partition("@")[2] for value in found.given.get(option, ()) if "@" in value)
    for option in ("-b", "--cookie"):
        yield from (value for value in found.given.get(option, ()) if value and "=" not in value)


def _operands(words: Sequence[str]) -> Iterator[str]:
    """Yield operands, and values attached to their option.

    Leading letters such as in `tar xf` count as a file name; no file has it.
    """
    for word in _without((), words):
        if not word.startswith("-"):
            yield word
        elif "=" in word:
            yield word.partition("=")[2]
        elif _ATTACHED.match(word):
            yield word[2:]


def _open_operands(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the uncertain operands of a reader, without the pattern or program it may begin with."""
    command = read_only_command(name)
    if (command is None or command.reads in ("ANY", "TEXT", "NONE")) and name not in _SCRIPTED:
        return
    skips = name in _SCRIPTED or (command is not None and command.reads in ("PATTERN", "SEARCH"))
    operands = [word for word in words if not word.startswith("-")]
    yield from (word for word in operands[skips:] if not is_known(word))


def _may_read(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield words other than exclusions and messages."""
    messages = () if name not in group("with_messages") and is_mostly_read_only(name) else group("read_messages")
    for before, word in pairwise(("", *_without((), words))):
        if before not in messages and not re.match(r"https?://", word):
            yield word
