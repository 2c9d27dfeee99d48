"""Shell built-ins that change nothing but their own shell, with their harmless arguments, conditions, and variables.

`-v` and `-R` evaluate the subscript of a variable's name, and numbers inside `[[ ]]` are arithmetic: both can run
commands from data. So operators must be literal and numbers must be numbers.
"""

import os
import re
from collections.abc import Container, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, Assignment, SimpleCommand, Word, names

from .argv import arguments_of, is_known
from .catalogue import group, pairs
from .invocation import Reads

_SWITCHES = re.compile(r"(?:[-+](?:[eux]*o\0(?:pipefail|errexit|nounset|xtrace)|[eux]+)\0)+")
"""Options of the shell that make it stricter or more verbose and do not change the meaning of a command."""
_JOINED = re.compile(r"\d?>&\d\Z|(?:\d|&)?>>?/dev/null\Z|\d?>&-\Z")
_PRINTF = re.compile(r"(?:[^%]|%%|%[-#0 +']*[\d*]*(?:\.[\d*]*)?(?:\([^)]*\)T|[sbqdiouxXcfeEgG]))*\Z", re.DOTALL)
_TEXT_UNARY = names("-n -z -t -o")
_PATH_UNARY = names("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S")
_PATH_BINARY = names("-nt -ot -ef")
_NUMBER_BINARY = names("-eq -ne -lt -le -gt -ge")
_BINARY = names("= == != < > =~") | _NUMBER_BINARY
_EVALUATING = names("-v -R")
_GLUE = names("& | ( ) !")
_INTEGER = re.compile(r"-?\d+\Z")
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)(?:\[.*?\])?\s*(?:\+\+|--|:?(?:[-+*/%&|^]|<<|>>)?=(?!=))")
"""A variable that arithmetic, a subscript or an expansion sets."""
_QUOTED_SUBSCRIPT = re.compile(r"\w\[(?:[^]'\\]|'[\w .,:/@%+-]*')*(?:\\|'(?![\w .,:/@%+-]*'))|\$\{![^}]*=")
"""A subscript that may hide a command, or an assignment to a variable whose name is a value."""


def changes_shell(command: SimpleCommand) -> bool:
    """True if a command may change the shell by a use of a built-in, or a value of a variable, that is not listed."""
    name, *words = [word.value for word in command.words] or [""]
    return not _is_plain_use(name, words) or any(map(_is_hidden, _settings(command)))


def sets_any(command: SimpleCommand, variables: Container[str]) -> bool:
    """True if a command may set one of these variables."""
    return any(setting.partition("=")[0].removesuffix("+") in variables for setting in _settings(command))


def _settings(command: SimpleCommand) -> list[str]:
    """Return the variables that a command sets, each as `NAME=value`, with the words that may be one."""
    name, *words = [word.value for word in command.words] or [""]
    settings = [f"{one.name}={UNKNOWN if one.items else one.value.value}" for one in command.assignments]
    if name in group("sets_variables") or (name == "printf" and "".join(words[:1]).startswith("-v")):
        settings += [word if "=" in word else f"{word.removeprefix('-v')}={UNKNOWN}" for word in words]
    texts = words if name in group("evaluates") else [setting.partition("=")[2] for setting in settings]
    return settings + [f"{found[1]}={UNKNOWN}" for text in texts for found in _ASSIGNED.finditer(text)]


def _is_plain_use(name: str, words: Sequence[str]) -> bool:
    """True if the table lists a use of a built-in, or does not list the built-in."""
    for builtins, flags, valued, others in pairs("plain_uses"):
        if name in builtins.split():
            options = [rf"[-+][{flags}]+"] if flags else []
            options += [rf"-[{flags}]*[{valued}](?:\0[^\0]*|[^\0]+)"] if valued else []
            options = "".join(rf"{option}\0|" for option in options)
            pattern = rf"(?:{options}--\0)*(?:(?:{others})\0)*"
            return re.fullmatch(pattern, "".join(f"{word}\0" for word in words), re.DOTALL) is not None
    return True


def text_changes_shell(text: str) -> bool:
    """True if arithmetic, a subscript or an expansion may do so, or may run a command that quotes hide."""
    settings = (f"{found[1]}={UNKNOWN}" for found in _ASSIGNED.finditer(text))
    return _QUOTED_SUBSCRIPT.search(text) is not None or any(map(_is_hidden, settings))


def _is_hidden(setting: str) -> bool:
    """True if `NAME=value` sets a variable that bash reads to a value that is not listed."""
    target, _, value = setting.partition("=")
    name = target.partition("[")[0].removesuffix("+")
    plain = next((values for variables, values in pairs("plain_values") if target in variables.split()), None)
    is_read = name in group("bash_variables") or name.startswith("BASH_")
    return is_read and not (plain and re.fullmatch(plain, value, re.DOTALL))


def cd_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Judge `cd` and `pushd` to one directory, and back to an earlier one."""
    name, *rest = words
    if rest == ["-"] or (not rest and name != "cd"):
        return Reads()
    targets = [word for word in rest if word not in ("-L", "-P", "--")]
    is_plain = all(is_known(target) and not target.startswith(("-", "+")) for target in targets)
    if name == "popd" or len(targets) > 1 or not is_plain:
        return None
    return Reads(tuple(target or "." for target in targets) or ("~",))


def sets_switches_only(words: Sequence[str]) -> bool:
    """True if a `set` command, such as `set -euo pipefail`, sets only harmless options."""
    return _SWITCHES.fullmatch("".join(f"{word}\0" for word in words[1:])) is not None


def read_names(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the variables that a `read` sets, or None if it may do more than set the script's own variables."""
    found = arguments_of(words)
    is_own = found.is_exact and all(map(is_script_variable, found.operands))
    return tuple(found.operands) if is_own else None


def builtin_reads(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the reads of a built-in (with its name), or None if it may do more."""
    match words[0].rpartition("/")[2]:
        case "printf":
            # `-v` and `%n` set variables, and the subscript of such a variable can run commands.
            rest = words[2:] if words[1:2] in (["--"], ("--",)) else words[1:]
            is_harmless = bool(rest) and is_known(rest[0]) and rest[0][:1] != "-" and bool(_PRINTF.match(rest[0]))
        case "exec":
            # Such as `exec 2>&1`.
            redirects = [redirect.text.replace(" ", "") for redirect in raw.redirects]
            is_harmless = len(words) == 1 and bool(redirects) and all(map(_JOINED.match, redirects))
        case "set":
            is_harmless = sets_switches_only(words)
        case "unset":
            unset = [word for word in words[1:] if word != "-v"]
            is_harmless = all(is_script_variable(word) or is_display_variable(word) for word in unset)
        case "read":
            is_harmless = read_names(words) is not None
        case "command":
            is_harmless = len(words) >= 3 and words[1] in ("-v", "-V")
        case _:
            # Such as `export LC_ALL=C`, `local x=1`: display variables, or the script's own.
            declared = declared_assignments(raw)
            others = (one for one in declared or () if raw.name == "export" or not is_script_variable(one.name))
            is_harmless = declared is not None and sets_only_harmless(tuple(others))
    return Reads() if is_harmless else None


def test_reads(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the paths that `test …` or `[ … ]` checks, or None if it may do more."""
    if len(words) != len(raw.words) or any(UNKNOWN in word.value or PIPE in word.value for word in raw.words):
        return None
    # An unquoted variable may become several words.
    pairs = zip(words, raw.words, strict=True)
    if any(not is_known(value) and any(not variable.quoted for variable in word.variables) for value, word in pairs):
        return None
    end = len(words) - 1 if raw.name == "[" else len(words)
    operators = [word.value for word in raw.words[1:end]]
    values = list(words[1:end])
    while len(values) > 2 and operators[0] == "!":
        values, operators = values[1:], operators[1:]
    # Conditions joined by `-a` and `-o`: each must be safe alone, and every word must be known.
    joints = [at for at, word in enumerate(operators) if word in ("-a", "-o")] if len(values) > 3 else []
    if joints and (not _EVALUATING.isdisjoint(operators) or not all(map(is_known, values))):
        return None
    parts = [slice(before + 1, at) for before, at in pairwise((-1, *joints, len(operators)))]
    if not all(_is_condition(operators[part]) and (operators[part] or not joints) for part in parts):
        return None
    found = [_paths_tested(operators[part], values[part]) for part in parts]
    return Reads(tuple(path for one in found if one for path in one.paths)) if all(found) else None


def _is_condition(operators: Sequence[str]) -> bool:
    """True if words of `test` are a condition of up to three words; a longer one may do more."""
    if len(operators) == 3:
        return operators[1] in _BINARY | _PATH_BINARY
    return len(operators) < 2 or (len(operators) == 2 and operators[0] in _TEXT_UNARY | _PATH_UNARY | {"!"})


def bracket_reads(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the paths that `[[ … ]]` checks, or None if it may do more."""
    operators, values = [word.value for word in raw.words[1:-1]], list(words[1:-1])
    if len(words) != len(raw.words) or not _EVALUATING.isdisjoint(operators):
        return None
    numbers = [(before, after) for one, before, after in _beside(operators, values) if one in _NUMBER_BINARY]
    are_literal = all(_INTEGER.match(before) and _INTEGER.match(after) for before, after in numbers)
    return _paths_tested(operators, values) if are_literal else None


def _beside(operators: Sequence[str], values: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each word as written, with the values of the words before and behind it."""
    return zip(operators, ("", *values), (*values[1:], ""), strict=False)


def _paths_tested(operators: Sequence[str], values: Sequence[str]) -> Reads | None:
    """Return the paths of file tests; `operators` are the words as written, `values` with the values of variables."""
    paths: list[str] = []
    for operator, before, after in _beside(operators, values):
        if operator in _PATH_BINARY:
            paths += [before, after]
        elif operator in _PATH_UNARY and after not in _GLUE:
            paths.append(after)
    return Reads(tuple(filter(None, paths))) if all(map(is_known, paths)) else None


# --- variables --------------------------------------------------------------------------------------------------------

_LOCALE = re.compile(r"LC_[A-Z]+\Z")
_HARMLESS_VALUE = re.compile(r"[\w.,:+@ -]*\Z")
DECLARATION_COMMANDS = names("export declare typeset local readonly")
"""Commands that set variables; written literally, their arguments are assignments."""
_DECLARED = re.compile(r"([A-Za-z_]\w*)(?:(=)|\Z)", re.ASCII)
_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*\Z", re.ASCII)
_LIVE_VARIABLES = names("http_proxy https_proxy ftp_proxy all_proxy no_proxy auto_resume histchars")
"""Lower-case variables that programs read."""


def sets_only_harmless(assignments: tuple[Assignment, ...]) -> bool:
    """True if assignments change only how output is displayed."""
    return all(
        is_display_variable(assignment.name)
        and assignment.value.is_fixed
        and not assignment.value.live
        and "+=" not in assignment.text
        and _HARMLESS_VALUE.match(assignment.value.value)
        for assignment in assignments
    )


def is_display_variable(name: str) -> bool:
    """True if a variable changes how commands display things, never what they run or read."""
    return name in group("display_variables") or bool(_LOCALE.match(name))


def is_script_variable(name: str) -> bool:
    """True if a script may set a variable of this name, without exporting it, and affect no program.

    Either no program reads such a name, or the commands of this process do not inherit it.
    """
    if _OWN_NAME.match(name):
        return name not in _LIVE_VARIABLES and name != "_"
    is_inherited = not _CAPITALS.match(name) or name in os.environ or name in group("bash_variables")
    return not is_inherited and not any(fnmatchcase(name, pattern) for pattern in group("shell_variables"))


def declared_assignments(command: SimpleCommand) -> tuple[Assignment, ...] | None:
    """Return the variables that `export`, `declare` and the like set or mark, or None if the command may do more."""
    found: list[Assignment] = []
    if command.name not in DECLARATION_COMMANDS or command.words[0].text != command.name or command.assignments:
        return None
    for word in command.words[1:]:
        if word.value in ("-r", "-g", "-gr") and word.is_fixed and command.name != "export":
            continue
        match = _DECLARED.match(word.value)
        if match is None or word.live or (match.group(2) is None and word.variables):
            return None
        value = Word(word.value[match.end() :], frozenset(), word.variables, word.text)
        found.append(Assignment(match.group(1), value, word.text or word.value))
    # Without a name, the command prints every variable.
    return tuple(found) or None


def is_harmless_setting(command: SimpleCommand) -> bool:
    """True if a command's assignments change nothing about what any program does.

    These are the script's own variables if no command follows, display variables before a command, and `IFS` before
    `read`.
    """
    assignments = command.assignments
    if not command.words:
        assignments = tuple(assignment for assignment in assignments if not is_script_variable(assignment.name))
    elif command.name == "read":
        assignments = tuple(assignment for assignment in assignments if assignment.name != "IFS")
    return sets_only_harmless(assignments)
