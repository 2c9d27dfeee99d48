"""Effects of a command on files, as far as its words tell.

This proves nothing: a program can change files that its words do not name. It is how `cp x .git/hooks/y` and `tee
../outside` are judged like calls of the file tools, and the source of the targets in the dialog.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand, names

from .archive_directories import unpacks_into
from .argv import Arguments, is_known, is_remote, parse_arguments
from .awk_programs import awk_outputs
from .catalogue import INTERPRETERS, SHELLS, CommandFacts, canonical_name, matching_row
from .find_words import runs_of
from .indirect_commands import PROGRAM_INPUT
from .read_only_check import collect_reads, is_mostly_read_only
from .sed_scripts import sed_effects
from .subcommand_effects import Copy, Effects, subcommand_effects
from .writes import Write, attached_paths, pieces_of, scripts_of, writes_of

_CODE_OPTIONS = names("-c -e -E -r -p --eval --execute --print eval -pe -ne -i -le -lne -lpe")
_EXCLUDING = re.compile(r"--?[\w-]*(?:ignore|exclude|skip|omit|without)[\w-]*(?:=|\Z)", re.IGNORECASE)
_MESSAGE_OPTIONS: dict[str, frozenset[str]] = {
    name: names("-t --title -b --body -m --message -n --notes -d --description -F --body-file --notes-file")
    for name in ("gh", "glab", "hub", "tea")
} | {name: names("-m --message --description") for name in ("hg", "svn", "jj", "fossil", "darcs")}
"""Programs with options whose values are text for readers."""
_FINDS_AND_RUNS = names("fd fdfind rg")
_RUNS = re.compile(r"-[a-zA-Z]*[xX]\Z|--(?:exec|pre|hostname-bin)")
_MAY_CONTAIN_PATH = re.compile(r"[\s'\"`(),;:=<>|&+\[\]{}@#%^$]|\A-\w")
_PROGRAM = re.compile(r"[\s'\"`();<>{}]")


def effects_of(words: Sequence[str], raw: SimpleCommand) -> Effects:
    """Return the effects of a command.

    Args:
        words: its words as the shell would pass them, with its name.
        raw: the command before expansion.
    """
    if not words:
        return Effects()
    name = canonical_name(words[0])
    effects = subcommand_effects(name, words) or _by_name(name, words, raw)
    if (directory := unpacks_into(name, words)) is not None:
        return replace(effects, writes=(*effects.writes, Write(directory)), copies=(Copy(None, directory),))
    if name == "find" and any(_may_change(run) for run in runs_of(words)):
        return replace(effects, changes_matches=True)
    if name in ("fd", "fdfind") and any(_RUNS.match(word) for word in words):
        return replace(effects, changes_matches=True)
    return effects


def wrapper_effects(words: Sequence[str]) -> Effects:
    """Return the effects of a command that runs another one, by its own words alone."""
    if not words:
        return Effects()
    name = canonical_name(words[0])
    found = matching_row(words)
    if found is not None:
        return _by_entry(name, *found)
    return Effects(mentions=_mentioned(words[1:]))


def _may_change(words: Sequence[str]) -> bool:
    """True if a command that `find` runs does more than read its arguments."""
    filled = [word.replace("{}", "x") for word in words]
    if not filled or collect_reads(filled, SimpleCommand("", ())) is not None:
        return False
    return not is_mostly_read_only(filled[0]) or effects_of(filled, SimpleCommand("", ())) != Effects()


def _by_name(name: str, words: Sequence[str], raw: SimpleCommand) -> Effects:
    found = matching_row(words)
    entry = found[0] if found else None
    effects = _by_entry(name, *found) if found else Effects()
    is_configured = name in ("curl", "wget") and any(re.match(r"-[A-Za-z]*K|--conf|--input", word) for word in words)
    is_scripted = name in ("sed", "awk") and any(re.match(r"-[A-Za-z]*f|--file", word) for word in words)
    if (name in PROGRAM_INPUT or is_configured or is_scripted) and raw.heredoc is not None:
        effects = replace(effects, code=(*effects.code, raw.heredoc))
    if name == "sed":
        return _by_script(effects, words)
    if name == "awk":
        if collect_reads(words, raw) is not None:
            return effects
        code = (*effects.code, *(word for word in words[1:] if not word.startswith("-")))
        outputs = tuple(Write(path) for path in awk_outputs(words).files)
        return replace(effects, writes=(*effects.writes, *outputs), code=code)
    if name in INTERPRETERS:
        code = [after for before, after in pairwise(words) if before in _CODE_OPTIONS]
        code += [word for word in words[1:] if _PROGRAM.search(word) and word not in code]
        code += [raw.heredoc] if raw.heredoc is not None else []
        return replace(effects, mentions=(*effects.mentions, *_mentioned(words[2:])), code=tuple(code))
    if name in SHELLS:
        return Effects(mentions=_mentioned(_behind_script(words)))
    # `printf -v` sets a variable.
    runs = name == "printf" or (name in _FINDS_AND_RUNS and any(_RUNS.match(word) for word in words))
    is_explained = entry is not None and not entry.mentions and (entry.has_effects or _is_container(entry))
    if is_explained or (is_mostly_read_only(words[0]) and not runs):
        return effects
    heredoc = [raw.heredoc] if raw.heredoc is not None else []
    return replace(effects, mentions=(*effects.mentions, *_mentioned([*_without_messages(name, words[1:]), *heredoc])))


def _is_container(entry: CommandFacts) -> bool:
    """True if only the mounts among a command's words are paths of this machine."""
    return "mount" in entry.options.values()


def _by_script(effects: Effects, words: Sequence[str]) -> Effects:
    """Return the effects of `sed` with those of its script."""
    script = sed_effects(words)
    written = tuple(Write(path) for path in script.written)
    if not script.runs:
        return replace(effects, writes=(*effects.writes, *written))
    # It may run a program that writes another file.
    code = tuple(word for word in words[1:] if not word.startswith("-"))
    return replace(effects, writes=(*effects.writes, *written, Write(UNKNOWN)), code=code)


def _behind_script(words: Sequence[str]) -> Sequence[str]:
    """Return the arguments of a shell's script, which is its first word without a dash."""
    at = next((at for at, word in enumerate(words[1:], start=1) if not word.startswith(("-", "+"))), len(words))
    return words[at + 1 :]


def _by_entry(name: str, entry: CommandFacts, words: Sequence[str]) -> Effects:
    """Return the effects of a command by its row and the words that the row's name does not contain."""
    found = parse_arguments(entry, words)
    writes = writes_of(name, entry, found)
    mentions = tuple(Write(value) for value in found.unclear)
    if found.directory is not None:
        # It changes the files that its input names, below this directory.
        mentions, writes = (*mentions, Write(".")), [*writes, *([Write(".")] if name == "patch" else ())]
    links: tuple[str, ...] = ()
    if name in ("ln", "cp") and any(re.match(r"-s\Z|--sy", flag) for flag in found.flags):
        mentions += tuple(Write(source) for source in found.sources)
        # A relative target begins at the directory of the link.
        links = tuple(place for source in found.sources for place in _linked(found, source))
    elif name == "ln" or (name == "cp" and found.has("-l", "--link")):
        # A hard link lets later commands change the same file under another name.
        writes.extend(Write(source) for source in found.sources)
    return Effects(
        tuple(writes),
        tuple(dict.fromkeys(mentions)),
        (*found.code, *scripts_of(entry, found)),
        found.directory,
        copies=_copies(name, found),
        links=links,
        attached=attached_paths(found),
        works_in=(found.directory,) if found.directory is not None else (),
    )


def _linked(found: Arguments, source: str) -> tuple[str, ...]:
    """Return the paths that a link with this text may lead to."""
    if source.startswith(("/", "~")) or not is_known(source) or found.has("-r", "--relative"):
        return (source,)
    above = found.target.rstrip("/").rpartition("/")[0]
    return (f"{above or '.'}/{source}", f"{found.target}/{source}")


def _copies(name: str, found: Arguments) -> tuple[Copy, ...]:
    """Return the sources that `cp`, `rsync` and the like copy with everything in them, and their targets."""
    if name == "patch" and not found.operands and not found.has("--dry-run", "-o", "--output"):
        return (Copy(None, "."),)
    if name not in ("cp", "rsync", "scp", "ditto") or is_remote(found.target):
        return ()
    # cp skips directories without one of these options.
    if name == "cp" and not any(re.match(r"-[A-Za-z]*[rRa]|--[ra]", flag) for flag in found.flags):
        return ()
    return tuple(
        Copy(None if is_remote(source) else source, _into(name, found, source))
        for source in found.sources
        if name != "scp" or not is_remote(source) or found.has("-r")
    )


def _into(name: str, found: Arguments, source: str) -> str:
    # `cp a/. b` and `rsync a/ b` copy the contents, `cp a b` and `rsync a b` the directory itself.
    last = source.rstrip("/").rpartition("/")[2]
    if found.has("--parents") or (name == "rsync" and found.has("-R", "--relative")):
        return f"{found.target}/{source.lstrip('/')}"
    is_contents = last in ("", ".", "..") or name == "ditto" or (name == "rsync" and source.endswith("/"))
    if is_contents or (name == "cp" and found.has("-T", "--no-target-directory")):
        return found.target
    return f"{found.target}/{last}"


def _without_messages(name: str, words: Sequence[str]) -> list[str]:
    """Return the words without those that are text for readers."""
    saying = _MESSAGE_OPTIONS.get(name)
    if saying is None:
        return list(words)
    return [
        word for before, word in pairwise(("", *words)) if before not in saying and word.partition("=")[0] not in saying
    ]


def _mentioned(words: Sequence[str]) -> tuple[Write, ...]:
    """Return everything in a command's words that may be a path, without the values of excluding options."""
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
        found.extend(pieces_of(word) if _MAY_CONTAIN_PATH.search(word) else ())
    return tuple(Write(part) for part in dict.fromkeys(found) if part)
