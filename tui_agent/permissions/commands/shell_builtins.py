"""Shell built-ins that change nothing but their own shell, with their harmless arguments."""

import re
from collections.abc import Sequence

from tui_agent.permissions.rules.normalized_argv import (
    declared_assignments,
    is_display_variable,
    is_script_variable,
    sets_only_harmless,
)
from tui_agent.permissions.shell.syntax import SimpleCommand, names

from .argv import is_known
from .reads import Reads

_SWITCHES = re.compile(r"[-+][eux]+\Z")
_NAMED_SWITCHES = re.compile(r"[-+][eux]*o\Z")
_SWITCH_NAMES = names("pipefail errexit nounset xtrace")
"""Options of the shell that make it stricter or more verbose and do not change the meaning of a command."""
_JOINED = re.compile(r"\d?>&\d\Z|(?:\d|&)?>>?/dev/null\Z|\d?>&-\Z")
_VARIABLE = re.compile(r"[A-Za-z_]\w*\Z")


def cd_reads(words: Sequence[str]) -> Reads | None:
    """Judge `cd` and `pushd` to one directory, and back to an earlier one."""
    if words[0] == "popd" or list(words[1:]) == ["-"]:
        return Reads() if len(words) < 3 and words[-1] in ("popd", "-") else None
    if list(words) == ["pushd"]:
        return Reads()
    targets = [word for word in words[1:] if word not in ("-L", "-P", "--")]
    if len(targets) > 1 or any(not is_known(target) or target.startswith(("-", "+")) for target in targets):
        return None
    return Reads(tuple(target or "." for target in targets) or ("~",))


def set_reads(words: Sequence[str]) -> Reads | None:
    """Judge `set -euo pipefail` and the like."""
    return Reads() if sets_switches_only(words) else None


def sets_switches_only(words: Sequence[str]) -> bool:
    """True if a `set` command sets only harmless options."""
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if _NAMED_SWITCHES.match(word):
            if not rest or rest.pop(0) not in _SWITCH_NAMES:
                return False
        elif not _SWITCHES.match(word):
            return False
    return len(words) > 1


def exec_reads(raw: SimpleCommand) -> Reads | None:
    """Judge `exec 2>&1` and the like, which only redirect output."""
    is_plain = all(_JOINED.match(redirect.text.replace(" ", "")) for redirect in raw.redirects)
    return Reads() if len(raw.words) == 1 and raw.redirects and is_plain else None


def declare_reads(raw: SimpleCommand) -> Reads | None:
    """Judge `export LC_ALL=C`, `local x=1`: display variables, or the script's own."""
    declared = declared_assignments(raw)
    if declared is None:
        return None
    is_exported = raw.name == "export"
    others = tuple(one for one in declared if is_exported or not is_script_variable(one.name))
    return Reads() if sets_only_harmless(others) else None


def unsets_script_variables(words: Sequence[str]) -> bool:
    """True if an `unset` removes only display variables or the script's own."""
    names = [word for word in words[1:] if word != "-v"]
    return words[:1] in (["unset"], ("unset",)) and all(
        is_script_variable(name) or is_display_variable(name) for name in names
    )


def unset_reads(words: Sequence[str]) -> Reads | None:
    """Judge an `unset` of such variables."""
    return Reads() if unsets_script_variables(words) else None


def read_builtin_reads(words: Sequence[str]) -> Reads | None:
    """Judge a `read` of lines into the script's own variables."""
    found = read_names(words)
    return Reads() if found is not None else None


def read_names(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the variables that a `read` sets, or None if it may do more than set the script's own variables."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-d", "-n", "-N", "-p", "-t"):
            if not rest or not is_known(rest.pop(0)):
                return None
        elif not re.match(r"-[rs]+\Z", option):
            return None
    return tuple(rest) if all(is_script_variable(name) for name in rest) else None


def printenv_reads(words: Sequence[str]) -> Reads | None:
    """Judge `printenv NAME`, which shows no more than `echo $NAME`."""
    return Reads() if len(words) > 1 and all(_VARIABLE.match(word) for word in words[1:]) else None
