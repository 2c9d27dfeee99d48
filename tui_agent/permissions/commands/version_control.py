"""git's subcommands: those that only read, the files that the others change, the programs that they start.

Arguments and settings of git can start programs. Arguments that do (`--ext-diff`, `--textconv`, `-O`, `--upload-pack`,
`-c`) or that write (`--output`) are harmless in no row. The command's environment turns off the programs that settings
can start.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tui_agent.permissions.commands.searches import pathspec_filter
from tui_agent.permissions.paths.repository import index_names, repository_roots
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand, names

from .argv import Arguments, exact_arguments, is_known, is_remote, parse_arguments, programs_of, reads_by_row, writes_of
from .catalogue import (
    CommandFacts,
    canonical_name,
    group,
    matching_row,
    read_only_command,
    subcommand_at,
    words_by_program,
)
from .invocation import Copy, FileFilter, Invocation, Reads, Write, attached_paths, writes_to

_GLOBAL_FLAGS = names("--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects")
_SHOWING = names("show diff grep whatchanged diff-tree diff-index diff-files stash cat-file range-diff")
"""Commands that show the contents of any files."""
_NAMES_ONLY = names("--stat --shortstat --numstat --name-only --name-status --summary --dirstat --quiet -s --no-patch")
_SHOWN_BY_NAMES = names("show diff whatchanged diff-tree diff-index diff-files")
_FILE_OF_REVISION = re.compile(r"[\w./~^@-]+:[\w./@+-]+\Z", re.ASCII)
_SIGNATURES = re.compile(r"%G|%\((?:signature|contents:signature)")
# Without `remote.*.url`: a URL may contain a token.
_PLAIN_KEYS = re.compile(r"(?:user|core|branch|init|pull|push|merge|rebase|color|diff|log|status|fetch)\.[\w.-]+\Z")
_PROGRAM_SETTING = re.compile(
    r"(?i:core\.(?:pager|editor|sshcommand|fsmonitor|gitproxy|askpass|alternaterefscommand)|sequence\.editor|"
    r"diff\.external|pager\.[\w-]+|gpg\.(?:\w+\.)?program|"
    r"\S+\.(?:textconv|command|cmd|driver|helper|process|clean|smudge|path|uploadpack|receivepack|packobjectshook))=(.+)",
    re.DOTALL,
)
"""Settings that name a program."""
_MESSAGE = re.compile(r"-[A-Za-z]*[mF]\Z|--(?:message|file|grep|author|date|trailer)\Z")
_ATTACHED_MESSAGE = re.compile(r"-m.|--(?:message|grep|author|date|trailer|format|pretty)=")
_TRANSPORT = re.compile(r"[\w+-]+::")
_RESETTING = names("--hard --merge --keep -f --force --discard-changes")
_STASH_ONLY = names("list show drop create store clear")
"""Actions of `git stash` that leave the files of the working tree as they are."""
_PATHSPEC = re.compile(r"\A:|[*?\[\\]")
"""A pattern, or a path from the top of the repository."""
_SETTING_KEY = re.compile(r"[A-Za-z][\w-]*\.\S")
_READING_SETTINGS = names("get list -l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool")
_CHANGES_SECTIONS = names("edit rename-section --rename-section remove-section --remove-section")
_PLAIN_SETTING = re.compile(
    r"(?i)(?:user|author|committer|color|column|advice|tag|log|status|push|pull|fetch|rebase|pack|i18n|index|grep|stash|"
    r"rerere|transfer|feature|safe|branch|versionsort|(?:diff|merge|init|gc|format|submodule|blame|commit)"
    r"(?!\.(?:\w*(?:tool|external|file)|template(?:dir)?|recent))"
    r")\.[\w-]+(?:=.*)?|protocol\.version=\d|branch\.[\w./-]+\.(?:remote|merge|rebase|description)=.*|"
    r"core\.(?:abbrev|autocrlf|bigfilethreshold|checkstat|commentchar|compression|deltabasecachelimit|eol|filemode|"
    r"fscache|ignorecase|longpaths|loosecompression|packedgit\w+|precomposeunicode|preloadindex|quotepath|safecrlf|"
    r"sparsecheckout\w*|symlinks|trustctime|untrackedcache|whitespace)=.*|"
    r"http\.(?:postbuffer|lowspeed\w+|maxrequests|minsessions|version|useragent|extraheader)=.*|"
    r"(?!alias\.|http\.|core\.bare|\S+\.(?:update|insteadof)=)\S+=(?:true|false|cat|:|)",
    re.DOTALL,
)
"""Settings that name no program and no place, or a harmless one."""
_PATCHES = re.compile(r"git (?:archive|bundle create|diff|diff-tree|difftool|fast-export|format-patch|log|show)\Z")
_DIFF_PLAIN = frozenset(("--name-only", "--relative"))
_DIFF_FILTER = re.compile(r"--diff-filter=[AMTd]+\Z")
_LISTS_PLAIN = frozenset(("-c", "-z", "-m", "-d", "--cached", "--modified", "--deleted", "--"))
_BELOW = frozenset(f"git {name}" for name in ("checkout", "restore", "checkout-index", "clean", "rm"))
"""Commands that change files below the directories that their words name."""
_REVISION = re.compile(r"[A-Za-z0-9@][\w./^~@{}]*\Z", re.ASCII)
_SHORT = re.compile(r"--short(?:=\d+)?\Z|--verify\Z|-q\Z|--quiet\Z")
_COUNTED = re.compile(r"-\d+\Z|-n\d+\Z|--max-count=\d+\Z|--(?:all|reverse|no-merges|merges|first-parent)\Z")
_HASHES = names("--format=%h --format=%H --pretty=format:%h --pretty=format:%H --pretty=%h --pretty=%H")
_ONLY_SHOWS = names("--check --stat --numstat --summary --cached")
"""Options of `git apply` that leave the files of the working tree as they are."""


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


def git_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the paths that a git command (with its name) reads, or None if it is not known to be read-only."""
    # With another word, `git help` opens a manual page.
    if len(words) == 2 and words[1] in ("--version", "-v", "--help", "-h", "help", "version"):
        return Reads()
    found = git_words(words)
    if found is None or not found.words:
        return None
    name, *rest = found.words
    command = read_only_command("git", name)
    options = exact_arguments(command, rest) if command is not None else None
    if command is None or options is None or not _is_reading(name, options):
        return None
    used = reads_by_row(command, options)
    # A format with a signature starts gpg.
    if used is None or (name != "grep" and any(_SIGNATURES.search(word) for word in rest)):
        return None
    directory = found.directory or "."
    base = f"{found.directory}/" if found.directory else ""
    paths = (_path_in(path) for path in used.paths)
    below = tuple(path if path.startswith("/") else f"{base}{path}" for path in paths)
    shows = options.has(*group("git_patches")) or (name in _SHOWING and not _shows_names(name, options))
    # Without `--`, an operand may be a revision and restrict nothing.
    includes = pathspec_filter(rest[rest.index("--") + 1 :]) if "--" in rest else None
    from_top = shows and includes is None
    if name == "show" and options.operands and all(map(_FILE_OF_REVISION.match, options.operands)):
        # The path starts at the top of the repository, unless it starts with a dot.
        includes = FileFilter(wanted=tuple(one.rpartition("/")[2].rpartition(":")[2] for one in options.operands))
    return Reads(
        (directory, *below),
        (directory,) if shows else (),
        repository=directory,
        includes=includes,
        from_top=from_top,
        shows_remote_urls=name == "remote" and (options.has("-v", "--verbose") or bool(options.operands)),
    )


def _is_reading(name: str, options: Arguments) -> bool:
    operands = options.operands
    if name == "diff" and options.has("--no-index"):
        return len(operands) == 2  # Reads any two files, also outside a repository.
    if name == "config":
        reads = len(operands) == 1 or options.has("--get", "--get-all")
        return reads and all(map(_PLAIN_KEYS.match, operands[:1]))
    return True


def _shows_names(name: str, options: Arguments) -> bool:
    """True if the command shows no contents other than those of the files that its operands name."""
    return (name in _SHOWN_BY_NAMES and options.has(*_NAMES_ONLY)) or (name, options.operands) == ("stash", ["list"])


def _path_in(operand: str) -> str:
    """Return the path in `revision:path`, or the operand itself: judged as a path, a revision passes."""
    before, colon, path = operand.partition(":")
    return path if colon and before and not operand.startswith("/") else operand


def git_invocation(words: Sequence[str]) -> Invocation:
    """Return git's output files, the files it removes or restores, the directories it makes."""
    at = subcommand_at(words)
    # `ext::COMMAND` as a repository runs a command.
    settings = (*(after for before, after in pairwise(words) if before == "-c"), *filter(_TRANSPORT.match, words[1:]))
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
        invocation = _by_row(*found, directory, mentions)
    else:
        mentions += [name for name in rest[:1] if UNKNOWN in name]
        named = _without_messages(rest[1:])
        operands = () if rest and rest[0] in group("git_reading") else named
        attached = attached_paths(word for word in named if word.startswith("-"))
        invocation = Invocation(mentions=writes_to([*mentions, *operands]), runs_in=directory, attached=attached)
    return replace(
        invocation,
        code=(*invocation.code, *settings),
        changes_tracked=_changes_tracked(rest[0], rest[1:]) if rest else False,
        attached=(*invocation.attached, *writes_to(mentions)),
        works_in=(*places.values(), *invocation.works_in),
    )


def _changes_tracked(name: str, words: Sequence[str]) -> bool:
    """True if a subcommand may change tracked files that its words do not name."""
    row = matching_row(("git", name, *words))
    found = parse_arguments(*row) if row else Arguments()
    match name:
        case "checkout" if "--" not in words:
            makes_branch = found.has("-b", "-B", "--orphan")
            is_tree = len(found.operands) == 1 or bool(found.operands and makes_branch)
            changes = is_tree or found.has("-f", "--force", "-m", "--merge", "-p", "--patch")
        case "switch":
            changes = bool(found.operands) or found.has("--orphan", *_RESETTING, "-m")
        case "stash":
            action = next((word for word in words if not word.startswith("-")), "push")
            names_files = action == "push" and bool(found.operands)
            changes = action not in _STASH_ONLY and not names_files
        case _:
            changes = name in group("git_tracked") or name not in group("git_subcommands")
            changes = changes or not words_by_program("git_tracked_with").get(name, frozenset()).isdisjoint(
                (*words, *found.flags)
            )
    writes = row is not None and row[0].writes != "NONE"
    return changes or (writes and (found.has("--pathspec-from-file", "--stdin") or any(map(_PATHSPEC.search, words))))


def _by_row(row: CommandFacts, words: Sequence[str], directory: str | None, mentions: list[str]) -> Invocation:
    found = parse_arguments(row, words)
    writes = writes_of("git", row, found)
    # `git restore --staged` alone changes only the index.
    if row.name == "git restore" and found.has("--staged", "-S") and not found.has("--worktree", "-W"):
        writes = ()
    is_everywhere = row.name == "git clean" and not found.operands and not found.has("-n", "--dry-run")
    is_everywhere = is_everywhere or (row.name == "git checkout-index" and found.has("-a", "--all"))
    is_everywhere = is_everywhere or (row.name == "git checkout" and found.has("-f", "--force"))
    if is_everywhere or (row.name in ("git reset", "git switch") and found.has(*_RESETTING)):
        writes = (*writes, Write(".", below=True, includes=FileFilter()))
    if row.name in _BELOW:
        writes = tuple(replace(write, below=True) for write in writes)
    is_patch = row.name == "git apply" and not found.has(*_ONLY_SHOWS)
    return Invocation(
        writes=writes,
        mentions=writes_to([*mentions, *_without_messages(found.unclear)]),
        code=tuple(programs_of(row, found)),
        works_in=tuple(one for one in found.operands if row.works_in and not is_remote(one)),
        runs_in=found.directory or directory,
        copies=(Copy(None, found.into or "."),) if is_patch else (),
        attached=attached_paths(_without_messages(found.of("", "optional"))),
    )


def _without_messages(words: Iterable[str]) -> list[str]:
    """Return the words of a git command without free text such as a commit's message."""
    pairs = pairwise(("", *words))
    return [word for before, word in pairs if not _MESSAGE.match(before) and not _ATTACHED_MESSAGE.match(word)]


def prints_revisions(words: Sequence[str]) -> bool:
    """True if a command prints only revisions: ones that git names, or the one in its arguments."""
    found = git_words(words) if words[:1] == ["git"] else None
    if found is None or not found.words:
        return False
    name, *rest = found.words
    if name == "rev-parse":
        rest = [word for word in rest if not _SHORT.match(word)]
        return len(rest) == 1 and bool(_REVISION.match(rest[0]))
    if name == "merge-base":
        return bool(rest) and all(map(_REVISION.match, rest))
    if name == "log" and _HASHES.isdisjoint(rest):
        return False
    others = [word for word in rest if word not in _HASHES and not _COUNTED.match(word)]
    return name in ("log", "rev-list") and all(map(_REVISION.match, others))


def prints_top(words: Sequence[str]) -> bool:
    """True if a command prints the top directory of its repository, or nothing."""
    return list(words) == ["git", "rev-parse", "--show-toplevel"]


# --- programs that git starts -----------------------------------------------------------------------------------------


def runs_at(words: Sequence[str]) -> int | None:
    """Return the index of the command that `git bisect run`, `submodule foreach` or `merge-index` runs, or None."""
    at = subcommand_at(words)
    action = next((place for place in range(at + 1, len(words)) if not words[place].startswith("-")), None)
    if action is None or words[at] == "merge-index":
        return action
    if (words[at], words[action]) not in (("bisect", "run"), ("submodule", "foreach")):
        return None
    return next((place for place in range(action + 1, len(words)) if not words[place].startswith("--")), len(words))


def programs_in(words: Sequence[str]) -> list[str]:
    """Return the programs in a git command's settings and options, as texts for a shell."""
    at = subcommand_at(words)
    set_by_option = (value for before, value in pairwise(words[: at + 1]) if before == "-c")
    programs = [setting.group(1) for value in set_by_option if (setting := _PROGRAM_SETTING.match(value))]
    programs += [value.partition("!")[2] for value in words[1:at] if "=!" in value.replace(" ", "")]
    found = matching_row(words)
    return programs + (parse_arguments(*found).of("code", "program") if found else [])


def settings_to_spell(words: Sequence[str]) -> Iterator[str]:
    """Yield remote helpers that run a program, and settings that name one; nothing for another command."""
    if canonical_name(words[0]) != "git":
        return
    yield from (word for word in words[1:] if _TRANSPORT.match(word.rpartition("=")[2]))
    at = subcommand_at(words)
    own = words[1:at]
    yield from (word for word in own if word.startswith(("--exec-path=", "--config-env")))
    yield from (word for before, word in pairwise(own) if before == "-c" and not _PLAIN_SETTING.fullmatch(word))
    if "config" in words[at : at + 1] and _READING_SETTINGS.isdisjoint(words[at + 1 :]):
        yield from _settings(words[at + 1 :])


def _settings(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of `git config` with which it changes more than a plain setting."""
    yield from (word for word in words if word in _CHANGES_SECTIONS)
    at = next((at for at, word in enumerate(words) if _SETTING_KEY.match(word)), len(words))
    key, value = (*words[at:], "", "")[:2]
    # Without a value, it only shows the setting.
    if words[at + 1 :] and not _PLAIN_SETTING.fullmatch(f"{key}={value}"):
        yield key


# --- names of commands ------------------------------------------------------------------------------------------------


def forms_of(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the forms of a command (without directory) that rules are compared with; none for a program but git.

    A rule means the subcommand, with any of git's own options before it and however it is spelled: `git-push`, or
    another subcommand that sends commits. A word that is not a subcommand may be an alias of any.
    """
    name, *rest = words
    if name.startswith("git-"):
        rest = [name[4:], *rest]
    elif name in ("git", "hub"):
        rest = list(words[subcommand_at(words) :])
    else:
        return []
    forms = [("git", *rest)]
    subcommand = rest[0] if rest else ""
    if subcommand in words_by_program("git_synonyms"):
        forms += [("git", other, *rest[1:]) for other in words_by_program("git_synonyms")[subcommand]]
    if not words_by_program("git_pushes").get(subcommand, frozenset()).isdisjoint(rest[1:]):
        forms.append(("git", "push", *rest[1:]))
    if subcommand == "for-each-repo":
        forms.append(("git", *(word for word in rest[1:] if not word.startswith("-"))))
    if name in ("git", "hub") and rest and is_known(subcommand) and subcommand not in group("git_subcommands"):
        forms.append(("git", UNKNOWN))
    return forms


def alias_expansions(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the text and the following words of each alias that a git command sets."""
    if words and canonical_name(words[0]) == "git":
        yield from ((word, *words[at + 1 :]) for at, word in enumerate(words) if word.startswith("alias."))


def shows_patches(words: Sequence[str]) -> bool:
    """True if a command shows the contents of any files of the repository."""
    row = matching_row(words) if canonical_name(words[0]) == "git" else None
    return row is not None and bool(_PATCHES.match(row[0].name) or (row[0].name == "git stash" and "show" in words))


def searches_files(words: Sequence[str]) -> bool:
    """True if a command searches the files of the working directory."""
    row = matching_row(words)
    return row is not None and row[0].name == "git grep"


def names_of_tracked(words: Sequence[str], directory: str) -> tuple[str, ...] | None:
    """Return the names of tracked files that a git command can print, or None if it may print anything else.

    `git diff --name-only` prints the files that may differ from the index, or from a commit if a filter leaves out the
    deleted ones. git names them relative to the top of the repository, so the names are right only there. Files that
    exist only in another revision are in no index.
    """
    found = git_words(words) if canonical_name(words[0]) == "git" else None
    if found is None or found.directory is not None:
        return None
    name, *rest = found.words or ("",)
    if name == "diff" and "--name-only" in rest:
        others = {word for word in rest if word not in _DIFF_PLAIN and not _DIFF_FILTER.match(word)}
        is_filtered = any(map(_DIFF_FILTER.match, rest)) and others <= {"--cached", "--staged", "HEAD"}
        is_listed = (not others or is_filtered) and repository_roots(directory) == [directory]
    else:
        is_listed = name == "ls-files" and all(word in _LISTS_PLAIN for word in rest if word.startswith("-"))
    return index_names(directory) if is_listed else None


def prints_own_directory(name: str, words: Sequence[str]) -> bool:
    """True if a command may print the path of a repository's own directory."""
    return name == "git" and any(word.startswith(("--git-", "--absolute-git-dir")) for word in words)


READERS = {"git": git_reads}
INVOCATIONS = {"git": git_invocation}
