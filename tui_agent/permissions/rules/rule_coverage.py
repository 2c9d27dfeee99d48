"""Extent of a rule for a command, and words that it covers only if it spells them out.

`allow bash(find:*)` is meant for searches, not for `find . -delete`. The words are compared as the shell would pass
them, so that quotes, braces and variables hide nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tui_agent.permissions.commands.archives import tar_with_dashes
from tui_agent.permissions.commands.argv import arguments_of, is_remote, options_meant, split_options
from tui_agent.permissions.commands.builtins import is_display_variable, is_script_variable
from tui_agent.permissions.commands.catalogue import (
    CommandFacts,
    canonical_name,
    facts_of,
    group,
    matching_row,
    without_interpreter,
)
from tui_agent.permissions.commands.text_scripts import awk_outputs, sed_effects
from tui_agent.permissions.commands.version_control import settings_to_spell
from tui_agent.permissions.shell.syntax import MARKS, names
from tui_agent.permissions.verdicts import Finding

from .patterns import BORDER, command_patterns
from .rule_set import NormalizedCommand

_FIND_ACTIONS = names("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls")
_TAR = names("tar bsdtar gtar")
_OPEN = _TAR | names("find rsync")
"""Commands for which an unknown word may be one of these options."""
_SED_PRINTS = names("-n -nE -En -nr -rn --quiet --silent")
_RUNS_IN_AWK = re.compile(rf"system|[|@{''.join(MARKS)}]")
_READS_IN_AWK = re.compile(r"\b(?:getline|ARGV|SYMTAB)\b")
"""Parts of awk programs that read other files than the operands."""
_READS_IN_JQ = re.compile(r"\b(?:import|include)\b")
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[(?!(?:\d+|[@*])\])")
_LIST_OF_COMMANDS = re.compile(r"\w+\+?=\(.*(?:\$\(|`|[<>]\()", re.DOTALL)
_LOADS = ("code", "program", "script")
"""Kinds of values with which a program runs or loads something."""
_SCRIPTED = names("sed awk find")
_LOADING = re.compile(
    r"(?i)config|rcfile|plugin|format|report|require|import|load|preset|setup|exec|command|cmd|shell|script|program"
    r"|runner|render|bootstrap|hook|module|resolve|transform|environment|env-file|prefix|path|dir|file|output"
)
_LOADS_SHORT = re.compile(r"-[cfrpeoEICPRM]")
"""Options of one letter that often name settings, a file, a module or code."""
_MAY_BE_FILE = re.compile(r"[^=]*[/\\~]|[\w-]+\.[A-Za-z]\w*\Z")


@dataclass(frozen=True, slots=True)
class AllowScope:
    """Permission for a command's words, given by a rule."""

    finding: Finding
    reach: Literal["words", "command", "everything"]
    """Extent of the permission.

    `words`: a pattern covers the words. `command`: a rule that spells the command out covers everything its words
    name. `everything`: a rule without a pattern also covers assignments and redirections.
    """
    spells_assignments: bool = False
    """True if the permission includes the assignments before the command."""
    spelled: frozenset[str] = frozenset()
    """Words that the rule spells out."""
    starts: frozenset[str] = frozenset()
    """Beginnings of words, before a star."""

    @property
    def covers_words(self) -> bool:
        """True if everything that the words name is allowed, wherever it leads."""
        return self.reach != "words"


def allow_scope(found: Finding | None, view: NormalizedCommand) -> AllowScope | None:
    """Return the permission that a rule gives a command, or None."""
    if found is None or found.decision != "allow" or found.rule is None:
        return None
    patterns = command_patterns(found.rule.pattern) if found.rule.pattern is not None else ()
    if not patterns or any(pattern.is_everything for pattern in patterns):
        return AllowScope(found, "everything", spells_assignments=True)
    exact = [pattern for pattern in patterns if pattern.is_exact]
    spells = any(map(view.spelled_by, patterns))
    is_exact = any(pattern.match(text) for pattern in exact for text in (view.with_assignments, view.words))
    spelled = frozenset(word for pattern in patterns for word in pattern.spelled)
    starts = frozenset(piece.rpartition(BORDER)[2] for pattern in patterns for piece in pattern.pieces[:-1])
    return AllowScope(found, "command" if is_exact else "words", spells, spelled, starts - {""})


def spells_beyond(found: Finding | None, count: int) -> bool:
    """True if a rule spells out more than `count` words, and so the command that a wrapper runs, too."""
    pattern = found.rule.pattern if found and found.rule else None
    return pattern is not None and any(one.spelled_words > count for one in command_patterns(pattern))


def words_to_spell(
    words: Sequence[str], spelled: frozenset[str] = frozenset(), starts: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the words of a command that a rule for its first words covers only if it spells them out.

    A rule covers operands, and options that are known to be harmless. What a command runs, loads, deletes or only with
    an option changes must be in the rule; so must an option that no table explains.

    Args:
        words: as the shell would pass them, with its name.
        spelled: words that the rule spells out.
        starts: beginnings of words in the rule, before a star.
    """
    name = canonical_name(words[0])
    if starts and name in group("begun_by_rules"):
        # `rm -f src/*` means files of that folder, and `curl http://localhost:3000/*` that host.
        yield from (word for word in words[1:] if not word.startswith(tuple(starts)) or ".." in word.split("/"))
    if name in _OPEN:
        yield from (word for word in words[1:] if _may_be_option(word))
    if name == "find":
        yield from (word for word in words[1:] if word in _FIND_ACTIONS)
    elif name == "sed":
        effects = sed_effects(words)
        if effects.written or effects.runs:
            # The scripts, and options with files of scripts.
            yield from (word for word in words[1:] if not word.startswith("-") or len(word) > 2)
        if not spelled.isdisjoint(_SED_PRINTS) and arguments_of(words).has("-i", "--in-place"):
            yield from (word for word in words[1:] if word.startswith("-"))
    elif name == "awk":
        outputs = awk_outputs(words)
        yield from (word for word in words[1:] if (outputs.scripts or outputs.is_open) and _RUNS_IN_AWK.search(word))
        yield from filter(_READS_IN_AWK.search, words[1:])
    elif name == "jq":
        yield from filter(_READS_IN_JQ.search, words[1:])
    elif name in group("takes_strings"):
        yield from _variables(name, words[1:])
    yield from settings_to_spell(words)
    if name in _TAR:
        words = ("tar", "create", *tar_with_dashes(words[1:]))
        yield from (word for word in words[2:] if is_remote(word.rpartition("=")[2].removeprefix("-f")))
    row, own = matching_row(words), facts_of(name)
    is_listed = canonical_name(without_interpreter(words)[0]) in group("known_options")
    if row is not None:
        yield from _of_row(*row, is_listed=is_listed)
    elif name not in group("takes_strings") | _SCRIPTED:
        yield from _unexplained(words[1:], is_short_plain=name in group("version_control"))
    if own is not None and row is not None and row[0] is not own:
        yield from _of_row(own, words[1:], before_operands=True)


def _of_row(
    entry: CommandFacts, words: Sequence[str], *, before_operands: bool = False, is_listed: bool = False
) -> Iterator[str]:
    """Yield the words to spell of a command that has a row; perhaps only those before the first operand.

    These are the last word of some names, options that do more than the name says, and operands that are programs.

    Args:
        entry: the row.
        words: the words after its name.
        before_operands: only look at the program's own options.
        is_listed: the row lists every harmless option, so that all others count.
    """
    if "" in entry.changes.spelled:
        yield entry.name.rpartition(" ")[2]
    dangerous = {option for option, kind in entry.options.items() if kind in _LOADS}
    dangerous |= entry.changes.removing | entry.changes.spelled
    dangerous |= entry.changes.needed if entry.name != "sed" else set()
    at = operands = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--" and not before_operands:
            # What follows is often for another program.
            yield from _unexplained(words[at:])
            return
        is_option = word.startswith("-") or (word.startswith("+") and "+" in entry.options)
        if not is_option:
            operands += 1
            if before_operands or (entry.runs and operands > entry.own_words):
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
        option = next((one for one in meant if one in dangerous), None)
        if option is not None:
            if not entry.is_plain(option, value):
                yield word
                yield from [value] if takes_next and entry.options[option] in _LOADS else []
        elif not meant and entry.mentions and word not in group("plain_flags"):
            yield from [word] if is_listed else _unexplained((word,), is_short_plain=True)


def _unexplained(words: Sequence[str], *, is_short_plain: bool = False) -> Iterator[str]:
    """Yield the options that no table explains and that may name a file, or something to load or run.

    Args:
        words: options and operands.
        is_short_plain: options of one letter are plain flags.
    """
    for word, after in pairwise((*words, "")):
        option, _, value = word.partition("=")
        is_file = _MAY_BE_FILE.match(value or option) or (len(word) == 2 and _MAY_BE_FILE.match(after))
        is_loading = _LOADING.search(option) or (_LOADS_SHORT.match(word) and not is_short_plain)
        if word.startswith("-") and (is_loading or is_file):
            yield word


def _variables(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield subscripts that may run a command, and variables that programs obey if the command sets them."""
    if name in group("sets_variables"):
        yield from (word for word in words if _is_obeyed(word.partition("=")[0].removesuffix("+")))
    yield from (word for word in words if _SUBSCRIPT.match(word.removeprefix("-v")) or _LIST_OF_COMMANDS.match(word))
    if name in ("printf", "test", "[", "[["):
        named = pairwise((*words, ""))
        yield from (one for one, after in named if one[:2] == "-v" and not is_script_variable(one[2:] or after))


def _is_obeyed(variable: str) -> bool:
    """True if programs obey a variable of this name, so that a rule for `export` does not cover it."""
    return variable.isidentifier() and not is_script_variable(variable) and not is_display_variable(variable)


def _may_be_option(word: str) -> bool:
    return word[:1] in MARKS or (word.startswith("-") and not MARKS.isdisjoint(word))
