"""Working directories of a script's commands, and the pipelines between them.

Each command is paired with every directory it may run in: after `cd sub && …` it is `sub`, after `cd sub; …` it is
either. If a directory is not certain, one of them is None, and a relative path may then lead anywhere.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tui_agent.permissions.commands.builtins import sets_switches_only
from tui_agent.permissions.commands.catalogue import facts_of, group
from tui_agent.permissions.paths.path_resolution import resolve
from tui_agent.permissions.shell.expansion import Bindings, Expander, Value, has_glob, single_bindings
from tui_agent.permissions.shell.syntax import (
    UNKNOWN,
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    Sequence,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
    names,
)

from .listings import contents_of
from .script_variables import ScriptVariables, own_words, walk_statements

PossibleDirectories = tuple[str | None, ...]
"""Directories that a statement may run in; None for an unknown one."""

MAX_POSSIBLE_DIRECTORIES = 8
"""Maximum number of directories for one command; with more, one is unknown."""
MAX_CD_COMMANDS = 25
"""Maximum number of directory changes in one script."""

MAX_CALLS = 20
"""Maximum number of calls of a script's own functions that are judged one by one."""

_FUNCTION = re.compile(r"[a-z_][a-z0-9_]*\Z", re.ASCII)
_MOVERS = names("eval source . trap")
"""Commands after which the shell's directory is unknown."""
_SHIFTERS = names("shift set getopts eval source .")
_CHANGE_DIRECTORY = names("cd pushd popd")
_PLACES = names("HOME PWD OLDPWD CDPATH IFS")
_SETS_PLACE = re.compile(
    r"(?s)(?:\w+=|-v)?(?!CDPATH=\Z|IFS=(?:[^\w./:=@%+,\ud800-\udfff-]|\\[nt])*\Z)(HOME|PWD|OLDPWD|CDPATH|IFS)(?:\+?=.*|\[.*)?\Z"
)
"""A word that may set one of these variables to a value that changes anything, also by a reference to it."""


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One part of a script with its known circumstances."""

    command: SimpleCommand | Unsupported | Definition | ForEach
    places: PossibleDirectories
    fed_by: Statement | None = None
    """Statement whose output it reads, in a pipeline."""
    bindings: Bindings = field(default_factory=dict[str, Value])
    is_fed: bool = False
    """True if its input is the output of earlier parts of a pipeline, known or not."""
    operator: str = ""
    """Its connection to the step before, as in `DecisionPart`; only for display."""


def script_steps(
    statement: Statement, places: PossibleDirectories, expander: Expander, operator: str = ""
) -> tuple[ScriptStep, ...]:
    """Return every part that may run, in the order of the text; substitutions precede the command they are in."""
    only = contents_of(statement)
    if isinstance(only, SimpleCommand) and _uses_no_variables(only):
        expander.unknown_places.update(_places_set((only,)))
        return (ScriptStep(only, places, operator=operator),)
    flow = _Flow(statement, expander, operator)
    flow.run(statement, places, flow.opened)
    return tuple(flow.steps)


def _uses_no_variables(command: SimpleCommand) -> bool:
    """True if neither variables nor other commands decide about a command's words."""
    targets = (redirect.target for redirect in command.redirects)
    return not (command.assignments or command.nested or any(word.variables for word in (*command.words, *targets)))


def widens_patterns(everything: Iterable[Statement]) -> bool:
    """True if a script may make patterns match hidden names."""
    return any(isinstance(part, SimpleCommand) and own_words(part)[:1] == ["shopt"] for part in everything)


def _places_set(everything: Iterable[Statement]) -> Iterator[str]:
    """Yield the variables that a script may set, of those with which the shell finds directories."""
    for part in everything:
        if isinstance(part, ForEach):
            yield from _PLACES & {part.variable}
        elif isinstance(part, SimpleCommand):
            # `env`, `read`, `printf -v` and the like take the name as a word.
            assigned = () if part.name == "read" else part.assignments
            texts = (*(assignment.text for assignment in assigned), *(word.value for word in part.words))
            yield from (found[1] for found in map(_SETS_PLACE.match, texts) if found)


@dataclass(frozen=True, slots=True)
class _After:
    """The shell after a statement: its possible directories, and the values of variables."""

    success: PossibleDirectories
    failure: PossibleDirectories
    values: Bindings


class _Flow:
    """One walk over one script."""

    def __init__(self, statement: Statement, expander: Expander, operator: str) -> None:
        self._expand = expander.expand
        self._operator = operator
        """Operator before the next step."""
        everything = list(walk_statements(statement))
        expander.unknown_places.update(_places_set(everything))
        self._unknown_places = expander.unknown_places
        self.steps: list[ScriptStep] = []
        self._functions = {part.name for part in everything if isinstance(part, Definition)}
        """Functions that may change the directory."""
        self._inlined = _inlined_functions(everything)
        self._functions -= {
            name
            for name, body in self._inlined.items()
            if not any(self._moves(part) for part in walk_statements(body, is_same_shell=True))
        }
        self._variables = ScriptVariables(everything, expander)
        self.opened: Bindings = self._variables.opened()
        self._is_fed = False
        self._visited: dict[str | None, None] = {}
        """Every directory in which something has run so far."""
        self._has_moved = False
        commands = ([word.value for word in part.words] for part in everything if isinstance(part, SimpleCommand))
        self._shifts = any(not _SHIFTERS.isdisjoint(one) and not sets_switches_only(one) for one in commands)
        """True if a part may change the arguments of a function."""
        # Rough commands of unreadable text may not run in this order.
        is_readable = not any(isinstance(part, Unsupported) and part.unreadable for part in everything)
        self._moves_left = MAX_CD_COMMANDS if is_readable else 0

    def run(
        self, statement: Statement, places: PossibleDirectories, now: Bindings, fed_by: Statement | None = None
    ) -> _After:
        """Collect every step of a statement that starts in one of `places`, with the values `now`."""
        match statement:
            case SimpleCommand():
                return self._command(statement, places, now, fed_by)
            case Unsupported():
                computed = self._variables.after_arithmetic(statement, now)
                if computed is None:
                    self._note(statement, places, now, fed_by)
                return _After(places, places, now if computed is None else computed)
            case Definition():
                # The body of an inlined function is judged at each call. Any other function runs where it is called:
                # in an unknown directory, with unknown values.
                if statement.name not in self._inlined:
                    self._note(statement, places, now)
                    self.run(statement.body, (None,), self.opened)
            case Sequence():
                return self._in_turn(statement.parts, places, now, fed_by)
            case Conditional():
                return self._conditional(statement, places, now, fed_by)
            case Pipeline():
                was_fed = self._is_fed
                for number, part in enumerate(statement.parts):
                    self._is_fed = was_fed or number > 0
                    self._operator = "|" if number else self._operator
                    before = statement.parts[:number]
                    self.run(part, places, now, Pipeline(before) if number > 1 else (*before, fed_by)[0])
                self._is_fed = was_fed
            case Subshell():
                self.run(statement.body, places, now, fed_by)
            case Branches():
                return self._branches(statement, places, now, fed_by)
            case ForEach():
                return self._for_each(statement, places, now)
        # A pipeline or a subshell sets no variable of the outer shell.
        return _After(places, places, now)

    def _run_nested(self, nested: tuple[Statement, ...], places: PossibleDirectories, now: Bindings) -> Bindings:
        """Walk the statements inside words; return the values with their output."""
        before = self._operator
        for part in nested:
            self._operator = "$()"
            now = self.run(part, places, now).values
            if isinstance(part, Subshell) and part.name:
                now = self._variables.with_value(part.name, self._variables.output(part, places, now), now)
        self._operator = before
        return now

    def _command(
        self, command: SimpleCommand, places: PossibleDirectories, now: Bindings, fed_by: Statement | None
    ) -> _After:
        now = self._run_nested(command.nested, places, now)
        self._visited |= dict.fromkeys(places)
        if command.name in self._inlined:
            if command.redirects:
                self._note(replace(command, words=(), nested=()), places, now)
            arguments = self._arguments(command, places, now)
            after = self.run(self._inlined[command.name], places, {**now, **arguments}, fed_by)
            return replace(after, values={name: held for name, held in after.values.items() if name not in arguments})
        self._note(command, places, now, fed_by)
        now = self._variables.after_assignments(command, places, now)
        stays = _After(places, places, now)
        values = own_words(command)
        if not values:
            return stays
        if values[0] in _CHANGE_DIRECTORY:
            takes_place = "CDPATH" in self._unknown_places or all(value.startswith("-") for value in values[1:])
            if self._unknown_places and takes_place:
                return replace(stays, success=(None,))
            if values[0] == "popd" or (values[1:] in ([], ["-"]) and values != ["cd"]):
                # Back to one of the earlier directories, if the script has changed directory.
                return replace(stays, success=_either(tuple(self._visited), ()) if self._has_moved else (None,))
            self._has_moved = True
            return replace(stays, success=self._moved(command, len(command.words) - len(values) + 1, places, now))
        if values[0] in _MOVERS or values[0] in self._functions or not command.words[0].is_fixed:
            return replace(stays, success=_either(places, (None,)), failure=_either(places, (None,)))
        return stays

    def _arguments(self, command: SimpleCommand, places: PossibleDirectories, now: Bindings) -> Bindings:
        """Return the values of `$1` and the like in a function that a command calls, as far as they are certain."""
        words = command.words[1:]
        turns = single_bindings(now, words) or []
        if self._shifts or any(has_glob(word) for word in words):
            return {}
        columns: list[dict[str, None]] = [{} for _ in words]
        for place in places:
            for bindings in turns:
                for column, word in zip(columns, words, strict=True):
                    found = self._expand(word, place, bindings)
                    column.update(dict.fromkeys(found if len(found) == 1 else (UNKNOWN,)))
        if any(UNKNOWN in value for column in columns for value in column) or not turns:
            return {}
        everything = {"@": Value("words", tuple(value for column in columns for value in column))}
        return everything | {str(at): Value("text", tuple(column)) for at, column in enumerate(columns[:9], start=1)}

    def _moved(
        self, command: SimpleCommand, first: int, places: PossibleDirectories, now: Bindings
    ) -> PossibleDirectories:
        """Return the directories after a `cd` from each place, by name and with links followed."""
        self._moves_left -= 1
        if self._moves_left < 0:
            return (None,)
        moved: list[str | None] = []
        for place in places:
            for bindings in single_bindings(now, command.words[first:]) or [now]:
                targets = [self._expand(word, place, bindings) for word in command.words[first:]]
                if len(targets) == 1:
                    # `cd` takes one of the names that a pattern matches.
                    moved.extend(
                        place_after for target in targets[0] for place_after in _targets_of_cd([target], place)
                    )
                else:
                    moved.extend(_targets_of_cd([value for values in targets for value in values], place))
        return _either(tuple(moved), ())

    def _in_turn(
        self, parts: tuple[Statement, ...], places: PossibleDirectories, now: Bindings, fed_by: Statement | None
    ) -> _After:
        after = _After(places, places, now)
        for part in parts:
            is_other = isinstance(part, Branches) and part.is_other
            values = now if is_other else after.values
            after = self.run(part, _either(after.success, after.failure), values, fed_by)
            self._operator = ";"
        return after

    def _conditional(
        self, statement: Conditional, places: PossibleDirectories, now: Bindings, fed_by: Statement | None
    ) -> _After:
        """Walk a list of `&&` and `||`.

        After `&&`, the earlier parts have set their variables. After `||`, only the first part certainly has.
        """
        after = self.run(statement.first, places, now, fed_by)
        settled = after.values
        for operator, part in statement.rest:
            self._operator = operator
            if operator == "&&":
                right = self.run(part, after.success, after.values)
                after = replace(right, failure=_either(after.failure, right.failure))
            else:
                right = self.run(part, after.failure, settled)
                after = _After(_either(after.success, right.success), right.failure, settled)
        return replace(after, values=settled)

    def _branches(
        self, statement: Branches, places: PossibleDirectories, now: Bindings, fed_by: Statement | None = None
    ) -> _After:
        current = self._for_loop(statement, places) if statement.repeats else places
        for part in statement.parts:
            read = self._variables.read_loop_values(statement, places, fed_by, now) if fed_by is not None else {}
            after = self.run(part, current, {**now, **read})
            current = _either(current, _either(after.success, after.failure))
        return _After(current, current, now)

    def _for_each(self, statement: ForEach, places: PossibleDirectories, now: Bindings) -> _After:
        now = self._run_nested(statement.nested, places, now)
        self._note(statement, places, now)
        values = self._variables.loop_value(statement, places, now)
        inside = self._variables.with_value(statement.variable, values, now)
        after = self._branches(Branches((statement.body,), repeats=True), places, inside)
        return replace(after, values=now)

    def _for_loop(self, statement: Statement, places: PossibleDirectories) -> PossibleDirectories:
        """Return the directories in which a loop's body may start.

        One is unknown if an iteration can change directory.
        """
        moves = any(self._moves(part) for part in walk_statements(statement, is_same_shell=True))
        return _either(places, (None,)) if moves else places

    def _moves(self, part: Statement) -> bool:
        if not isinstance(part, SimpleCommand) or not part.words:
            return False
        values = {word.value for word in part.words}
        return not part.words[0].is_fixed or not values.isdisjoint(_MOVERS | _CHANGE_DIRECTORY | self._functions)

    def _note(
        self,
        command: SimpleCommand | Unsupported | Definition | ForEach,
        places: PossibleDirectories,
        now: Bindings,
        fed_by: Statement | None = None,
    ) -> None:
        self.steps.append(ScriptStep(command, places, fed_by, now, self._is_fed, self._operator))


def _inlined_functions(everything: Iterable[Statement]) -> dict[str, Statement]:
    """Return the bodies of functions that can be judged at each call, as if written there.

    No program has such a name, so that nothing else runs where the function is not defined.
    """
    everything = list(everything)
    functions = [part for part in everything if isinstance(part, Definition)]
    counts = Counter(part.name for part in functions)
    calls = [part for part in everything if isinstance(part, SimpleCommand) and part.name in counts]
    inlined: dict[str, Statement] = {}
    for function in functions:
        own = [part for part in calls if part.name == function.name]
        inside = [part for part in walk_statements(function.body) if isinstance(part, (SimpleCommand, Definition))]
        is_flat = not any(isinstance(part, Definition) or part.name in counts for part in inside)
        is_plain = all(part.words[0].text == part.name and not part.assignments for part in own)
        is_other = facts_of(function.name) or shutil.which(function.name) or not _FUNCTION.match(function.name)
        is_only = counts[function.name] == 1 and not is_other and function.name not in group("keywords")
        if own and is_flat and is_plain and is_only:
            inlined[function.name] = function.body
    # A call is a copy of the body, so many calls would multiply the work.
    return inlined if len(calls) <= MAX_CALLS else {}


def _either(first: PossibleDirectories, second: PossibleDirectories) -> PossibleDirectories:
    together = tuple(dict.fromkeys((*first, *second)))
    return together if len(together) <= MAX_POSSIBLE_DIRECTORIES else (*together[: MAX_POSSIBLE_DIRECTORIES - 1], None)


def _targets_of_cd(targets: list[str], place: str | None) -> tuple[str | None, ...]:
    """Return the directory that `cd` with these words leads to, by name and with links followed."""
    targets = [target for target in targets if target not in ("-L", "-P", "-e", "-@", "--")] or ["~"]
    target = os.path.expanduser(targets[0]) if targets == ["~"] else targets[0]
    is_known = len(targets) == 1 and UNKNOWN not in target and not target.startswith(("-", "+"))
    if not is_known or (place is None and not target.startswith("/")):
        return (None,)
    # `cd` keeps the name of a link in `$PWD`, but `..` in a later command follows the real directory.
    logical = os.path.normpath(os.path.join(place or "/", target))
    physical = resolve(target, place or "/")
    if resolve(logical, "/").path == physical.path:
        return (logical,)
    return (logical, physical.path if physical.is_certain else None)
