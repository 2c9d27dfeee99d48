"""Names that a script passes from one command to another: may one of them be protected?

In `find … | while read f; do rm "$f"; done`, `rm $(cat list)` or `xargs -a list rm` the words of the changing command
do not tell its targets; their source does. A variable that the script does not set is the user's own and counts as
intended. A value that the script sets is traced to its sources; an untraceable one counts as anything.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .commands.argv import is_known
from .commands.catalogue import SHELLS, canonical_name
from .name_filters import is_name_filter, prints_fragments, takes_first_field, xargs_passes_names
from .path_facts import PathLookup
from .printed_names import Cut, Trouble, says_no_file, trouble_with
from .protected_paths import may_mean_protected
from .read_only_builtins import read_names
from .script_variables import walk_statements
from .shell_expansion import Bindings, Expander, base_name, has_glob, single_bindings
from .shell_flow import ScriptStep
from .shell_syntax import (
    MARKS,
    PIPE,
    UNKNOWN,
    VARIABLE,
    Definition,
    ForEach,
    Pipeline,
    SimpleCommand,
    Statement,
    Subshell,
    Word,
    names,
)
from .shell_wrappers import unwrap

MAX_LOOKUPS = 16
"""Maximum number of commands of one script whose output is traced."""

_DECLARES = names("declare typeset local export readonly")
_READS = names("read mapfile readarray")
_TAKES_INPUT = _READS | SHELLS | names("xargs parallel")
_NAME = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*|[0-9@*])")
_OPERATED = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[^\]]*\])?[%#/^,@:](?![-=?+])")
_DEFAULT = re.compile(r"\$\{\w+:?[-+=]")
_APPENDS_OR_LISTS = re.compile(r"[A-Za-z_]\w*(?:\+=|\[|=\()")
_DECLARED = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.DOTALL)
_ALL = "*"
"""Placeholder for every name that a script passes on."""
_INPUT = "<"
"""Placeholder for the names that a script reads."""
_GIVEN_BY = {"xargs": _INPUT, "parallel": _INPUT, "find": ""}
"""Placeholder for the words that a command passes to another. `find` has none: its walk judges the matches."""
_UNKNOWN_VALUE = "a value known only when the command runs"


@dataclass(frozen=True, slots=True)
class _Setting:
    """A value that one assignment of a script gives to a variable."""

    words: tuple[Word, ...] = ()
    from_input: bool = False
    is_unknown: bool = False


class ScriptDataFlow:
    """Names that the scripts of one command pass on."""

    def __init__(self, path_lookup: PathLookup) -> None:
        self._path_lookup = path_lookup
        self._expander = Expander()
        self._steps: dict[int, ScriptStep] = {}
        self._settings: dict[str, list[_Setting]] = {}
        self._outputs: dict[str, list[Statement]] = {}
        self._inputs: list[Statement | None] = []
        """Statements whose output commands may read as names; None for a file."""
        self._moves: list[SimpleCommand] = []
        self._widens = False
        self._found: dict[str, Trouble | None] = {}
        self._looks_left = MAX_LOOKUPS

    def add_script(self, script: Statement, steps: Sequence[ScriptStep]) -> None:
        """Collect a script's assignments, outputs and inputs, with the circumstances of its commands."""
        self._found.clear()
        self._steps |= {id(step.command): step for step in steps}
        everything = list(walk_statements(script))
        functions = {part.name for part in everything if isinstance(part, Definition)}
        for part in everything:
            match part:
                case SimpleCommand():
                    self._collect_command(part)
                case ForEach():
                    self._settings.setdefault(part.variable, []).append(_Setting(part.words or (Word(UNKNOWN),)))
                case Subshell() if part.name:
                    self._outputs.setdefault(part.name, []).append(part)
                case Pipeline():
                    for at in range(1, len(part.parts)):
                        if _may_read(part.parts[at], functions):
                            self._inputs.append(Pipeline(part.parts[:at]))
                case _:
                    pass

    def trouble(self, words: Sequence[Word], paths: Iterable[str], *, outer: str, is_moved: bool) -> Trouble | None:
        """Return why the targets of a command may be protected, or None.

        Args:
            words: the command's words and the targets of its redirections.
            paths: its targets, as far as they are known.
            outer: the name of the command that runs it and may pass it words.
            is_moved: its working directory is unknown.
        """
        found: list[Trouble | None] = []
        handed = False
        for word in words:
            sources = [source for source in _sources_of(word, _GIVEN_BY.get(outer, _ALL)) if source]
            handed = handed or any(self._is_set(source) for source in sources)
            found += [self._of_source(source) for source in sources]
        if is_moved:
            for command in self._moves:
                found += [self._of_source(source) for word in command.words[1:] for source in _sources_of(word, _ALL)]
        glued = [path for path in paths if UNKNOWN in path]
        if glued:
            handed = handed or any(_DEFAULT.search(word.text) for word in words)
            found += [self._why_assembled(path, handed=handed) for path in glued]
        return _worst(found)

    @property
    def widens_patterns(self) -> bool:
        """True if the script may make patterns match hidden names."""
        return self._widens

    # --- collecting ---------------------------------------------------------------------------------------------------

    def _collect_command(self, command: SimpleCommand) -> None:
        values = [word.value for word in command.words]
        name = canonical_name(values[0]) if values else ""
        for assignment in command.assignments:
            self._widens = self._widens or assignment.name == "GLOBIGNORE"
            is_unknown = bool(_APPENDS_OR_LISTS.match(assignment.text))
            setting = _Setting((assignment.value,), is_unknown=is_unknown)
            self._settings.setdefault(assignment.name, []).append(setting)
        self._widens = self._widens or name == "shopt" or (name in SHELLS and bool({"-O", "+O"} & set(values)))
        if name in _DECLARES:
            self._declare(command.words[1:])
        elif name in _READS:
            given = read_names(values) if name == "read" else None
            for one in given if given is not None else [value for value in values[1:] if value.isidentifier()]:
                self._settings.setdefault(one, []).append(_Setting(from_input=True))
            if name == "read" and given == ():
                self._settings.setdefault("REPLY", []).append(_Setting(from_input=True))
            elif name != "read":
                self._settings.setdefault("MAPFILE", []).append(_Setting(from_input=True))
        elif (name == "printf" and "-v" in values) or name in ("getopts", "let"):
            for value in values[1:]:
                self._settings.setdefault(value.partition("=")[0], []).append(_Setting(is_unknown=True))
        elif name in ("cd", "pushd"):
            self._moves.append(command)
        if not values or name in _TAKES_INPUT:
            self._collect_input(command, values)

    def _declare(self, words: Sequence[Word]) -> None:
        for word in words:
            found = _DECLARED.match(word.value)
            if found is not None:
                value = Word(word.value[found.end() :], frozenset(), word.variables, word.text)
                self._settings.setdefault(found.group(1), []).append(
                    _Setting((value,), is_unknown=bool(found.group(2)))
                )

    def _collect_input(self, command: SimpleCommand, values: Sequence[str]) -> None:
        for redirect in command.redirects:
            if redirect.operator == "<":
                is_pipe = redirect.target.value == PIPE
                self._inputs.extend(command.nested if is_pipe else [None])
        if command.heredoc is not None and not MARKS.isdisjoint(command.heredoc):
            # Besides substitutions it holds variables, or texts that are judged as such.
            self._inputs.extend(command.nested)
            if VARIABLE in command.heredoc and not command.nested:
                self._settings.setdefault(_INPUT, []).append(_Setting((Word(UNKNOWN),)))
        if any(re.match(r"-[0rtpxo]*a|--arg-file", value) for value in values[1:]):
            self._inputs.append(None)

    # --- sources ------------------------------------------------------------------------------------------------------

    def _is_set(self, source: str) -> bool:
        return source in (_ALL, _INPUT) or source.startswith("(") or base_name(source) in self._settings

    def _of_source(self, source: str) -> Trouble | None:
        """Return the trouble with a variable, with the script's input (`_INPUT`) or with everything (`_ALL`)."""
        if source in self._found:
            return self._found[source]
        self._found[source] = None  # Ends the recursion for a variable that depends on itself.
        # A part of a value (`${x%/*}`) may be a name that the value itself is not.
        base = base_name(source)
        if base != source:
            is_cut = base in self._settings
            self._found[source] = Trouble("a part of a variable's value", is_sure=False) if is_cut else None
            return self._found[source]
        if source == _ALL:
            every = (*self._settings, *self._outputs, _INPUT)
            trouble = _worst(self._of_source(name) for name in list(every))
        elif source == _INPUT:
            trouble = _worst(self._of_output(one) for one in list(self._inputs))
        elif source in self._outputs:
            trouble = _worst(self._of_output(one) for one in self._outputs[source])
        else:
            trouble = _worst(self._of_setting(setting) for setting in self._settings.get(source, ()))
        self._found[source] = trouble
        return trouble

    def _of_setting(self, setting: _Setting) -> Trouble | None:
        if setting.is_unknown:
            return Trouble("a variable that the script assembles", is_sure=False)
        if setting.from_input:
            return self._of_source(_INPUT)
        return _worst(self._of_value(word) for word in setting.words)

    def _of_value(self, word: Word) -> Trouble | None:
        if has_glob(word) and self._widens:
            return Trouble("a pattern that may match hidden names", is_sure=False)
        if MARKS.isdisjoint(word.value):
            values = self._expander.expand(word, self._path_lookup.workspace, {}) if has_glob(word) else (word.value,)
            for value in values:
                if value and (why := self._path_lookup.why_protected(self._path_lookup.look(value))):
                    return Trouble(f"{value}: {why}", is_sure=True)
            return None
        return _worst(self._of_source(source) for source in _sources_of(word, _ALL))

    def _why_assembled(self, path: str, *, handed: bool) -> Trouble | None:
        """Return the trouble with a path whose components mix known and unknown text."""
        for component in path.split("/"):
            if UNKNOWN in component and may_mean_protected(component.replace(UNKNOWN, "*")):
                return Trouble(f"{component.replace(UNKNOWN, '…')} may become a protected name", is_sure=False)
            if handed and component.count(UNKNOWN) > 1 and not component.strip(UNKNOWN):
                return Trouble("a name that the script assembles", is_sure=False)
        return None

    # --- output of commands -------------------------------------------------------------------------------------------

    def _of_output(self, statement: Statement | None) -> Trouble | None:
        if statement is None:
            return Trouble("the contents of a file", is_sure=False)
        self._looks_left -= 1
        if self._looks_left < 0:
            return Trouble("the output of too many commands", is_sure=False)
        while isinstance(statement, Subshell):
            statement = statement.body
        if isinstance(statement, Pipeline):
            return self._of_pipeline(statement.parts)
        if isinstance(statement, SimpleCommand):
            return self._of_command(statement, Cut())
        inside = [part for part in walk_statements(statement, is_same_shell=True) if part is not statement]
        printing = (part for part in inside if isinstance(part, (SimpleCommand, Pipeline)))
        # Parts of a pipeline are judged with their pipeline, not once more alone.
        piped = {id(one) for part in inside if isinstance(part, Pipeline) for one in walk_statements(part)}
        return _worst(
            self._of_pipeline(part.parts) if isinstance(part, Pipeline) else self._of_command(part, Cut())
            for part in printing
            if isinstance(part, Pipeline) or id(part) not in piped
        )

    def _of_pipeline(self, parts: Sequence[Statement]) -> Trouble | None:
        cut, is_changed = Cut(), False
        # Backwards from the last filter to the command that prints the names.
        for at in range(len(parts) - 1, -1, -1):
            part = parts[at]
            if not isinstance(part, SimpleCommand):
                return Trouble(_UNKNOWN_VALUE, is_sure=False) if is_changed else self._of_output(part)
            if at == 0:
                return self._of_command(part, cut, is_changed=is_changed)
            for words in self._known_words(part) or [(UNKNOWN,)]:
                if says_no_file(words):
                    return None
                if takes_first_field(words):
                    cut = Cut(up_to_colon=True)
                elif prints_fragments(words):
                    is_changed = True
                elif not (is_name_filter(words) or xargs_passes_names(part, words)):
                    return Trouble(
                        f"the output of `{words[0]}`" if is_known(words[0]) else _UNKNOWN_VALUE, is_sure=False
                    )
        return None

    def _of_command(self, command: SimpleCommand, cut: Cut, *, is_changed: bool = False) -> Trouble | None:
        if not command.words:
            return Trouble("the contents of a file", is_sure=False) if command.redirects else None
        step = self._steps.get(id(command))
        found: list[Trouble | None] = []
        for place in step.places if step else (None,):
            for words in self._expanded(command, step, place) or [(UNKNOWN,)]:
                if not is_known(words[0]):
                    found.append(Trouble(_UNKNOWN_VALUE, is_sure=False))
                elif says_no_file(words) or (is_changed and words[:2] in (("git", "rev-parse"), ("git", "describe"))):
                    continue
                elif is_changed:
                    found.append(Trouble(f"parts of what `{words[0]}` prints", is_sure=False))
                elif canonical_name(words[0]) in ("echo", "dirname", "basename") and not all(map(is_known, words)):
                    found += [self._of_value(word) for word in command.words[1:]]
                elif place is None:  # The command's working directory is unknown.
                    found.append(Trouble(f"the output of `{words[0]}` in an unknown directory", is_sure=False))
                else:
                    found.append(trouble_with(words, place, self._path_lookup, cut))
        return _worst(found)

    def _known_words(self, command: SimpleCommand) -> list[tuple[str, ...]]:
        step = self._steps.get(id(command))
        return self._expanded(command, step, step.places[0] if step and step.places else None)

    def _expanded(self, command: SimpleCommand, step: ScriptStep | None, place: str | None) -> list[tuple[str, ...]]:
        bindings: Bindings = step.bindings if step else dict[str, tuple[str, ...]]()
        turns = single_bindings(bindings, command.words) or [bindings]
        words = (
            tuple(value for word in command.words for value in self._expander.expand(word, place, turn))
            for turn in turns
        )
        return [one for one in words if one]


def _sources_of(word: Word, without_text: str) -> Iterator[str]:
    """Yield the names of a word's sources, for the parts that only the running shell knows."""
    yield from (variable.name for variable in word.variables)
    if VARIABLE in word.value and not word.variables:
        yield without_text
    elif UNKNOWN in word.value:
        if not word.text or word.text == "{}":
            yield without_text
            return
        for name in _NAME.findall(word.text):
            yield _ALL if name in "0123456789@*" else name
        yield from (f"{name}%" for name in _OPERATED.findall(word.text))


def _worst(found: Iterable[Trouble | None]) -> Trouble | None:
    trouble: Trouble | None = None
    for one in found:
        if one is not None and (trouble is None or (one.is_sure and not trouble.is_sure)):
            trouble = one
    return trouble


def _may_read(statement: Statement, functions: set[str]) -> bool:
    """True if a part of a pipeline may take names from its input."""
    if not isinstance(statement, SimpleCommand):
        return True
    if canonical_name(statement.name) in _TAKES_INPUT or statement.name in functions or not statement.words:
        return True
    wrapping = unwrap(statement)
    return wrapping is not None
