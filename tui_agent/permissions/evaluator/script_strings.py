"""Strings of a script that may be used elsewhere in it: values of variables, words of loops, output of commands.

A command whose words or input only the running shell knows may get any of them. Commands with known words do not need
them.
"""

import re
from collections.abc import Iterable, Iterator

from tui_agent.permissions.commands.catalogue import group, writer
from tui_agent.permissions.rules.normalized_argv import DECLARATION_COMMANDS, declared_assignments
from tui_agent.permissions.shell.syntax import (
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    Redirect,
    Sequence,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
    Word,
    names,
)

_PASSES_CONTENT = names(
    "cat head tail tac nl base64 od xxd hexdump hd strings zcat gzip gunzip xzcat bzcat less bat jq wc"
)
"""Commands whose output is the contents of files, not their words."""
_MOVERS = names("cd pushd")
_PRINTS_NOTHING = names("test [ [[ true false :") | _MOVERS
_FIND_RUNS = names("-exec -execdir -ok -okdir")
_TAKES_OUT = re.compile(r"-[A-Za-z]*v|--invert-match\Z")
_TAKES_OUT_NEXT = names("-not !")
_GIT_PLACE = re.compile(r"--(?:git-|absolute-git-dir)")
_SETS_VARIABLES = names("read mapfile readarray printf getopts")
_NO_WORD = Word("", frozenset((0,)))
_CODE = re.compile(r"\$\(|`")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_EVALUATES = re.compile(
    r"(?:declare|typeset|local) -[a-zA-Z]*n|(?:test|\[\[?|printf) -v|.* -(?:eq|ne|lt|le|gt|ge)\Z|let |.*\w\[."
)
_QUOTING = re.compile(r"['\"\\]")


def collect_script_strings(statement: Statement, *, is_used: bool = False) -> Iterator[str]:
    """Yield the strings of a script that may become words, or input, of one of its commands.

    Args:
        statement: the script, or a part of it.
        is_used: its output goes to a command.
    """
    match statement:
        case SimpleCommand():
            yield from _of_command(statement, is_used=is_used)
        case Sequence() | Branches():
            for part in statement.parts:
                yield from collect_script_strings(part, is_used=is_used)
        case Pipeline():
            for number, part in enumerate(statement.parts):
                yield from collect_script_strings(part, is_used=is_used or number < len(statement.parts) - 1)
        case Conditional():
            for part in (statement.first, *(part for _, part in statement.rest)):
                yield from collect_script_strings(part, is_used=is_used)
        case Subshell() | Definition():
            yield from collect_script_strings(statement.body, is_used=is_used)
        case ForEach():
            yield from (word.value for word in statement.words or ())
            for part in (*statement.nested, statement.body):
                yield from collect_script_strings(part, is_used=is_used or part in statement.nested)
        case Unsupported():
            yield _QUOTING.sub("", statement.text)


def assigned_names(script: Iterable[Statement]) -> Iterator[tuple[str, Word | None]]:
    """Yield the variables that a script sets, with each value; None for a value that is not literal."""
    for part in script:
        if isinstance(part, ForEach):
            yield from ((part.variable, word if _is_literal(word) else None) for word in part.words or (_NO_WORD,))
        elif isinstance(part, SimpleCommand):
            declared = (declared_assignments(part) or ()) if part.name in DECLARATION_COMMANDS else ()
            if not declared and not part.assignments and part.name not in _SETS_VARIABLES:
                continue
            for one in (*(part.assignments if not part.words else ()), *(one for one in declared if "=" in one.text)):
                is_plain = one.items is None and not one.text.startswith(f"{one.name}+") and _is_literal(one.value)
                yield one.name, one.value if is_plain else None
            if part.name in _SETS_VARIABLES:
                yield from ((word.value, None) for word in part.words[1:] if word.value.isidentifier())


def _is_literal(word: Word) -> bool:
    return word.is_fixed and not word.live


def may_evaluate_strings(script: Iterable[Statement]) -> bool:
    """True if a script has text with a `$(…)` in quotes, and a construct that may run it.

    Arithmetic, subscripts, `declare -n` and `PS4` run the commands in the values of variables.
    """
    script = tuple(script)
    commands = [part for part in script if isinstance(part, SimpleCommand)]
    assigned = [one for command in commands for one in command.assignments]
    texts = [one.value.value for one in assigned] + [item.value for one in assigned for item in one.items or ()]
    # Behind words such as `time`, assignments and built-ins are words of a command.
    texts += [word.value for command in commands for word in command.words if _ASSIGNS.match(word.value)]
    takers = [found for command in commands if (found := _taking_strings(command))]
    texts += [value for values in takers for value in values]
    texts += [command.heredoc or "" for command in commands if _taking_strings(command)]
    texts += [word.value for part in script if isinstance(part, ForEach) for word in part.words or ()]
    if not any(_CODE.search(text) for text in texts):
        return False
    return (
        any(isinstance(part, Unsupported) and not part.unreadable for part in script)
        or any(one.name == "PS4" for one in assigned)
        or any(text.startswith("PS4=") for text in texts)
        or any(_EVALUATES.match(f"{values[0]} {value}") for values in takers for value in values)
    )


def _taking_strings(command: SimpleCommand) -> list[str]:
    """Return the words of a command from a built-in on that takes values or names of variables; none without one."""
    values = [word.value for word in command.words]
    place = next((at for at, value in enumerate(values) if value in group("takes_strings")), len(values))
    return values[place:]


def _of_command(command: SimpleCommand, *, is_used: bool) -> Iterator[str]:
    for assignment in command.assignments:
        yield assignment.value.value
        yield _QUOTING.sub("", assignment.text)
    for nested in command.nested:
        yield from collect_script_strings(nested, is_used=True)
    # The default of a variable appears only in the word as written.
    yield from (_QUOTING.sub("", word.text) for word in command.words if "${" in word.text)
    name = command.name.rsplit("/", 1)[-1]
    is_used = is_used or any(_keeps(redirect) for redirect in command.redirects)
    is_used = is_used or any(word.value in _FIND_RUNS for word in command.words)
    if command.heredoc is not None and (is_used or (name not in _PASSES_CONTENT and writer(name) is None)):
        yield command.heredoc
    if any(variable.name.startswith("GIT_") for word in command.words for variable in word.variables):
        yield ".git"
    if name in _MOVERS:
        yield from (word.value for word in command.words[1:] if not word.is_fixed)
    if is_used and name not in _PRINTS_NOTHING and name not in _PASSES_CONTENT:
        yield from _included_words(name, command.words[1:])


def _keeps(redirect: Redirect) -> bool:
    """True if a redirection stores output where another command may read it as instructions."""
    return redirect.operator.startswith((">", "&>")) and not redirect.target.value.endswith("ignore")


def _included_words(name: str, words: tuple[Word, ...]) -> Iterator[str]:
    """Yield a command's words without those that it excludes."""
    if name in ("grep", "egrep", "fgrep", "rg") and any(_TAKES_OUT.match(word.value) for word in words):
        return
    values = [word.value for word in words]
    if name == "git" and any(_GIT_PLACE.match(value) for value in values):
        yield ".git"
    for at, value in enumerate(values):
        is_negated = at > 1 and values[at - 2] in _TAKES_OUT_NEXT
        # Without an `-o` after `-prune`, the next action applies to the pruned name.
        is_pruned = values[at + 1 : at + 2] == ["-prune"] and values[at + 2 : at + 3] in (["-o"], ["-or"])
        is_left_out = value.startswith(("--exclude", "--ignore")) or value[:1] == "!"
        if not (is_negated or is_pruned or is_left_out or (at and values[at - 1].startswith("--exclude"))):
            yield value
