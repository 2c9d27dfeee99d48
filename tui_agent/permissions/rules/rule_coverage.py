"""Words that a rule for a command covers only if it spells them out.

`allow bash(find:*)` is meant for searches, not for `find . -delete`. The words are compared as the shell would pass
them, so that quotes, braces and variables hide nothing.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tui_agent.permissions.commands.archives import tar_with_dashes
from tui_agent.permissions.commands.argv import options_meant, split_options
from tui_agent.permissions.commands.awk import awk_outputs
from tui_agent.permissions.commands.catalogue import (
    CommandFacts,
    canonical_name,
    git_subcommand_at,
    matching_row,
    writer,
)
from tui_agent.permissions.commands.sed import sed_effects
from tui_agent.permissions.shell.syntax import MARKS, names

from .normalized_argv import is_script_variable

_FIND_ACTIONS = names("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls")
_TAR = names("tar bsdtar gtar")
_OPEN = _TAR | names("find rsync")
"""Commands for which an unknown word may be one of these options."""
_NAMES_VARIABLES = names(
    "printf test [ [[ read unset declare typeset local export readonly let wait mapfile readarray getopts"
)
"""Built-ins that take names of variables, whose subscripts they evaluate."""
_RUNS_IN_AWK = re.compile(rf"system|[|@{''.join(MARKS)}]")
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[(?!(?:\d+|[@*])\])")
_LIST_OF_COMMANDS = re.compile(r"\w+\+?=\(.*(?:\$\(|`|[<>]\()", re.DOTALL)
_TRANSPORT = re.compile(r"[\w+-]+::")
_PROGRAM_KEY = re.compile(
    r"(?i)alias\.|include|core\.(?:\w*(?:pager|editor|command|fsmonitor|proxy|askpass)|hookspath|worktree)|sequence\.editor|"
    r"diff\.external|pager\.|gpg\.|trailer\.|credential\.|interactive\.difffilter|init\.templatedir|gc\.recent|"
    r"\S+\.(?:textconv|command|cmd|driver|helper|process|clean|smudge|path|uploadpack|receivepack|packobjectshook|program|"
    r"vcs|smtpserver|httpd)\Z"
)
"""Settings of git with a program, or with a file of settings."""
_PLAIN_SETTING = re.compile(
    r"(?i)(?:user|author|committer|color|column|advice|commit|tag|log|status|push|pull|fetch|rebase|pack|i18n|index|blame|"
    r"grep|stash|rerere|transfer|feature|http|safe|branch|lfs|versionsort|(?:core|diff|merge|init|gc|format|submodule)"
    r"(?!\.(?:\w*(?:pager|editor|command|fsmonitor|proxy|askpass|tool|external|file)|hookspath|worktree|templatedir|recent))"
    r")\.[\w-]+(?:=.*)?|protocol\.version=\d|\S+=(?:true|false|cat|:|)",
    re.DOTALL,
)
"""Settings of git that name no program and no place, or a harmless one."""
_PROGRAMS = ("code", "program", "script")


def words_to_spell(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command with which it runs, changes or deletes something that its name does not say.

    Args:
        words: as the shell would pass them, with its name.
    """
    name = canonical_name(words[0])
    if name in _OPEN:
        yield from (word for word in words[1:] if _may_be_option(word))
    if name == "find":
        yield from (word for word in words[1:] if word in _FIND_ACTIONS)
    elif name == "sed":
        yield from _sed_scripts(words)
    elif name == "awk":
        found = awk_outputs(words)
        yield from (word for word in words[1:] if (found.scripts or found.is_open) and _RUNS_IN_AWK.search(word))
    elif name in _NAMES_VARIABLES:
        yield from _variables(name, words[1:])
    if name == "git":
        yield from _git(words)
    if name in _TAR:
        entry = writer("tar", "create")
        yield from _programs(entry, tar_with_dashes(words[1:])) if entry else ()
    elif found := matching_row(words):
        yield from _programs(*found)


def _sed_scripts(words: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that write a file or run a program, and the options with files of scripts."""
    effects = sed_effects(words)
    if effects.written or effects.runs:
        yield from (word for word in words[1:] if not word.startswith("-") or len(word) > 2)


def _git(words: Sequence[str]) -> Iterator[str]:
    """Yield remote helpers that run a program, and settings that name one."""
    yield from (word for word in words[1:] if _TRANSPORT.match(word.rpartition("=")[2]))
    at = git_subcommand_at(words)
    own = words[1:at]
    yield from (word for word in own if word.startswith(("--exec-path=", "--config-env")))
    yield from (word for before, word in pairwise(own) if before == "-c" and not _PLAIN_SETTING.fullmatch(word))
    if "config" in words[at : at + 1]:
        yield from (word for word in words[at:] if _PROGRAM_KEY.match(word))


def _programs(entry: CommandFacts, words: Sequence[str]) -> Iterator[str]:
    """Yield the options whose value is a program or that remove the operands, and operands that are programs."""
    at = operands = 0
    is_behind = False
    while at < len(words):
        word = words[at]
        at += 1
        is_behind = is_behind or word == "--"
        is_option = not is_behind and (word.startswith("-") or (word.startswith("+") and "+" in entry.options))
        if not is_option:
            operands += 1
            if entry.runs and operands > entry.own_words:
                break
            is_program = entry.scripts == "ALL" or (entry.scripts == "REST" and operands > 1)
            if is_program and not entry.is_plain("", word):
                yield word
            continue
        split = split_options(entry, word) if word[0] == "-" else None
        meant = options_meant(entry, word) if word[0] == "-" else ["+"]
        takes_next = split is not None and split.takes_next
        value = (words[at] if at < len(words) else "") if takes_next else (split.value or "") if split else word[1:]
        at += takes_next
        for option in meant:
            if option in entry.removing or entry.options[option] in _PROGRAMS:
                if not entry.is_plain(option, value):
                    yield word
                break


def _variables(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield subscripts that may run a command, and variables that `printf -v` must not set."""
    yield from (word for word in words if _SUBSCRIPT.match(word.removeprefix("-v")) or _LIST_OF_COMMANDS.match(word))
    if name in ("printf", "test", "[", "[["):
        for option, after in pairwise((*words, "")):
            if not option.startswith("-v"):
                continue
            variable = option[2:] or after
            is_certain = MARKS.isdisjoint(variable)
            if not is_certain or (name == "printf" and not is_script_variable(variable)):
                yield option


def _may_be_option(word: str) -> bool:
    return word[:1] in MARKS or (word.startswith("-") and not MARKS.isdisjoint(word))
