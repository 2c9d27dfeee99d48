"""Words that a rule for a command covers only if it spells them out.

`allow bash(find:*)` is meant for searches, not for `find . -delete`. The words are compared as the shell would pass
them, so that quotes, braces and variables hide nothing.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from tui_agent.permissions.commands.argv import options_meant
from tui_agent.permissions.commands.awk_programs import awk_outputs
from tui_agent.permissions.commands.catalogue import canonical_name, writer
from tui_agent.permissions.commands.effects import SED_EFFECT
from tui_agent.permissions.commands.subcommand_effects import tar_with_dashes
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
        yield from (word for word in words[1:] if SED_EFFECT.search(word) and not word.startswith("-"))
    elif name == "awk":
        found = awk_outputs(words)
        yield from (word for word in words[1:] if (found.scripts or found.is_open) and _RUNS_IN_AWK.search(word))
    elif name in _NAMES_VARIABLES:
        yield from _variables(name, words[1:])
    elif name in _TAR:
        yield from _programs(("tar", "create"), tar_with_dashes(words[1:]))
    else:
        yield from _programs((name,), words[1:])


def _programs(name: tuple[str, ...], words: Sequence[str]) -> Iterator[str]:
    """Yield the options whose value is a program."""
    entry = writer(*name)
    if entry is None:
        return
    for word in takewhile(lambda word: word != "--", words):
        if word.startswith("-") and any(entry.options[option] == "code" for option in options_meant(entry, word)):
            yield word


def _variables(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield subscripts that may run a command, and variables that `printf -v` must not set."""
    yield from (word for word in words if _SUBSCRIPT.match(word.removeprefix("-v")))
    if name in ("printf", "test", "[", "[["):
        for option, after in zip(words, (*words[1:], ""), strict=True):
            if not option.startswith("-v"):
                continue
            variable = option[2:] or after
            is_certain = MARKS.isdisjoint(variable)
            if not is_certain or (name == "printf" and not is_script_variable(variable)):
                yield option


def _may_be_option(word: str) -> bool:
    return word[:1] in MARKS or (word.startswith("-") and not MARKS.isdisjoint(word))
