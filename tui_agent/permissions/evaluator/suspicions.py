"""Suspicions about a command: it may run a command that a rule forbids, or change a protected path.

A suspicion only ever asks. It arises where a rule forbids a command that another command's words or input name, and
where a script names a protected path and one of its commands gets words that only the running shell knows. Such words
may be any string of the script: a value of a variable, a word of a loop, the output of a command.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.catalogue import group, writer
from tui_agent.permissions.commands.indirect_commands import find_indirect_command, forbidden, reads_program_from_input
from tui_agent.permissions.commands.invocation import pieces_of
from tui_agent.permissions.commands.version_control import prints_own_directory
from tui_agent.permissions.commands.wrappers import Wrapping
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.paths.protected_paths import may_mean_protected, protected_name
from tui_agent.permissions.paths.repository import OWN_DIRECTORY, places_repository
from tui_agent.permissions.rules.normalized_argv import DECLARATION_COMMANDS, declared_assignments
from tui_agent.permissions.shell.expansion import Expander
from tui_agent.permissions.shell.syntax import (
    PIPE,
    UNKNOWN,
    ForEach,
    Pipeline,
    Redirect,
    SimpleCommand,
    Statement,
    Unsupported,
    Word,
    names,
)

from .path_checks import ExecutionContext
from .script_variables import parts_of
from .shell_flow import ScriptStep

_ESCAPE = re.compile(r"\\(?:[abefnrtv]|x[0-9a-fA-F]{1,2}|[0-7]{1,4})")
_PASSES_CONTENT = names(
    "cat head tail tac nl base64 od xxd hexdump hd strings zcat gzip gunzip xzcat bzcat less bat jq wc"
)
"""Commands whose output is the contents of files, not their words."""
_MOVERS = names("cd pushd")
_PRINTS_NOTHING = names("test [ [[ true false :") | _MOVERS
_FIND_RUNS = names("-exec -execdir -ok -okdir")
_TAKES_OUT = re.compile(r"-[A-Za-z]*v|--invert-match\Z")
_TAKES_OUT_NEXT = names("-not !")
_SETS_VARIABLES = names("read mapfile readarray printf getopts")
_NO_WORD = Word("", frozenset((0,)))
_CODE = re.compile(r"\$\(|`")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_EVALUATES = re.compile(
    r"(?:declare|typeset|local) -[a-zA-Z]*n|(?:test|\[\[?|printf) -v|.* -(?:eq|ne|lt|le|gt|ge)\Z|let |.*\w\[."
)
_QUOTING = re.compile(r"['\"\\]")


class Suspicions:
    """Suspicions about the commands of one script and of everything it runs."""

    def __init__(self, paths: PathJudge, tool: str, expander: Expander) -> None:
        self._path_lookup = paths.path_lookup
        self._expander = expander
        self._forbidden = forbidden(rule for rule in paths.rules.rules if rule.applies_to(tool))
        self._strings: list[str] = []
        self._checked = 0
        self._why: str | None = None

    def add_script(self, script: Statement) -> None:
        """Collect the strings of a script that may become words of a command."""
        for text in collect_script_strings(script):
            self._strings.append(text)
            if "\\" in text:
                self._strings.append(_ESCAPE.sub(" ", text))  # As `printf` and `echo -e` print it.

    def about(
        self, command: SimpleCommand, given: Sequence[ExecutionContext], wrapping: Wrapping | None, step: ScriptStep
    ) -> Iterator[str]:
        """Return reasons to ask about a command that is not known to be read-only."""
        if named := self._named(command, given, wrapping, step):
            yield named
        if self._is_open(command, given, wrapping, step) and (why := self._protected_string()):
            yield f"it is unclear which files it changes, and the script names a protected path: {why}"

    def _named(
        self, command: SimpleCommand, given: Sequence[ExecutionContext], wrapping: Wrapping | None, step: ScriptStep
    ) -> str | None:
        """Return why a command may run one that a rule forbids: its words, its input or its variables name it."""
        if not self._forbidden:
            return None
        texts = [assignment.value.value for assignment in command.assignments]
        known = {tuple(one.words) for one in given if one.words} or {(command.name,)}
        if _is_judged(wrapping) and command.name not in group("named_by_settings"):
            known = {tuple(word.value for word in wrapping.own) if wrapping and wrapping.own else (command.name,)}
        else:
            texts += [code for one in given for code in one.invocation.code]
            texts += self._input_of(command, step)
        if any(PIPE in word.value for word in (*command.words, *(one.value for one in command.assignments))):
            texts += self._strings
        for words in known:
            if found := find_indirect_command(words, texts, self._forbidden):
                return f"it may run {found[0]}, which the rule {found[1].shown} covers"
        return None

    def _input_of(self, command: SimpleCommand, step: ScriptStep) -> list[str]:
        """Return texts that a command may read as a program: its here-document and its pipeline's output."""
        if not reads_program_from_input([word.value for word in command.words]):
            return []
        return [command.heredoc or "", *(self._strings if step.is_fed else ())]

    def _is_open(
        self, command: SimpleCommand, given: Sequence[ExecutionContext], wrapping: Wrapping | None, step: ScriptStep
    ) -> bool:
        """True if only the running shell knows some of a command's arguments, or if its input may decide its effect."""
        if any(map(_has_unknowns, given)):
            return True
        targets = (
            target
            for one in given
            for redirect in command.redirects
            for target in self._expander.expand(redirect.target, one.directory, step.bindings)
        )
        if (wrapping and wrapping.hidden) or any(UNKNOWN in target for target in targets):
            return True
        return (
            step.is_fed
            and not _is_judged(wrapping)
            and reads_program_from_input([word.value for word in command.words])
        )

    def _protected_string(self) -> str | None:
        """Return why a string of the scripts read so far names a protected path, or None."""
        while self._why is None and self._checked < len(self._strings):
            text = self._strings[self._checked]
            self._checked += 1
            self._why = next((why for piece in pieces_of(text) if (why := self._why_untouchable(piece))), None)
        return self._why

    def _why_untouchable(self, piece: str) -> str | None:
        if why := protected_name(piece) or self._path_lookup.may_be_private(piece.split("/")):
            return why
        if any(may_mean_protected(name) for name in piece.split("/")):
            return f"{piece} may match a protected path"
        return self._path_lookup.look(piece).private if piece.startswith(("/", "~")) and is_known(piece) else None


def _is_judged(wrapping: Wrapping | None) -> bool:
    """True if everything that a command runs is judged separately."""
    return wrapping is not None and bool(wrapping.inner_commands or wrapping.scripts) and not wrapping.hidden


def _has_unknowns(found: ExecutionContext) -> bool:
    """True if only the running shell knows the command's name, its directory or its targets."""
    if not found.words or found.directory is None or UNKNOWN in found.words[0]:
        return True
    one = found.invocation
    touched = (*(write.path for write in (*one.writes, *one.mentions)), *one.code, one.runs_in or "")
    return any(UNKNOWN in text or PIPE in text for text in touched)


def collect_script_strings(statement: Statement, *, is_used: bool = False) -> Iterator[str]:
    """Yield the strings of a script that may become words, or input (`is_used`), of one of its commands."""
    parts = parts_of(statement)
    match statement:
        case SimpleCommand():
            yield from _of_command(statement, is_used=is_used)
            return
        case Unsupported():
            yield _QUOTING.sub("", statement.text)
        case ForEach():
            yield from (word.value for word in statement.words or ())
        case _:
            pass
    for part in parts:
        # The last part's output goes where that of the whole goes, and the last part of a loop is its body.
        feeds = isinstance(statement, (Pipeline, ForEach)) and part is not parts[-1]
        yield from collect_script_strings(part, is_used=is_used or feeds)


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
    if any(places_repository(variable.name) for word in command.words for variable in word.variables):
        yield OWN_DIRECTORY
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
    if prints_own_directory(name, values):
        yield OWN_DIRECTORY
    for at, value in enumerate(values):
        is_negated = at > 1 and values[at - 2] in _TAKES_OUT_NEXT
        # Without an `-o` after `-prune`, the next action applies to the pruned name.
        is_pruned = values[at + 1 : at + 2] == ["-prune"] and values[at + 2 : at + 3] in (["-o"], ["-or"])
        is_left_out = value.startswith(("--exclude", "--ignore")) or value[:1] == "!"
        if not (is_negated or is_pruned or is_left_out or (at and values[at - 1].startswith("--exclude"))):
            yield value
