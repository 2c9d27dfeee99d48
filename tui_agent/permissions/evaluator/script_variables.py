"""Values of the variables that a script sets for itself.

Only certain values count: a variable has the values that the script assigns, wherever it does so; anything that may
assign another value makes it unknown. The walk over the script checks that a variable is set before it is used.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.builtins import declared_assignments, is_script_variable, read_names
from tui_agent.permissions.commands.version_control import prints_revisions, prints_top
from tui_agent.permissions.paths.repository import repository_roots
from tui_agent.permissions.shell.expansion import (
    NUMBER,
    OPEN,
    REVISION,
    Bindings,
    Expander,
    Value,
    base_name,
)
from tui_agent.permissions.shell.syntax import (
    SUM,
    UNKNOWN,
    VARIABLE,
    Assignment,
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
    Variable,
    Word,
    names,
)
from tui_agent.permissions.shell.syntax import Sequence as Statements

from .listings import Listing, contents_of, is_quiet, listing_output

Directories = tuple[str | None, ...]

_GLOB = frozenset("*?[")
_ANY = Word(UNKNOWN)
_ANY_NUMBER = Word(VARIABLE, variables=(Variable(SUM, quoted=False),))
_PREFIXES = names("time -p -- command builtin")
_SETTERS = names(
    "mapfile readarray getopts let declare typeset local export readonly eval source . unset trap alias enable exec"
)
"""Commands that may change any variable."""
_IGNORE_INPUT = names("echo printf basename dirname test [ [[ : true false continue break exit return cd pwd date read")
"""Commands that read nothing from a pipe, or only whole lines."""
_SIMPLE_READERS = names("cat wc stat file ls md5sum sha256sum")
_READERS = _SIMPLE_READERS | names("head tail grep")
"""Commands that do not read from a pipe if they have a file argument."""
_NUMBER = re.compile(r"-?\d{1,18}\Z|\{\d{1,9}\.\.\d{1,9}\}\Z", re.ASCII)
_NUMBERS = (["date", "+%s"], ["nproc"], ["id", "-u"], ["date", "+%Y"], ["date", "+%s%N"])
"""Commands that print one number."""
_NOTHING_BUT_NUMBERS = names("-l -c -w -m --lines --bytes --words --chars")


class ScriptVariables:
    """Known values of the variables of one script."""

    def __init__(self, everything: Sequence[Statement], expander: Expander) -> None:
        self._expander = expander
        commands = [part for part in everything if isinstance(part, SimpleCommand)]
        oddities = [part for part in everything if isinstance(part, Unsupported)]
        computed = [part.arithmetic for part in oddities if part.arithmetic]
        self._loops: defaultdict[str, list[tuple[Word, ...]]] = defaultdict(list)
        """Words of the loops over a variable."""
        for part in everything:
            if isinstance(part, ForEach):
                self._loops[part.variable].append(part.words or (_ANY,))
        self._given: defaultdict[str, list[Word]] = defaultdict(list)
        """Everything else that the script gives a variable."""
        for command in commands:
            for assignment in (*command.assignments, *(declared_assignments(command) or ())):
                is_behind = bool(command.words) and not declared_assignments(command)
                is_plain = assignment.items is None and not assignment.text.startswith(f"{assignment.name}+")
                self._given[assignment.name].append(assignment.value if is_plain and not is_behind else _ANY)
            for name in _read_into(command):
                self._given[name].append(_ANY)
        for name in (name for one in computed for name in one.sets):
            self._given[name].append(_ANY_NUMBER)
        self._fed: set[str] = set()
        self._numbers = self._holding_numbers(everything)
        self._opened = {
            name: OPEN
            for name, words in self._given.items()
            if name not in self._numbers and not all(word.is_fixed and _GLOB.isdisjoint(word.value) for word in words)
        }
        # Arithmetic evaluates anything but numbers, which could set anything.
        self._is_open = (
            any(part.arithmetic is None for part in oddities)
            or any(map(_may_set_any, commands))
            or not all(one.reads <= self._numbers for one in computed)
        )

    def opened(self) -> Bindings:
        """Return what holds everywhere in the script: the variables that may get any value."""
        return self._opened

    def with_value(self, name: str, value: Value | None, now: Bindings) -> Bindings:
        """Return the values after a variable has got one; None for an unknown one."""
        return {**self._without((name,), now), **({} if value is None else {name: value})}

    def _without(self, names: Iterable[str], now: Bindings) -> dict[str, Value]:
        values = dict(now)
        for name in names:
            values.pop(name, None)
            if name in self._opened:
                values[name] = OPEN
        return values

    def after_arithmetic(self, unsupported: Unsupported, now: Bindings) -> Bindings | None:
        """Return the values after a construct that is only arithmetic with numbers, or None for any other."""
        if unsupported.arithmetic is None or self._is_open:
            return None
        return {**now, **dict.fromkeys(unsupported.arithmetic.sets, NUMBER)}

    def after_assignments(self, command: SimpleCommand, places: Directories, now: Bindings) -> Bindings:
        """Return the values after a command has set its variables."""
        declared = declared_assignments(command) or ()
        assignments = (*command.assignments, *declared)
        names_set = {*(one.name for one in assignments), *_read_into(command)} - self._fed
        if not names_set and not assignments:
            return now
        values = self._without((other for name in names_set for other in (name, f"{name}[@]")), now)
        for one in command.assignments:
            if one.items is not None and self._is_own(one.name, is_only=True):
                values[f"{one.name}[@]"] = Value("words", tuple(item.value for item in one.items))
        for one in assignments if not command.words or declared else ():
            if (value := self._assigned(one, places, values)) is not None:
                values[one.name] = value
        return values

    def _is_own(self, name: str, *, is_only: bool = False) -> bool:
        """True if only the script sets a variable, at one place alone if `is_only`."""
        places = len(self._given.get(name, ())) + len(self._loops.get(name, ()))
        return not self._is_open and is_script_variable(name) and (places == 1 or not is_only)

    def _assigned(self, assignment: Assignment, places: Directories, now: Bindings) -> Value | None:
        name, value, words = assignment.name, assignment.value, self._given[assignment.name]
        if not self._is_own(name) or name in self._loops:
            return None
        is_fixed = all(map(is_literal, words))
        if name in self._numbers and not is_fixed:
            return NUMBER
        if words != [value] and not is_fixed:
            return None  # Another assignment may have run last, with an unknown value.
        if value.value == VARIABLE:
            held = now.get(value.variables[0].name, OPEN)
            if held.kind in ("words", "number", "revision"):
                return held
        expand = self._expander.assigned
        found = [text for word in words for place in places for text in expand(word, place, now)]
        return Value("text", tuple(dict.fromkeys(found))) if all(map(is_known, found)) else None

    def output(self, part: Subshell, places: Directories, now: Bindings) -> Value | None:
        """Return the value of the word that a `$(…)` becomes."""
        statement = contents_of(part)
        if _prints_number(part):
            return NUMBER
        if isinstance(statement, SimpleCommand) and None not in places:
            words = self._expander.words_of(statement, places[0] or "", now)
            if words is not None and is_quiet(statement):
                if prints_revisions(words):
                    return REVISION
                if words == ["pwd"]:
                    return Value("text", tuple(place for place in places if place))
                # Outside a repository nothing is printed, hence the empty value.
                if prints_top(words):
                    tops = [top for place in places if place for top in repository_roots(place)]
                    return Value("text", tuple(dict.fromkeys((*tops, ""))))
        listing = self._listed(statement, places, now)
        return None if listing is None or listing.is_nul_separated else Value("words", listing.names)

    def loop_value(self, loop: ForEach, places: Directories, now: Bindings) -> Value | None:
        """Return the value of a loop's variable over all iterations."""
        if loop.words is None or not self._is_own(loop.variable, is_only=True):
            return None
        if len(loop.words) == 1 and loop.words[0].value == VARIABLE:
            held = now.get(loop.words[0].variables[0].name, OPEN)
            if held.kind in ("number", "revision"):
                return held
        values = [value for place in places for word in loop.words for value in self._expander.expand(word, place, now)]
        return None if any(UNKNOWN in value for value in values) else Value("text", tuple(dict.fromkeys(values)))

    def read_loop_values(
        self, loop: Branches, places: Directories, fed_by: Statement, now: Bindings
    ) -> dict[str, Value]:
        """Return the value of the variable that `fed_by | while read -r name; do …` reads line by line."""
        commands = [part for part in walk_statements(loop) if isinstance(part, SimpleCommand)]
        reading = [command for command in commands if command.name == "read"]
        if len(reading) != 1 or any(isinstance(part, Definition) for part in walk_statements(loop)):
            return {}
        *options, name = [word.value for word in reading[0].words[1:]] or [""]
        is_nul_separated = options in (["-r", "-d", ""], ["-rd", ""], ["-d", ""])
        if not (is_nul_separated or options in ([], ["-r"])) or not self._is_own(name, is_only=True):
            return {}
        # Only the first part of a pipeline reads the loop's input.
        pipelines = [part for part in walk_statements(loop) if isinstance(part, Pipeline)]
        behind = [inner for part in pipelines for piped in part.parts[1:] for inner in walk_statements(piped)]
        others = [command for command in commands if not any(command is inner for inner in behind)]
        # `IFS=` keeps the blanks around a line; any other assignment may change how it is split.
        is_whole = all(setting.name == "IFS" and not setting.value.value for setting in reading[0].assignments)
        listing = self._listed(fed_by, places, now)
        if listing is None or not is_whole or not all(_leaves_lines(command, name) for command in others):
            return {}
        if listing.is_nul_separated != is_nul_separated or (listing.on_one_line and len(listing.names) > 1):
            return {}
        self._fed.add(name)
        return {name: Value("text", listing.names)}

    def _holding_numbers(self, everything: Sequence[Statement]) -> frozenset[str]:
        """Return the script's own variables that never hold anything but a number, or nothing."""
        outputs = {part.name: part for part in everything if isinstance(part, Subshell) and part.name}
        words = {name: list(given) for name, given in self._given.items()}
        for name, loops in self._loops.items():
            words.setdefault(name, []).extend(word for loop in loops for word in loop)
        candidates = {name for name in words if is_script_variable(name)}
        # A variable may get the value of another, so candidates are dropped until nothing changes.
        while True:
            kept = {name for name in candidates if all(_is_number(word, candidates, outputs) for word in words[name])}
            if kept == candidates:
                return frozenset(kept)
            candidates = kept

    def _listed(self, statement: Statement, places: Directories, now: Bindings) -> Listing | None:
        found: list[Listing] = []
        for place in dict.fromkeys(places):
            if place is None:
                return None
            listing = listing_output(statement, self._expander, place, now)
            if listing is None:
                return None
            found.append(listing)
        if not found or len({(listing.is_nul_separated, listing.on_one_line) for listing in found}) > 1:
            return None
        together = dict.fromkeys(name for listing in found for name in listing.names)
        return Listing(tuple(together), found[0].is_nul_separated, found[0].on_one_line)


def has_known_values(word: Word, bindings: Bindings) -> bool:
    """True if all unquoted variables and substitutions of a word are known."""
    variables = [variable.name for variable in word.variables if not variable.quoted and variable.name != SUM]
    told = all(
        bindings.get(name, OPEN).kind != "open" or bindings.get(base_name(name), OPEN).kind == "text"
        for name in variables
    )
    return told and not any(word.value[at] == UNKNOWN for at in word.live)


def is_literal(word: Word) -> bool:
    """True if a word is the text that it becomes."""
    return word.is_fixed and not word.live


def parts_of(statement: Statement) -> tuple[Statement, ...]:
    """Return the statements directly inside a statement, in order."""
    match statement:
        case SimpleCommand():
            return statement.nested
        case Statements() | Pipeline() | Branches():
            return statement.parts
        case Conditional():
            return (statement.first, *(part for _, part in statement.rest))
        case Subshell() | Definition():
            return (statement.body,)
        case ForEach():
            return (*statement.nested, statement.body)
        case Unsupported():
            return ()


def walk_statements(statement: Statement, *, is_same_shell: bool = False) -> Iterator[Statement]:
    """Yield a statement and everything inside it, or only the parts that run in the same shell."""
    stack: list[Statement] = [statement]
    while stack:
        current = stack.pop()
        yield current
        if not is_same_shell or current is statement or not isinstance(current, Subshell | Pipeline):
            stack.extend(parts_of(current))


def own_words(command: SimpleCommand) -> list[str]:
    """Return a command's words without words such as `time` and `builtin` before it."""
    values = [word.value for word in command.words]
    while values and values[0] in _PREFIXES:
        values.pop(0)
    return values


def _may_set_any(command: SimpleCommand) -> bool:
    if not command.words:
        return False
    values = own_words(command)
    if (
        not command.words[0].is_fixed
        or (command.words[0].live and values[:1] not in (["["], ["[["]))
        or not values
        or (values[0] in _SETTERS and not _declares_own(command) and values != ["exec"])
    ):
        return True
    if values[0] == "printf":
        return any(value.startswith("-") for value in values[1:2]) or not all(
            word.is_fixed and not word.live for word in command.words[1:2]
        )
    return values[0] == "read" and read_names(values) is None


def _declares_own(command: SimpleCommand) -> bool:
    """True if a declaration only sets variables, to the values it names."""
    declared = declared_assignments(command)
    return declared is not None and all("=" in one.text and is_script_variable(one.name) for one in declared)


def _read_into(command: SimpleCommand) -> tuple[str, ...]:
    values = own_words(command)
    return (read_names(values) or ()) if values[:1] == ["read"] else ()


def _is_number(word: Word, numbers: Container[str], outputs: Mapping[str, Subshell]) -> bool:
    if word.is_fixed:
        return bool(_NUMBER.match(word.value))
    if word.value != VARIABLE:
        return False
    name = word.variables[0].name
    return name == SUM or name in numbers or (name in outputs and _prints_number(outputs[name]))


def _prints_number(part: Subshell) -> bool:
    statement = contents_of(part)
    last = statement.parts[-1] if isinstance(statement, Pipeline) else statement
    return isinstance(last, SimpleCommand) and _counts(last, is_fed=last is not statement)


def _counts(command: SimpleCommand, *, is_fed: bool) -> bool:
    """True if a command prints one number."""
    values = [word.value for word in command.words]
    reads = [redirect for redirect in command.redirects if redirect.operator == "<"]
    others = replace(command, redirects=tuple(one for one in command.redirects if one not in reads))
    if not is_quiet(others) or not all(word.is_fixed for word in command.words):
        return False
    if values in _NUMBERS:
        return True
    if values[:1] == ["seq"]:
        return all(map(_NUMBER.match, values[1:]))
    return (is_fed or bool(reads)) and values[:1] == ["wc"] and len(values) == 2 and values[1] in _NOTHING_BUT_NUMBERS


def _leaves_lines(command: SimpleCommand, name: str) -> bool:
    """True if a command in a loop reads nothing of the loop's input, so that each line stays whole."""
    values = [word.value for word in command.words]
    if not values or values[0] in _IGNORE_INPUT or any(redirect.operator == "<" for redirect in command.redirects):
        return True
    if any(value in ("-", "/dev/stdin") or "/fd/" in value for value in values):
        return False
    last = command.words[-1]
    is_given = last.value == VARIABLE and last.variables[0].name == name and values[0] in _READERS
    before = values[-2] if len(values) > 2 else ""
    is_value = before.startswith("-") and values[0] not in _SIMPLE_READERS and not before[1:].isdigit()
    return is_given and not is_value and (values[0] != "grep" or len(values) > 2)
