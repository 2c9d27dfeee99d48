"""In which directories the commands of a script may run, and which command feeds which.

Each command is paired with every directory it may run in: after `cd sub && …` it is `sub`, after `cd sub; …` it is
either. Where that cannot be told, one of the directories is None, and a relative path is then a path to anywhere.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .path_resolution import resolve
from .shell_expansion import Bindings, Expander
from .shell_syntax import (
    UNKNOWN,
    Apart,
    Branches,
    Conditional,
    Definition,
    ForEach,
    Oddity,
    Pipeline,
    Sequence,
    SimpleCommand,
    Statement,
    names,
)

Places = tuple[str | None, ...]
"""Directories that something may run in; None: one that is not known."""

MAX_PLACES = 8
"""Most directories that are followed at once; beyond, none is known."""
MAX_MOVES = 25
"""Most changes of directory that are followed in one script."""

_TRANSPARENT_PREFIXES = names("time -p -- command builtin")
_MOVERS = names("pushd popd eval source . exec trap alias unalias shopt set enable hash bind unset")
"""Commands after which the shell may be anywhere, or mean something else by a name."""
_ASSIGNERS = names(
    "read mapfile readarray printf getopts let declare typeset local export readonly eval source . unset"
)
"""Commands that may give a loop's variable another value."""


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of a script with what is known of the circumstances."""

    command: SimpleCommand | Oddity | Definition | ForEach
    places: Places
    fed_by: SimpleCommand | None = None
    """The command whose output it reads, in a pipeline."""
    bindings: Bindings = field(default_factory=dict[str, tuple[str, ...]])
    is_fed: bool = False
    """Its input is what comes before it in a pipeline, whatever that is."""


def steps_of(statement: Statement, places: Places, expander: Expander) -> tuple[Step, ...]:
    """Every piece that may run, in the order of the text; substitutions come before the command they are in."""
    flow = _Flow(statement, expander)
    flow.run(statement, places, None)
    return tuple(flow.steps)


@dataclass(frozen=True, slots=True)
class _After:
    """Where the shell may be after a statement."""

    success: Places
    failure: Places


class _Flow:
    """One walk over one script."""

    def __init__(self, statement: Statement, expander: Expander) -> None:
        self._expand = expander.expand
        everything = list(_everything_in(statement))
        self.steps: list[Step] = []
        self._loops = Counter(part.variable for part in everything if isinstance(part, ForEach))
        self._functions = {part.name for part in everything if isinstance(part, Definition)}
        self._may_bind = not any(_may_assign(part) for part in everything)
        self._bindings: dict[str, tuple[str, ...]] = {}
        self._is_fed = False
        is_readable = not any(isinstance(part, Oddity) and part.unreadable for part in everything)
        self._moves_left = MAX_MOVES if is_readable else 0

    def run(self, statement: Statement, places: Places, fed_by: SimpleCommand | None) -> _After:
        """Notes every step of a statement that starts in one of `places`."""
        match statement:
            case SimpleCommand():
                return self._command(statement, places, fed_by)
            case Oddity():
                self._note(statement, places, fed_by)
                return _After(places, places)
            case Definition():
                self._note(statement, places, None)
                self.run(statement.body, (None,), None)
                return _After(places, places)
            case Sequence():
                return self._in_turn(statement.parts, places, fed_by)
            case Conditional():
                return self._conditional(statement, places, fed_by)
            case Pipeline():
                was_fed = self._is_fed
                for number, part in enumerate(statement.parts):
                    self._is_fed = was_fed or number > 0
                    before = statement.parts[number - 1] if number else fed_by
                    self.run(part, places, before if isinstance(before, SimpleCommand) else None)
                self._is_fed = was_fed
                return _After(places, places)
            case Apart():
                self.run(statement.body, places, fed_by)
                return _After(places, places)
            case Branches():
                return self._branches(statement, places)
            case ForEach():
                return self._for_each(statement, places)

    def _command(self, command: SimpleCommand, places: Places, fed_by: SimpleCommand | None) -> _After:
        for nested in command.nested:
            self.run(nested, places, None)
        self._note(command, places, fed_by)
        values = [word.value for word in command.words]
        while values and values[0] in _TRANSPARENT_PREFIXES:
            values.pop(0)
        if not values:
            return _After(places, places)
        if values[0] == "cd":
            return _After(self._moved(command, len(command.words) - len(values) + 1, places), places)
        if values[0] in _MOVERS or values[0] in self._functions or not command.words[0].is_fixed:
            return _After(_either(places, (None,)), _either(places, (None,)))
        return _After(places, places)

    def _moved(self, command: SimpleCommand, first: int, places: Places) -> Places:
        """Where `cd` leads from each place, by the names it was given and by the links behind them."""
        self._moves_left -= 1
        if self._moves_left < 0:
            return (None,)
        moved: list[str | None] = []
        for place in places:
            targets = [value for word in command.words[first:] for value in self._expand(word, place, self._bindings)]
            targets = [target for target in targets if target not in ("-L", "-P", "-e", "-@", "--")] or ["~"]
            target = os.path.expanduser(targets[0]) if targets == ["~"] else targets[0]
            is_known = len(targets) == 1 and UNKNOWN not in target and not target.startswith(("-", "+"))
            if not is_known or (place is None and not target.startswith("/")):
                moved.append(None)
                continue
            logical = os.path.normpath(os.path.join(place or "/", target))
            physical = resolve(target, place or "/")
            moved.append(logical)
            if resolve(logical, "/").path != physical.path:
                moved.append(physical.path if physical.is_certain else None)
        return _either(tuple(moved), ())

    def _in_turn(self, parts: tuple[Statement, ...], places: Places, fed_by: SimpleCommand | None) -> _After:
        after = _After(places, places)
        for part in parts:
            after = self.run(part, _either(after.success, after.failure), fed_by)
        return after

    def _conditional(self, statement: Conditional, places: Places, fed_by: SimpleCommand | None) -> _After:
        after = self.run(statement.first, places, fed_by)
        for operator, part in statement.rest:
            if operator == "&&":
                right = self.run(part, after.success, None)
                after = _After(right.success, _either(after.failure, right.failure))
            else:
                right = self.run(part, after.failure, None)
                after = _After(_either(after.success, right.success), right.failure)
        return after

    def _branches(self, statement: Branches, places: Places) -> _After:
        current = self._for_loop(statement, places) if statement.repeats else places
        for part in statement.parts:
            after = self.run(part, current, None)
            current = _either(current, _either(after.success, after.failure))
        return _After(current, current)

    def _for_each(self, statement: ForEach, places: Places) -> _After:
        for nested in statement.nested:
            self.run(nested, places, None)
        self._note(statement, places, None)
        values = self._values(statement, places)
        if values is not None:
            self._bindings[statement.variable] = values
        after = self._branches(Branches((statement.body,), repeats=True), places)
        self._bindings.pop(statement.variable, None)
        return after

    def _values(self, statement: ForEach, places: Places) -> tuple[str, ...] | None:
        """Every value of a loop's variable; None where another part of the script may set it, or a value is open."""
        if statement.words is None or not self._may_bind or self._loops[statement.variable] > 1:
            return None
        values = [
            value for place in places for word in statement.words for value in self._expand(word, place, self._bindings)
        ]
        return tuple(dict.fromkeys(values)) if all(UNKNOWN not in value for value in values) else None

    def _for_loop(self, statement: Statement, places: Places) -> Places:
        """Where a loop's body may start: somewhere unknown if a turn of it can move."""
        return _either(places, (None,)) if any(self._moves(part) for part in _everything_in(statement)) else places

    def _moves(self, part: Statement) -> bool:
        if not isinstance(part, SimpleCommand) or not part.words:
            return False
        values = {word.value for word in part.words}
        return not part.words[0].is_fixed or "cd" in values or not values.isdisjoint(_MOVERS | self._functions)

    def _note(
        self, command: SimpleCommand | Oddity | Definition | ForEach, places: Places, fed_by: SimpleCommand | None
    ) -> None:
        self.steps.append(Step(command, places, fed_by, dict(self._bindings), self._is_fed))


def _either(first: Places, second: Places) -> Places:
    together = tuple(dict.fromkeys((*first, *second)))
    return together if len(together) <= MAX_PLACES else (*together[: MAX_PLACES - 1], None)


def _may_assign(part: Statement) -> bool:
    if isinstance(part, Oddity):
        return True
    if not isinstance(part, SimpleCommand):
        return False
    return (
        bool(part.assignments)
        or not _ASSIGNERS.isdisjoint(word.value for word in part.words)
        or (bool(part.words) and not part.words[0].is_fixed)
    )


def _everything_in(statement: Statement) -> Iterator[Statement]:
    """A statement and everything inside it."""
    stack: list[Statement] = [statement]
    while stack:
        current = stack.pop()
        yield current
        match current:
            case SimpleCommand():
                stack.extend(current.nested)
            case Sequence() | Pipeline() | Branches():
                stack.extend(current.parts)
            case Conditional():
                stack.extend((current.first, *(part for _, part in current.rest)))
            case Apart() | Definition():
                stack.append(current.body)
            case ForEach():
                stack.extend((current.body, *current.nested))
            case Oddity():
                pass
