"""Protected names in a command's output, for a command that changes the files so named.

`listing_output` returns every name or none. Here it is enough that no name leads to a protected path, so that
`rg -l foo | xargs sed -i …` runs without a question in a directory of any size.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui_agent.protocol.regular_file import read_regular_file

from .commands.argv import Arguments, is_known
from .commands.catalogue import canonical_name, read_only_command
from .find_targets import replace_print_with_exec, why_find_unsafe
from .git_index import index_names
from .path_facts import PathLookup
from .protected_paths import PROTECTED_NAMES, git_directories, may_mean_protected, protected_name
from .read_only_check import collect_reads
from .read_only_find import runs_of, tests_begin, without_exec
from .read_only_git import git_words
from .read_only_options import parse_options
from .repository_settings import repository_roots
from .shell_syntax import UNKNOWN, SimpleCommand, names

_PRINTS_NO_FILE = names(
    "date whoami id hostname uname nproc arch uptime tty seq wc expr pwd true false test [ [[ : sleep kill cd which "
    "type getconf groups mktemp tput stty exit return set read wait shift break continue mkdir touch rm cp mv chmod"
)
"""Commands that print numbers, words of the system, a new name or nothing: never the name or contents of a file."""
_GIT_PRINTS_NO_FILE = names("rev-parse describe rev-list merge-base symbolic-ref branch tag remote")
_ANYTHING = "\x01"
"""Placeholder for an unknown word; it may be a pattern but not a path."""
_DATE_FORMAT = re.compile(r"\+(?:%[-_0^#]?[A-Za-z]|[-_:./T ])*\Z")
_NUMBER_FORMAT = re.compile(r"(?:%[-+ 0]?\d*[dixXou]|[-_:/ ]|\\n)*\Z")
_JUST_WORDS = ("%s", "%s\\n", "%s ", "%s\\0")
_SUMS = names("md5sum sha1sum sha256sum sha512sum shasum b2sum cksum")
"""Commands that print numbers and the names in their arguments."""
_PLAIN_PRINTF = re.compile(r"(?:%[pfPh]|\\n|\\0| )*\Z")
_TYPES = {"py": "py pyi", "rust": "rs", "go": "go"}
"""File extensions of `rg`'s types."""
_WHERE = re.compile(r"(?:\*\*/|/)?([^/*?\[\]{}]+)(?:/|/\*\*|/\*)?\Z")
_SHOW_NAMES = names("-l -L --files-with-matches --files-without-match --files")
_SHOW_HIDDEN = names("-u --hidden --unrestricted --no-ignore -. -H -I --no-ignore-vcs")
_GIT_LISTS = names("--name-only --files-with-matches -l")
_PASS_BEHIND_XARGS = names("echo dirname ls")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Reason to ask about names that are passed on."""

    why: str
    is_sure: bool
    """True if a protected name is among them; False if the names are not certain."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of each line that a pipe passes on."""

    up_to_colon: bool = False


def trouble_with(words: Sequence[str], place: str, path_lookup: PathLookup, cut: Cut) -> Trouble | None:
    """Return the trouble with a command's output, or None if it names nothing protected. Blocks.

    Args:
        words: as the shell would pass them.
        place: absolute working directory.
        path_lookup: looks paths up.
        cut: the part of each line that is used.
    """
    words = [word if is_known(word) else _ANYTHING for word in words]
    name = canonical_name(words[0])
    if name == "git":
        return _of_git(words, place, path_lookup)
    if says_no_file(words):
        return None
    if name == "echo" or (name == "printf" and words[1:2] and words[1] in _JUST_WORDS):
        return _of_words(words[2:] if name == "printf" else words[1:], place, path_lookup)
    if name in _SUMS:
        return _of_words([word for word in words[1:] if not word.startswith("-")], place, path_lookup)
    if name in ("basename", "dirname"):
        return _of_parts(name, words[1:])
    search = _as_find(name, words, place, cut)
    if search is None:
        return Trouble(f"the output of `{name}`", is_sure=False)
    why = why_find_unsafe(replace_print_with_exec(search), place, path_lookup)
    return Trouble(why, is_sure=True) if why else None


def says_no_file(words: Sequence[str]) -> bool:
    """True if a command prints nothing that could be a protected name."""
    match canonical_name(words[0]):
        case "date":
            return all(word.startswith("-") or _DATE_FORMAT.match(word) for word in words[1:] if word != "now")
        case "printf":
            return len(words) > 1 and bool(_NUMBER_FORMAT.match(words[1]))
        case "command":
            return words[1:2] in (["-v"], ("-v",))
        case name:
            return name in _PRINTS_NO_FILE


def _of_words(words: Sequence[str], place: str, path_lookup: PathLookup) -> Trouble | None:
    for word in words:
        if "\\" in word:
            return Trouble("text with escapes", is_sure=False)
        for piece in word.split():
            if why := path_lookup.why_protected(path_lookup.look(piece, place)):
                return Trouble(f"{piece}: {why}", is_sure=True)
    return None


def _of_parts(name: str, words: Sequence[str]) -> Trouble | None:
    """Return the trouble with `dirname`, or with `basename` and the suffix it removes."""
    operands = [word for word in words if not word.startswith("-")]
    if len(operands) != len(words) and name == "basename":
        return Trouble("the output of `basename`", is_sure=False)
    ending = operands[1] if name == "basename" and len(operands) == 2 else ""
    shown = [operand.rstrip("/").removesuffix(ending) for operand in operands[: 1 if ending else None]]
    why = next((why for one in shown if (why := protected_name(one))), None)
    return Trouble(why, is_sure=True) if why else None


def _of_git(words: Sequence[str], place: str, path_lookup: PathLookup) -> Trouble | None:
    found = git_words(words)
    if found is None or not found.words or found.directory is not None:
        return Trouble("the output of `git`", is_sure=False)
    name, *rest = found.words
    if name in _GIT_PRINTS_NO_FILE:
        is_place = any(word.startswith(("--git-", "--absolute-git", "--resolve")) for word in rest)
        return Trouble("the path of git's data", is_sure=True) if is_place else None
    tops = repository_roots(place)
    if not tops:
        return None
    if name == "status" or any(word in ("-o", "--others") for word in rest):
        search = ["find", tops[0], "-name", ".git", "-prune", "-o", *_left_out(place), "!", "-path", tops[0], "-print"]
        why = why_find_unsafe(replace_print_with_exec(search), place, path_lookup)
        return Trouble(why, is_sure=True) if why else None
    if name != "ls-files" and _GIT_LISTS.isdisjoint(rest):
        return Trouble(f"the output of `git {name}`", is_sure=False)
    if name == "ls-files" and any(word in ("-s", "--stage", "--format", "-v", "-t") for word in rest):
        return Trouble("the output of `git ls-files`", is_sure=False)
    tracked = index_names(place)
    if tracked is None and not any(os.path.lexists(f"{at}/index") for top in tops for at in git_directories(top)):
        return None
    if tracked is None:
        # git refuses to track the contents of a `.git`, but may track other protected files.
        return Trouble("an index in an unknown format", is_sure=False)
    for one in tracked:
        if why := next((why for piece in one.split() if (why := protected_name(piece))), None):
            return Trouble(f"{one} is tracked: {why}", is_sure=True)
    return None


def _as_find(name: str, words: Sequence[str], place: str, cut: Cut) -> list[str] | None:
    """Return a `find` that matches every file whose name a command prints, or None."""
    if name == "find":
        return _plain_find(words)
    command = read_only_command(name)
    options = parse_options(command, words[1:]) if command else None
    if options is None or command is None or (_ANYTHING in words and name not in ("grep", "rg", "fd")):
        return None
    match name:
        case "grep" | "rg":
            if not (options.has(*_SHOW_NAMES) or (cut.up_to_colon and not options.has("-h", "--no-filename", "-I"))):
                return None
            patterns = 0 if options.has("-e", "--regexp", "--files", "-f") else 1
            roots = options.operands[patterns:] or ["."]
            globs = [value for given in options.given.values() for value in given if options.given.get("-e") != given]
            if _ANYTHING in roots or any(_ANYTHING in glob for glob in globs):
                return None
            return _by_search(roots, options, place, sees_hidden=name == "grep" or options.has(*_SHOW_HIDDEN))
        case "fd":
            roots = options.operands[1:] or ["."]
            if any(
                _ANYTHING in value for value in (*roots, *(one for given in options.given.values() for one in given))
            ):
                return None
            return _by_search(roots, options, place, sees_hidden=options.has(*_SHOW_HIDDEN), is_fd=True)
        case "ls":
            return _by_ls(options.operands or ["."], options, place)
        case "tree" | "du":
            roots = options.operands or ["."]
            if name == "du" or options.has("-a"):
                return ["find", *roots, *(["-maxdepth", "0"] if options.has("-s", "--summarize") else [])]
            return ["find", *roots, *_hidden_out(roots), "-print"]
        case _:
            return None


def _by_ls(roots: Sequence[str], options: Arguments, place: str) -> list[str]:
    if options.has("-d", "--directory"):
        return ["find", *roots, "-maxdepth", "0"]
    sees_hidden = options.has("-a", "--all", "-A", "--almost-all", "-f")
    # A listing does not include the directory itself.
    tests = [] if sees_hidden else _hidden_out(roots)
    if not options.has("-a", "--all", "-f"):
        tests += [part for root in roots if os.path.isdir(os.path.join(place, root)) for part in ("!", "-path", root)]
    depth = [] if options.has("-R", "--recursive") else ["-maxdepth", "1"]
    return ["find", *roots, *depth, *tests, "-print"]


def _plain_find(words: Sequence[str]) -> list[str] | None:
    """Return a `find` that prints nothing but its matches, or None."""
    if collect_reads(without_exec(words), SimpleCommand("", ())) is None or _ANYTHING in words[: tests_begin(words)]:
        return None
    formats = [after for before, after in pairwise(words) if before == "-printf"]
    if not all(_PLAIN_PRINTF.match(text) for text in formats):
        return None
    if not all(run and passes_on([word.replace("{}", "x") for word in run]) for run in runs_of(words)):
        return None
    return [UNKNOWN if word == _ANYTHING else word for word in words]


def passes_on(words: Sequence[str]) -> bool:
    """True if a command prints some of the names in its arguments, whole, and nothing else."""
    name = canonical_name(words[0])
    if name in _PASS_BEHIND_XARGS:
        return True
    command = read_only_command(name)
    options = parse_options(command, words[1:]) if command and name in ("grep", "rg") else None
    return options is not None and options.has(*_SHOW_NAMES)


def _by_search(
    roots: Sequence[str], options: Arguments, place: str, *, sees_hidden: bool, is_fd: bool = False
) -> list[str]:
    globs = [] if is_fd else [*options.given.get("-g", ()), *options.given.get("--glob", ())]
    wanted = [glob for glob in globs if not glob.startswith("!")]
    wanted += options.given.get("--include", ())
    # An explicit glob matches hidden files, too.
    opens = any(glob in ("*", "**", "**/*") or any(map(_may_mean, glob.split("/"))) for glob in globs if glob in wanted)
    pruned = [glob[1:] for glob in globs if glob.startswith("!")] + options.given.get("--exclude-dir", [])
    left_out = [found.group(1) for glob in pruned if (found := _WHERE.match(glob))]
    tests = [part for name in left_out for part in ("-name", name, "-prune", "-o")]
    if not (sees_hidden or opens):
        tests += [*_hidden_out(roots), *_left_out(place)]
    types = [*options.given.get("-t", ()), *options.given.get("--type", ())]
    if types and all(one in _TYPES for one in types):
        wanted += [f"*.{ending}" for one in types for ending in _TYPES[one].split()]
    wanted += [
        f"*.{ending}" for ending in (*options.given.get("-e", ()), *options.given.get("--extension", ()))
    ] * is_fd
    only = [part for glob in wanted if "/" not in glob for part in ("-o", "-name", glob)][1:]
    named = ["(", *only, ")"] if only and all("/" not in glob for glob in wanted) else []
    kind = [] if is_fd else ["-type", "f"]
    return ["find", *roots, *tests, *kind, *named, "-print"]


def _may_mean(component: str) -> bool:
    return bool(protected_name(component)) or may_mean_protected(component)


def _hidden_out(roots: Sequence[str]) -> list[str]:
    """Return tests that exclude hidden names from a search, unless a root is hidden."""
    if any(os.path.basename(root.rstrip("/")).startswith(".") and root.strip("./") for root in roots):
        return []
    return ["-name", ".?*", "-prune", "-o"] if ".." not in "/".join(roots).split("/") else []


def _left_out(place: str) -> Iterator[str]:
    """Yield tests that exclude protected names listed in the repository's `.gitignore`."""
    tops = repository_roots(place)
    if not tops:
        return
    path = os.path.join(tops[0], ".gitignore")
    try:
        text = read_regular_file(path).decode("utf-8", "replace")
    except OSError:
        return
    lines = {line.strip().removeprefix("**/").strip("/") for line in text.split("\n")}
    if any(line.startswith("!") for line in lines):
        return
    for name in sorted(lines & PROTECTED_NAMES.keys()):
        yield from ("-name", name, "-prune", "-o")
