"""git's read-only subcommands.

Arguments and settings of git can start programs. Arguments that do (`--ext-diff`, `--textconv`, `-O`, `--upload-pack`,
`-c`) or that write (`--output`) are in no entry. The command's environment turns off the programs that settings can
start.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui_agent.permissions.paths.tree_filter import TreeFilter, pathspec_filter
from tui_agent.permissions.shell.syntax import names

from .argv import Arguments, is_known
from .catalogue import read_only_command
from .reads import Reads, parse_options, reads_of

_ONLY_FIRST: dict[str, tuple[str, ...]] = {
    "stash": ("list", "show"),
    "worktree": ("list",),
    "notes": ("list", "show"),
    "sparse-checkout": ("list",),
}
"""Required first operands; without one of them the command may change something."""
_FILTERS = ("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
_ONLY_LISTING = {"branch": _FILTERS, "tag": (*_FILTERS, "-l")}
"""Commands that create something from an operand unless one of these options is present."""
_GLOBAL_FLAGS = frozenset(("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"))
_SHOWING = names("show diff grep whatchanged diff-tree diff-index diff-files stash cat-file range-diff")
"""Commands that show the contents of any files."""
_PATCHES = names(
    "-p -u -U -L --patch --unified --patch-with-stat --word-diff --word-diff-regex --color-words --binary --cc -c -m "
    "--dd --diff-merges --remerge-diff -W --function-context --check"
)
"""Arguments with which these commands, and the log, always show contents."""
_NAMES_ONLY = names("--stat --shortstat --numstat --name-only --name-status --summary --dirstat --quiet -s --no-patch")
_SHOWN_BY_NAMES = names("show diff whatchanged diff-tree diff-index diff-files")
_FILE_OF_REVISION = re.compile(r"[\w./~^@-]+:[\w./@+-]+\Z", re.ASCII)
_SIGNATURES = re.compile(r"%G|%\((?:signature|contents:signature)")
_PLAIN_VARIABLES = re.compile(r"GIT_(?:AUTHOR_IDENT|COMMITTER_IDENT|EDITOR|PAGER|DEFAULT_BRANCH)\Z")
# Without `remote.*.url`: a URL may contain a token.
_PLAIN_KEYS = re.compile(r"(?:user|core|branch|init|pull|push|merge|rebase|color|diff|log|status|fetch)\.[\w.-]+\Z")


@dataclass(frozen=True, slots=True)
class GitWords:
    """A git command after its global options."""

    directory: str | None
    """Directory of `-C`; None for the working directory."""
    words: tuple[str, ...]
    """The subcommand and its words."""


def git_words(words: Sequence[str]) -> GitWords | None:
    """Remove the harmless global options, or return None if there is another one."""
    directory: str | None = None
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C" and at + 1 < len(words) and directory is None and is_known(words[at + 1]):
            directory = words[at + 1]
            at += 2
        elif words[at] in _GLOBAL_FLAGS:
            at += 1
        else:
            return None
    return GitWords(directory, tuple(words[at:]))


def git_reads(words: Sequence[str]) -> Reads | None:
    """Return the paths that a git command (with its name) reads, or None if it is not known to be read-only."""
    # With another word, `git help` opens a manual page.
    if len(words) == 2 and words[1] in ("--version", "-v", "--help", "-h", "help", "version"):
        return Reads()
    found = git_words(words)
    if found is None or not found.words:
        return None
    name, *rest = found.words
    command = read_only_command("git", name)
    options = parse_options(command, rest) if command is not None else None
    if command is None or options is None or not _is_reading(name, rest, options):
        return None
    used = reads_of(command, options)
    # A format with a signature starts gpg.
    if used is None or (name != "grep" and any(_SIGNATURES.search(word) for word in rest)):
        return None
    directory = found.directory or "."
    base = f"{found.directory}/" if found.directory else ""
    paths = (_path_in(path) for path in used.paths)
    below = tuple(path if path.startswith("/") else f"{base}{path}" for path in paths)
    shows = options.has(*_PATCHES) or (name in _SHOWING and not _shows_names(name, options))
    # Without `--`, an operand may be a revision and restrict nothing.
    includes = pathspec_filter(rest[rest.index("--") + 1 :]) if "--" in rest else None
    from_top = shows and includes is None
    if name == "show" and options.operands and all(map(_FILE_OF_REVISION.match, options.operands)):
        # The path starts at the top of the repository, unless it starts with a dot.
        includes = TreeFilter(
            wanted=tuple(operand.rpartition("/")[2].rpartition(":")[2] for operand in options.operands)
        )
    trees = (directory,) if shows else ()
    shows_remote_urls = name == "remote" and (options.has("-v", "--verbose") or bool(options.operands))
    return Reads(
        (directory, *below),
        trees,
        repository=directory,
        includes=includes,
        from_top=from_top,
        shows_remote_urls=shows_remote_urls,
    )


def _is_reading(name: str, words: Sequence[str], options: Arguments) -> bool:
    operands = options.operands
    if name in _ONLY_FIRST:
        # `git stash -- list` and `git stash -p list` push a stash: git looks at the first word.
        return words[:1] == operands[:1] and bool(operands) and operands[0] in _ONLY_FIRST[name]
    if name in _ONLY_LISTING:
        return not operands or options.has(*_ONLY_LISTING[name])
    if name == "remote":
        return operands in ([], ["show"]) or operands[0] == "get-url"
    if name == "submodule":
        return operands[:1] in ([], ["status"]) and not any(":" in operand for operand in operands)
    if name == "var":
        return len(operands) == 1 and bool(_PLAIN_VARIABLES.match(operands[0]))
    if name == "diff" and options.has("--no-index"):
        return len(operands) == 2  # Reads any two files, also outside a repository.
    if name == "reflog":
        return not operands or operands[0] in ("show", "HEAD")
    if name == "config":
        reads = len(operands) == 1 or options.has("--get", "--get-all")
        return reads and all(_PLAIN_KEYS.match(operand) for operand in operands[:1])
    return True


def _shows_names(name: str, options: Arguments) -> bool:
    """True if the command shows no contents other than those of the files that its operands name."""
    if name in _SHOWN_BY_NAMES and options.has(*_NAMES_ONLY):
        return True
    return name == "stash" and options.operands == ["list"]


def _path_in(operand: str) -> str:
    """Return the path in `revision:path`, or the operand itself: judged as a path, a revision passes."""
    before, colon, path = operand.partition(":")
    return path if colon and before and not operand.startswith("/") else operand
