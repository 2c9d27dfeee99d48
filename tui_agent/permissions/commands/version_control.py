"""git's subcommands: those that only read, the files that the others change, the programs that they start.

Arguments and settings of git can start programs. Arguments that do (`--ext-diff`, `--textconv`, `-O`, `--upload-pack`,
`-c`) or that write (`--output`) are harmless in no row. The command's environment turns off the programs that settings
can start.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise

from tui_agent.git.repository import index_names, repository_roots
from tui_agent.permissions.commands.searches import pathspec_filter
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand

from .argv import Arguments, arguments_of, exact_arguments, is_known, parse_arguments
from .catalogue import (
    CommandFacts,
    canonical_name,
    group,
    matching_row,
    read_only_command,
    subcommand_at,
    words_by_program,
)
from .invocation import Copy, FileFilter, Invocation, Reach, Reads, Write, attached_paths, writes_to
from .row_effects import invocation_by_row, reads_by_row

_FILE_OF_REVISION = re.compile(r"[\w./~^@-]+:[\w./@+-]+\Z", re.ASCII)
_SIGNATURES = re.compile(r"%G|%\((?:signature|contents:signature)")
_TRANSPORT = re.compile(r"[\w+-]+::")
_LOCAL = re.compile(r"[./~]|file:")
_PATHSPEC = re.compile(r"\A:|[*?\[\\]")
"""A pattern, or a path from the top of the repository."""
_PATCHES = ("git apply", "git am", "git quiltimport")
_SETTING_KEY = re.compile(rf"\A[A-Za-z][\w-]*\.\S|{UNKNOWN}")
_REVISION = re.compile(r"[A-Za-z0-9@][\w./^~@{}]*\Z", re.ASCII)
_DIFF_FILTER = re.compile(r"--diff-filter=[AMTd]+\Z")
_FLAGS = re.compile(r"-[A-Za-z]+\Z")
_FROM_FILE = "--pathspec-from-file"
_NUMBER = re.compile(r"=?\d+\Z")
"""A number at the end of an option."""


def _own_options(words: Sequence[str]) -> Arguments:
    """Sort git's own options, before the subcommand."""
    return arguments_of(("git", "options", *words[1 : subcommand_at(words)]))


def git_words(words: Sequence[str]) -> tuple[str | None, tuple[str, ...]] | None:
    """Remove the harmless global options, or return None if there is another one or no subcommand.

    Returns:
        The directory of `-C`, None for the working directory; the subcommand and its words.
    """
    at, own = subcommand_at(words), _own_options(words)
    is_plain = own.is_exact and len(own.given.get("-C", ())) < 2 and at < len(words)
    return (own.directory, tuple(words[at:])) if is_plain else None


def git_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the paths that a git command (with its name) reads, or None if it is not known to be read-only."""
    # With another word, `git help` opens a manual page.
    if len(words) == 2 and words[1] in ("--version", "-v", "--help", "-h", "help", "version"):
        return Reads()
    directory, (name, *rest) = git_words(words) or (None, ("",))
    command = read_only_command("git", name)
    options = exact_arguments(command, rest) if command is not None else None
    used = reads_by_row(command, options) if command is not None and options is not None else None
    # A format with a signature starts gpg.
    if options is None or used is None or (name != "grep" and any(_SIGNATURES.search(word) for word in rest)):
        return None
    base, top = f"{directory}/" if directory else "", directory or "."
    paths = (_path_in(path) for path in used.paths)
    below = tuple(path if path.startswith("/") else f"{base}{path}" for path in paths)
    shows = options.has(*group("git_patches")) or (name in group("git_showing") and not _shows_names(name, options))
    # Without `--`, an operand may be a revision and restrict nothing.
    includes = pathspec_filter(rest[rest.index("--") + 1 :]) if "--" in rest else None
    from_top = shows and includes is None
    if name == "show" and options.operands and all(map(_FILE_OF_REVISION.match, options.operands)):
        # The path starts at the top of the repository, unless it starts with a dot.
        includes = FileFilter(wanted=tuple(one.rpartition("/")[2].rpartition(":")[2] for one in options.operands))
    return Reads(
        (top, *below),
        (top,) if shows else (),
        repository=top,
        includes=includes,
        from_top=from_top,
        shows_remote_urls=name == "remote" and (options.has("-v", "--verbose") or bool(options.operands)),
    )


def _shows_names(name: str, options: Arguments) -> bool:
    """True if the command shows no contents other than those of the files that its operands name."""
    is_named = name in group("git_shown_by_names") and options.has(*group("git_names_only"))
    return is_named or (name, options.operands) == ("stash", ["list"])


def _path_in(operand: str) -> str:
    """Return the path in `revision:path`, or the operand itself: judged as a path, a revision passes."""
    before, colon, path = operand.partition(":")
    return path if colon and before and not operand.startswith("/") else operand


def git_invocation(words: Sequence[str]) -> Invocation:
    """Return git's output files, the files it removes or restores, the directories it makes."""
    at, own = subcommand_at(words), _own_options(words)
    directory, work_trees = own.directory, own.given.get("--work-tree", ())
    for tree in work_trees:
        directory = tree if directory is None or tree.startswith("/") else f"{directory}/{tree}"
    rest, row = words[at:], matching_row(words)
    mentions = writes_to(["."] if any(work_trees) else [])
    if row is not None and row[0].has_effects:
        invocation = _by_row(*row)
        if row[0].name in ("git init", "git clone"):
            # Their git directory does not depend on the working tree.
            invocation, directory = _making(row[0].name, invocation, own, arguments_of(words)), own.directory
    else:
        operands = () if rest and rest[0] in group("git_reading") else rest[1:]
        # Any word behind an alias may be a script.
        is_alias = bool(rest) and rest[0] not in group("git_subcommands")
        attached = attached_paths(word for word in rest[1:] if is_alias or word.startswith("-"))
        unknown = [name for name in rest[:1] if UNKNOWN in name]
        invocation = Invocation(mentions=writes_to([*unknown, *operands]), attached=(*attached, *writes_to(unknown)))
    # `ext::COMMAND` as a repository runs a command.
    settings = (*own.given.get("-c", ()), *filter(_TRANSPORT.match, words[1:]))
    return replace(
        invocation,
        mentions=tuple(dict.fromkeys((*mentions, *invocation.mentions))),
        attached=(*invocation.attached, *mentions),
        code=(*invocation.code, *settings),
        runs_in=invocation.runs_in or directory,
        works_in=(*filter(None, [own.directory]), *own.of("place"), *invocation.works_in),
        changes_tracked=bool(rest) and _changes_tracked(rest[0], rest[1:]),
    )


def _by_row(row: CommandFacts, words: Sequence[str]) -> Invocation:
    found, invocation = parse_arguments(row, words), invocation_by_row("git", row, words)
    # `git restore --staged` alone changes only the index.
    if row.name == "git restore" and found.has("--staged", "-S") and not found.has("--worktree", "-W"):
        return replace(invocation, writes=())
    if (reach := _reach(row.name, found, words)) is not None:
        places = ["."] if row.name == "git clean" and not found.operands else []
        places += [":/"] if row.name.startswith("git stash") or found.has(_FROM_FILE) else []
        named = (replace(one, reach=reach) if one.below and not one.includes else one for one in invocation.writes)
        others = (Write(place, below=True, includes=FileFilter(), reach=reach) for place in places)
        return replace(invocation, writes=(*named, *others))
    if row.name in _PATCHES and not found.has(*group("git_only_shows")):
        return replace(invocation, copies=(Copy(None, found.into or "."),))
    if row.name in ("git clone", "git submodule add", "git worktree add", "git worktree move") and found.operands:
        return replace(invocation, copies=(Copy(None, _checked_out_to(row, found.operands), is_merged=False),))
    return invocation


def _checked_out_to(row: CommandFacts, operands: Sequence[str]) -> str:
    """Return the directory that gets a copy of a repository's files."""
    if row.writes == "FIRST" or len(operands) > 1:
        return operands[row.writes != "FIRST"]
    return _name_in(operands[0])


def _name_in(address: str) -> str:
    """Return the name of a repository in its address, by which a clone's directory is named."""
    return re.split(r"[/:]", address.rstrip("/").removesuffix("/.git"))[-1].removesuffix(".git")


def _reach(name: str, found: Arguments, words: Sequence[str]) -> Reach | None:
    """Return which files below its pathspecs a subcommand changes; None if it takes none, or changes nothing."""
    if name.startswith("git stash"):
        return "anything" if found.has("-a", "--all") and group("git_stash_only").isdisjoint(words[:1]) else None
    if name != "git clean":
        return "tracked" if name in ("git checkout", "git checkout-index", "git restore", "git rm") else None
    if found.has("-n", "--dry-run"):
        return None
    forces = sum(word.count("f") for word in words if _FLAGS.match(word)) + words.count("--force")
    return "anything" if forces > 1 or found.has("-x", "-X") else "untracked"


def _making(name: str, invocation: Invocation, own: Arguments, found: Arguments) -> Invocation:
    """Return the invocation of a command that makes a repository, with the git directory and the working tree."""
    first, *others = found.operands or [""]
    places = [first] if name == "git init" else others
    place = next(filter(None, places), "." if name == "git init" else f"{_name_in(first)}.git")
    named = own.given.get("--git-dir", [])
    is_bare = found.has("--bare", "--mirror") or own.has("--bare")
    writes = (Write(path) for path in (*named, *own.given.get("--work-tree", ())))
    # Without a name, it makes a directory in the working directory.
    unnamed = () if any(places) else (Write(".", includes=FileFilter()),)
    return replace(
        invocation,
        writes=(*invocation.writes, *writes, *unnamed),
        repositories=(*named, *found.given.get("--separate-git-dir", ()), *([place] if is_bare else ())),
    )


def _changes_tracked(name: str, words: Sequence[str]) -> bool:
    """True if a subcommand may change tracked files that its words do not name."""
    row, found = matching_row(("git", name, *words)), arguments_of(("git", name, *words))
    writes = row is not None and row[0].writes != "NONE"
    if writes and (found.has(_FROM_FILE, "--stdin") or any(map(_PATHSPEC.search, words))):
        return True
    if name in ("checkout", "switch"):
        if name == "checkout" and "--" in words:
            return False
        is_tree = name == "switch" or len(found.operands) == 1 or found.has("-b", "-B", "--orphan")
        return (is_tree and bool(found.operands)) or found.has(*group("git_resetting"))
    if name == "stash":
        action = next((word for word in words if not word.startswith("-")), "push")
        return action not in group("git_stash_only") and not (action == "push" and found.operands)
    is_tracked = name in group("git_tracked") or name not in group("git_subcommands")
    tracked_with = words_by_program("git_tracked_with").get(name, frozenset())
    return is_tracked or not tracked_with.isdisjoint((*words, *found.flags))


def prints_revisions(words: Sequence[str]) -> bool:
    """True if a command prints only revisions: ones that git names, or the one in its arguments."""
    _, (name, *rest) = (git_words(words) if words[:1] == ["git"] else None) or (None, ("",))
    options = {_NUMBER.sub("", word) for word in rest if word.startswith("-")}
    if name == "log" and group("git_hashes").isdisjoint(options):
        return False
    plain = words_by_program("prints_revisions").get(name)
    named = [word for word in rest if not word.startswith("-")]
    if plain is None or not options <= plain | group("git_hashes") or (name == "rev-parse" and len(named) != 1):
        return False
    return all(map(_REVISION.match, named))


def prints_top(words: Sequence[str]) -> bool:
    """True if a command prints the top directory of its repository, or nothing."""
    return list(words) == ["git", "rev-parse", "--show-toplevel"]


# --- programs that git starts -----------------------------------------------------------------------------------------


def programs_in(words: Sequence[str]) -> list[str]:
    """Return the programs in a git command's settings and options, as texts for a shell."""
    named = (setting.partition("=")[2].lstrip("! ") for setting in _settings_to_obey(words))
    return [*named, *arguments_of(words).of("code", "program")]


def _settings_to_obey(words: Sequence[str]) -> list[str]:
    """Return the settings of a command's own options that may name a program or a place."""
    given = _own_options(words).given
    held = (f"{setting.rpartition('=')[0]}={UNKNOWN}" for setting in given.get("--config-env", ()))
    return [setting for setting in (*given.get("-c", ()), *held) if not _is_plain(setting)]


def _is_plain(setting: str) -> bool:
    """True if `NAME=value` names no program and no place, or a harmless one."""
    name, equals, value = setting.lower().partition("=")
    if not is_known(name) or any(fnmatchcase(name, pattern) for pattern in group("git_settings_with_programs")):
        return False
    is_plain_name = any(fnmatchcase(name, pattern) for pattern in group("git_plain_settings"))
    return is_plain_name or (bool(equals) and value in ("true", "false", "cat", ":", ""))


def settings_to_spell(words: Sequence[str]) -> Iterator[str]:
    """Yield remote helpers that run a program, and settings that name one; nothing for another command."""
    if canonical_name(words[0]) != "git":
        return
    yield from (word for word in words[1:] if _TRANSPORT.match(word.rpartition("=")[2]))
    own = words[1 : subcommand_at(words)]
    yield from (word for word in own if word.startswith(("--exec-path=", "--config-env")))
    yield from _settings_to_obey(words)
    yield from stored_settings(words)


def stored_settings(words: Sequence[str]) -> Iterator[str]:
    """Yield what a command changes of git's stored settings and hooks, beyond plain settings; nothing for most."""
    at = subcommand_at(words)
    name, rest = words[0].rpartition("/")[2], words[at:]
    is_git = name in ("git", "hub") and bool(rest)
    if not words_by_program("installs_hooks").get(rest[0] if is_git else name, frozenset()).isdisjoint(words[1:]):
        yield "the hooks"
    if not is_git:
        return
    given = arguments_of(("git", *rest)).given
    if rest[0] == "config" and group("git_reading_settings").isdisjoint(rest):
        yield from _changed_settings(rest)
    elif rest[0] in ("clone", "init", "init-db"):
        settings = (*given.get("-c", ()), *given.get("--config", ()))
        yield from (setting for setting in settings if not _is_plain(setting))
        # A template is copied into the repository, with its hooks.
        is_copied = any(given.get("--template", ())) or any("templatedir" in word.lower() for word in words[1:at])
        yield from ("the template",) if is_copied else ()


def _changed_settings(words: Sequence[str]) -> Iterator[str]:
    """Yield the settings that `git config` changes, if they are not plain."""
    yield from (word for word in words if word in group("git_changes_sections"))
    # Without a value, it only shows the setting.
    pairs = pairwise(words)
    yield from (key for key, value in pairs if _SETTING_KEY.search(key) and not _is_plain(f"{key}={value}"))


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
    forms += [("git", other, *rest[1:]) for other in words_by_program("git_synonyms").get(subcommand, ())]
    if not words_by_program("git_pushes").get(subcommand, frozenset()).isdisjoint(rest[1:]):
        forms.append(("git", "push", *rest[1:]))
    source, *named = [word for word in rest[1:] if not word.startswith("-")] or [""]
    if subcommand in ("fetch", "pull") and _LOCAL.match(source) and any(":" in one for one in named):
        forms.append(("git", "push", *rest[1:]))  # In another repository, it sends commits there.
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
    name = row[0].name.replace(" ", "-") if row is not None else ""
    return name in group("git_may_show") or (name == "git-stash" and "show" in words)


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
    if found is None or found[0] is not None:
        return None
    name, *rest = found[1]
    pathspecs: list[str] = []
    if name == "diff" and "--name-only" in rest:
        filters = {word for word in rest if _DIFF_FILTER.match(word)}
        others = {*rest} - filters - {"--name-only", "--relative"}
        is_filtered = bool(filters) and others <= {"--cached", "--staged", "HEAD"}
        is_listed = (not others or is_filtered) and repository_roots(directory) == [directory]
    else:
        plain = ("-c", "-z", "-m", "-d", "--cached", "--modified", "--deleted", "--")
        is_listed = name == "ls-files" and all(word in plain for word in rest if word.startswith("-"))
        pathspecs = [word for word in rest if not word.startswith("-")]
    tracked = index_names(directory) if is_listed else None
    taken = pathspec_filter(pathspecs)
    return tracked if tracked is None or taken is None else tuple(filter(taken.includes, tracked))


def prints_own_directory(name: str, words: Sequence[str]) -> bool:
    """True if a command may print the path of a repository's own directory."""
    return name == "git" and any(word.startswith(("--git-", "--absolute-git-dir")) for word in words)
