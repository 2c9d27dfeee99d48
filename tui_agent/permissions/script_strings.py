"""What a script says in one place and may use in another: values of variables, words of loops, output of commands.

A command whose words or input only the running shell knows may get any of these; none of them is needed for anything
that is known by itself.
"""

import re
from collections.abc import Iterator

from .shell_syntax import (
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
from .writer_table import writer

_PASSES_CONTENT = names(
    "cat head tail tac nl base64 od xxd hexdump hd strings zcat gzip gunzip xzcat bzcat less bat jq wc"
)
"""What they put out is what is in files, not what their words say."""
_MOVERS = names("cd pushd")
_SAYS_NOTHING = names("test [ [[ true false :") | _MOVERS
_FIND_RUNS = names("-exec -execdir -ok -okdir")
_TAKES_OUT = re.compile(r"-[A-Za-z]*v|--invert-match\Z")
_TAKES_OUT_NEXT = names("-not !")
_GIT_PLACE = re.compile(r"--(?:git-|absolute-git-dir)")
_QUOTING = re.compile(r"['\"\\]")


def collect_script_strings(statement: Statement, *, feeds_command: bool = False) -> Iterator[str]:
    """The texts of a script that may become words, or input, of a command in it.

    Args:
        statement: the script, or a part of it.
        feeds_command: its output goes to a command.
    """
    match statement:
        case SimpleCommand():
            yield from _of_command(statement, feeds_command=feeds_command)
        case Sequence() | Branches():
            for part in statement.parts:
                yield from collect_script_strings(part, feeds_command=feeds_command)
        case Pipeline():
            for number, part in enumerate(statement.parts):
                yield from collect_script_strings(
                    part, feeds_command=feeds_command or number < len(statement.parts) - 1
                )
        case Conditional():
            for part in (statement.first, *(part for _, part in statement.rest)):
                yield from collect_script_strings(part, feeds_command=feeds_command)
        case Subshell() | Definition():
            yield from collect_script_strings(statement.body, feeds_command=feeds_command)
        case ForEach():
            yield from (word.value for word in statement.words or ())
            for part in (*statement.nested, statement.body):
                yield from collect_script_strings(part, feeds_command=feeds_command or part in statement.nested)
        case Unsupported():
            yield _QUOTING.sub("", statement.text)


def _of_command(command: SimpleCommand, *, feeds_command: bool) -> Iterator[str]:
    for assignment in command.assignments:
        yield assignment.value.value
        yield _QUOTING.sub("", assignment.text)
    for nested in command.nested:
        yield from collect_script_strings(nested, feeds_command=True)
    # A default that a variable has stands in the word as it is written, and nowhere else.
    yield from (_QUOTING.sub("", word.text) for word in command.words if "${" in word.text)
    name = command.name.rsplit("/", 1)[-1]
    feeds_command = feeds_command or any(_keeps(redirect) for redirect in command.redirects)
    feeds_command = feeds_command or any(word.value in _FIND_RUNS for word in command.words)
    if command.heredoc is not None and (feeds_command or (name not in _PASSES_CONTENT and writer(name) is None)):
        yield command.heredoc
    if any(variable.name.startswith("GIT_") for word in command.words for variable in word.variables):
        yield ".git"
    if name in _MOVERS:
        yield from (word.value for word in command.words[1:] if not word.is_fixed)
    if feeds_command and name not in _SAYS_NOTHING and name not in _PASSES_CONTENT:
        yield from _spoken(name, command.words[1:])


def _keeps(redirect: Redirect) -> bool:
    """Whether it puts a command's output where another one may read what to do."""
    return redirect.operator.startswith((">", "&>")) and not redirect.target.value.endswith("ignore")


def _spoken(name: str, words: tuple[Word, ...]) -> Iterator[str]:
    """A command's words without those that it is told to leave out."""
    if name in ("grep", "egrep", "fgrep", "rg") and any(_TAKES_OUT.match(word.value) for word in words):
        return
    values = [word.value for word in words]
    if name == "git" and any(_GIT_PLACE.match(value) for value in values):
        yield ".git"
    for at, value in enumerate(values):
        is_negated = at > 1 and values[at - 2] in _TAKES_OUT_NEXT
        # What follows `-prune` without an `-o` between them is done with what is pruned.
        is_pruned = values[at + 1 : at + 2] == ["-prune"] and values[at + 2 : at + 3] in (["-o"], ["-or"])
        is_left_out = value.startswith(("--exclude", "--ignore")) or value[:1] == "!"
        if not (is_negated or is_pruned or is_left_out or (at and values[at - 1].startswith("--exclude"))):
            yield value
