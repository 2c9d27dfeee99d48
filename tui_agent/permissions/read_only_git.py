"""git's read-only subcommands, in the notation of the table of read-only commands.

Options and settings of git can start programs. Options that do (`--ext-diff`, `--textconv`, `-O`, `--upload-pack`,
`-c`) or that write (`--output`) are in no entry. The command's environment turns off the programs that settings can
start.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .read_only_options import Options, Reads, is_known, parse_options, reads_of
from .read_only_table import parse_entry
from .shell_syntax import names
from .tree_filter import TreeFilter, pathspec_filter

_LOG = (
    "-# -bciprstuwzLRSUW -n: -L: -S: -G: -U: -M= -C= -B= -l: -X= --oneline --graph --all --branches= --tags= "
    "--remotes= --decorate= --no-decorate --decorate-refs: --stat= --shortstat --numstat --dirstat= --summary --patch "
    "--no-patch --raw --name-only --name-status --patch-with-stat --compact-summary --cumulative --pretty= --format= "
    "--abbrev= --abbrev-commit --no-abbrev-commit --date= --relative-date --since= --after= --until= --before= "
    "--author= --committer= --grep= --invert-grep --all-match --regexp-ignore-case --extended-regexp --fixed-strings "
    "--perl-regexp --basic-regexp --max-count= --skip= --merges --no-merges --first-parent --reverse --topo-order "
    "--date-order --author-date-order --follow --full-history --simplify-merges --simplify-by-decoration --dense "
    "--sparse --ancestry-path= --left-right --cherry --cherry-pick --cherry-mark --left-only --right-only --boundary "
    "--parents --children --source --no-walk= --do-walk --walk-reflogs --diff-filter= --find-renames= --find-copies= "
    "--find-copies-harder --no-renames --rename-empty --pickaxe-all --pickaxe-regex --word-diff= --word-diff-regex= "
    "--color= --no-color --color-words= --color-moved= --no-color-moved --unified= --minimal --patience --histogram "
    "--diff-algorithm= --anchored= --ignore-space-at-eol --ignore-space-change --ignore-all-space "
    "--ignore-blank-lines --ignore-cr-at-eol --inter-hunk-context= --function-context --full-index --binary --text "
    "--relative= --no-ext-diff --no-textconv --submodule= --ignore-submodules= --src-prefix= --dst-prefix= --no-prefix "
    "--line-prefix= --notes= --no-notes --expand-tabs= --no-expand-tabs --encoding= --mailmap --use-mailmap "
    "--no-mailmap --count --exit-code --quiet --check --cached --staged --merge-base --cc --combined-all-paths -m "
    "--diff-merges= --no-diff-merges --remerge-diff --dd --ignore-missing --min-parents= --max-parents= "
    "--no-min-parents --no-max-parents --exclude= --glob= --stdin-paths --no-indent-heuristic --indent-heuristic "
    "--end-of-options --pickaxe-grep -E -F -P -a"
)

GIT_COMMANDS: dict[str, str] = {
    "status": "PATHS: -bsuz -u= -v --short --branch --show-stash --porcelain= --long --verbose --untracked-files= "
    "--ignored= --ignore-submodules= --null --column= --no-column --ahead-behind --no-ahead-behind --renames "
    "--no-renames --find-renames=",
    "log": f"PATHS: {_LOG}",
    "show": f"PATHS: {_LOG}",
    "diff": f"PATHS: {_LOG} --no-index",
    "whatchanged": f"PATHS: {_LOG}",
    "diff-tree": f"PATHS: {_LOG} --root --no-commit-id",
    "diff-index": f"PATHS: {_LOG}",
    "diff-files": f"PATHS: {_LOG}",
    "rev-list": f"PATHS: {_LOG} --objects --disk-usage= --header --timestamp --bisect --use-bitmap-index",
    "reflog": f"PATHS: {_LOG}",
    "stash": f"PATHS: {_LOG} --include-untracked --only-untracked",
    "range-diff": f"PATHS: {_LOG} --creation-factor=",
    "branch": "PATHS: -aqrv -vv --all --remotes --verbose --quiet --list --show-current --contains= --no-contains= "
    "--merged= --no-merged= --points-at= --sort= --format= --color= --no-color --column= --no-column --abbrev= "
    "--no-abbrev --ignore-case",
    "tag": "PATHS: -l -n= -i --list --contains= --no-contains= --merged= --no-merged= --points-at= --sort= --format= "
    "--color= --column= --no-column --ignore-case",
    "remote": "PATHS: -v --verbose --all --push",
    "rev-parse": "PATHS: --abbrev-ref= --short= --symbolic --symbolic-full-name --show-toplevel --show-prefix "
    "--show-cdup --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-inside-git-dir "
    "--is-bare-repository --is-shallow-repository --show-superproject-working-tree --verify --quiet -q --all "
    "--branches= --tags= --remotes= --revs-only --no-revs --flags --no-flags --default: --show-object-format= "
    "--git-path: --path-format=",
    "describe": "PATHS: --all --tags --contains --abbrev= --candidates= --exact-match --long --always --first-parent "
    "--match= --exclude= --dirty= --broken= --debug",
    "ls-files": "PATHS: -cdmoistuvfzk -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed "
    "--directory --no-empty-directory --exclude= --exclude-standard --error-unmatch --full-name --abbrev= --eol "
    "--deduplicate --recurse-submodules --with-tree= --resolve-undo --sparse",
    "ls-tree": "PATHS: -drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev= "
    "--format=",
    "cat-file": "PATHS: -t -s -p -e --allow-unknown-type --mailmap --use-mailmap --batch= --batch-check= "
    "--batch-all-objects --buffer --unordered",
    "blame": "PATHS: -bcCefklMnpstw -L: --root --show-stats --porcelain --line-porcelain --incremental "
    "--show-name --show-number --show-email --date= --since= --abbrev= --color-lines --color-by-age --minimal "
    "--ignore-rev= --first-parent --progress --no-progress",
    "annotate": "PATHS: -bcefklMnpstw -L:",
    "grep": "PATTERN: -# -aEFGhHiIlLnopPqvwWcz -e:! -A: -B: -C: -m: --cached --untracked --no-exclude-standard "
    "--exclude-standard --recurse-submodules --text --ignore-case --word-regexp --invert-match --extended-regexp "
    "--basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only "
    "--files-without-match --null --only-matching --count --color= --no-color --break --heading --show-function "
    "--function-context --after-context= --before-context= --context= --max-count= --max-depth= --and --or --not "
    "--all-match --quiet --full-name --threads=",
    "shortlog": f"PATHS: {_LOG} -ensw --numbered --summary --email --group=",
    "name-rev": "PATHS: --tags --refs= --exclude= --all --name-only --no-undefined --always",
    "merge-base": "PATHS: -a --all --octopus --independent --is-ancestor --fork-point",
    "for-each-ref": "PATHS: --count= --sort= --format= --points-at= --merged= --no-merged= --contains= "
    "--no-contains= --color= --ignore-case --omit-empty --exclude=",
    "show-ref": "PATHS: -dhqs --head --heads --branches --tags --dereference --hash= --verify --abbrev= --quiet "
    "--exists",
    "show-branch": "PATHS: -ar --all --remotes --current --topo-order --date-order --sparse --more= --list "
    "--merge-base --independent --no-name --sha1-name --topics --color= --no-color",
    "cherry": "PATHS: -v --abbrev=",
    "check-ignore": "PATHS: -qvnz --quiet --verbose --non-matching --no-index",
    "check-attr": "PATHS: -az --all --cached",
    "count-objects": "NONE: -vH --verbose --human-readable",
    "version": "NONE: --build-options",
    "worktree": "PATHS: -vz --verbose --porcelain",
    "symbolic-ref": "ONE: -q --quiet --short",
    "config": "TEXT: --get --get-all --type= --bool --int --default= -z --null --show-origin --show-scope --local",
    "submodule": "TEXT: --quiet --cached --recursive",
    "hash-object": "PATHS: -t: --no-filters --stdin --path:",
    "notes": "TEXT:",
    "sparse-checkout": "TEXT:",
    "var": "TEXT:",
    "fsck": "TEXT: --no-progress --full --no-full --strict --connectivity-only --name-objects",
}
"""Entries by subcommand; operands are revisions or paths and may not lead out of the workspace."""

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
"""Options with which these commands, and the log, always show contents."""
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
    entry = GIT_COMMANDS.get(name)
    command = parse_entry(entry) if entry is not None else None
    options = parse_options(command, rest) if command is not None else None
    if command is None or options is None or not _is_reading(name, options):
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


def _is_reading(name: str, options: Options) -> bool:
    operands = options.operands
    if name in _ONLY_FIRST:
        return bool(operands) and operands[0] in _ONLY_FIRST[name]
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


def _shows_names(name: str, options: Options) -> bool:
    """True if the command shows no contents other than those of the files that its operands name."""
    if name in _SHOWN_BY_NAMES and options.has(*_NAMES_ONLY):
        return True
    return name == "stash" and options.operands == ["list"]


def _path_in(operand: str) -> str:
    """Return the path in `revision:path`, or the operand itself: judged as a path, a revision passes."""
    before, colon, path = operand.partition(":")
    return path if colon and before and not operand.startswith("/") else operand
