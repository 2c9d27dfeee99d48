"""Texts of a simple command that rules are compared with: as written, and in equivalent forms."""

import os
import re
from fnmatch import fnmatchcase

from tui_agent.permissions.commands.catalogue import group
from tui_agent.permissions.commands.version_control import forms_of
from tui_agent.permissions.shell.expansion import has_glob
from tui_agent.permissions.shell.syntax import UNKNOWN, Assignment, SimpleCommand, Word, names

from .patterns import BORDER
from .rule_set import NormalizedCommand

_GLOB = "\x02"
"""Placeholder that no rule contains."""
_LOCALE = re.compile(r"LC_[A-Z]+\Z")
_HARMLESS_VALUE = re.compile(r"[\w.,:+@ -]*\Z")
DECLARATION_COMMANDS = names("export declare typeset local readonly")
"""Commands that set variables; written literally, their arguments are assignments."""
_DECLARED = re.compile(r"([A-Za-z_]\w*)(?:(=)|\Z)", re.ASCII)
_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*\Z", re.ASCII)
_LIVE_VARIABLES = names("http_proxy https_proxy ftp_proxy all_proxy no_proxy auto_resume histchars")
"""Lower-case variables that programs read."""


def normalize_command(command: SimpleCommand) -> NormalizedCommand:
    """Return the forms of a command, whose braces are already expanded, that rules are compared with."""
    words = [word.value for word in command.words]
    if command.words and has_glob(command.words[0]) and words[0] not in ("[", "[["):
        words[0] = UNKNOWN
    pairs = zip(command.words, words, strict=True)
    literal = [_without_globs(word) if word.value == value else value for word, value in pairs]
    shown = BORDER.join(literal)
    assigned = [f"{assignment.name}={assignment.value.value}" for assignment in command.assignments]
    name = words[0].rsplit("/", 1)[-1] if words else ""
    forms = (words, [name, *words[1:]], *forms_of((name, *words[1:]))) if words else ()
    normalized = dict.fromkeys(form for form in map(BORDER.join, forms) if form != shown)
    return NormalizedCommand(shown, BORDER.join((*assigned, *literal)), tuple(normalized))


def _without_globs(word: Word) -> str:
    """Return a word with `_GLOB` for `[` and `?` that the shell takes for a pattern: a rule's are literal."""
    if not word.live or word.value in ("[", "[["):
        return word.value
    return "".join(_GLOB if at in word.live and letter in "[?" else letter for at, letter in enumerate(word.value))


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
    if name and group("script_words").issuperset(name.split("_")):
        return True
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


def without_expansion(word: Word) -> Word:
    """Return a word of `[[ … ]]`, where braces and patterns are not expanded."""
    return Word(word.value, frozenset(), word.variables, word.text)
