"""Commands of the shell's own that change nothing but the shell they run in, and what they may be given."""

import re
from collections.abc import Sequence

from .command_views import is_own_variable
from .read_only_options import Use, is_known
from .shell_syntax import names

_SWITCHES = re.compile(r"[-+][eux]+\Z")
_NAMED_SWITCHES = re.compile(r"[-+][eux]*o\Z")
_SWITCH_NAMES = names("pipefail errexit nounset xtrace")
"""Switches that make the shell stricter or more talkative, and change nothing about what a command means."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*\Z")


def cd_use(words: Sequence[str]) -> Use | None:
    """`cd` to one place; none of the ways back, which depend on where the shell was before."""
    targets = [word for word in words[1:] if word not in ("-L", "-P", "--")]
    if len(targets) > 1 or any(not is_known(target) or target.startswith(("-", "+")) for target in targets):
        return None
    return Use(tuple(target or "." for target in targets) or ("~",))


def set_use(words: Sequence[str]) -> Use | None:
    """`set -euo pipefail` and its like."""
    return Use() if sets_switches_only(words) else None


def sets_switches_only(words: Sequence[str]) -> bool:
    """Whether a `set` command sets nothing but harmless switches."""
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if _NAMED_SWITCHES.match(word):
            if not rest or rest.pop(0) not in _SWITCH_NAMES:
                return False
        elif not _SWITCHES.match(word):
            return False
    return len(words) > 1


def read_use(words: Sequence[str]) -> Use | None:
    """`read` of lines into variables of the script's own."""
    found = read_names(words)
    return Use() if found is not None else None


def read_names(words: Sequence[str]) -> tuple[str, ...] | None:
    """The variables that a `read` sets; None if it may do more than set variables of the script's own."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-d", "-n", "-N", "-p", "-t"):
            if not rest or not is_known(rest.pop(0)):
                return None
        elif not re.match(r"-[rs]+\Z", option):
            return None
    return tuple(rest) if all(is_own_variable(name) for name in rest) else None


def printenv_use(words: Sequence[str]) -> Use | None:
    """`printenv NAME`: no more than `echo $NAME` shows."""
    return Use() if len(words) > 1 and all(_VARIABLE.match(word) for word in words[1:]) else None
