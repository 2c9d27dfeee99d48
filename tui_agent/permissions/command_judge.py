"""Judges a shell command: every simple command in it, and in what it runs, by all the checks; the strictest decides.

No check ends the others: a command that a rule allows is still looked at for where it writes, what it sets and what it
hides. Whatever could not be read with certainty is left to a person in every mode and under every rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tui_agent.protocol.permissions import PermissionDecision, PermissionMode

from .brought_programs import brought_program
from .called_effects import Effects
from .command_doubts import Doubts, Given
from .command_findings import InPlace, Looks, PathFindings, Permit
from .command_pattern import command_patterns
from .command_views import command_view, is_harmless_setting, is_own_variable, without_expansion
from .find_reach import handing_on
from .listed_names import Listing, found_names, listed_names
from .path_judge import PathJudge
from .path_resolution import links_stay_inside
from .plain_output import may_list_anything
from .read_only_check import own_name, read_only_use
from .read_only_feeding import found_words, splits_by_zeros, takes_more
from .read_only_options import Use
from .repository_settings import starts_programs
from .rule_book import CommandView, Ruling
from .script_variables import NUMBER, REVISION, is_told
from .shell_effects import effects_of, wrapper_effects
from .shell_expansion import WORDS, Bindings, Expander, Listed, has_glob, single_bindings
from .shell_flow import Places, Step, steps_of
from .shell_reader import read_script
from .shell_syntax import (
    UNKNOWN,
    VARIABLE,
    Definition,
    ForEach,
    Oddity,
    Pipeline,
    SimpleCommand,
    Statement,
    Word,
)
from .shell_wrappers import Inner, Wrapping, braced, unwrap
from .source_words import sources_of
from .verdicts import Finding, PartFindings, by_mode, by_rule, decision_of, invalid

MAX_DEPTH = 6
"""Deepest nesting of commands inside commands (`sh -c`, `env`, `xargs`) that is followed."""
MAX_PARTS = 2_000
"""Most parts that are judged one by one."""
MAX_WORDS = 5_000
"""Most words of one command after expansion."""
_BRACKETS = ("[", "[[")
"""Names of commands that look like the beginning of a pattern."""
_OPTION_SIGNS = ("-", "(", ")", "!", ",")
"""What begins an option, or an operator of `find`."""
MAX_SHOWN = 4_000
"""Longest text of a part that is shown, in letters."""


class CommandJudge:
    """Judges commands for one workspace."""

    def __init__(self, paths: PathJudge, *, is_trusted: bool = True, note: str = "") -> None:
        """
        Args:
            paths: judges the paths they touch.
            is_trusted: whether the workspace's repository may be looked at by git without a question.
            note: how commands run, for the trace.
        """
        self._paths = paths
        self._is_trusted = is_trusted
        self._note = note

    def judge(self, tool: str, command: str, mode: PermissionMode, trace: list[str]) -> PermissionDecision:
        """The decision on one command; never raises.

        Args:
            tool: the name that rules know the shell by.
            command: byte for byte as it would run.
            mode: the mode in force.
            trace: gets a line for every rule and check.
        """
        if "\x00" in command or any("\ud800" <= letter <= "\udfff" for letter in command):
            return invalid("the command holds characters that no command can have", trace)
        trace += [self._note] if self._note else []
        case = _Case(self._paths, tool, mode, trace, is_trusted=self._is_trusted)
        statement = read_script(command)
        case.run(statement, (self._paths.book.workspace,), 0, None)
        if not case.parts:
            return PermissionDecision(
                decision="allow", source="read_only", reason="there is nothing to run", trace=tuple(trace)
            )
        decision = decision_of(case.parts, trace, case.targets)
        if decision.decision == "allow" and any(part.deciding.source != "read_only" for part in case.parts):
            case.look_at_repositories()
            return decision_of(case.parts, trace, case.targets)
        return decision


@dataclass(frozen=True, slots=True)
class _Task:
    """One simple command to be judged."""

    step: Step
    command: SimpleCommand
    depth: int
    vouch: Permit | None
    """What already allows it."""
    takes: Literal["nothing", "files", "paths", "lines"] = "nothing"
    """What stands for its unknown words, if a wrapper gives it some."""
    outer: SimpleCommand | None = None
    """The command that runs it."""
    is_written: bool = True
    """Its name stands in the script, and is not what the shell makes of braces."""


class _Case:
    """One judgement: everything that is found on the way through one command."""

    def __init__(
        self, paths: PathJudge, tool: str, mode: PermissionMode, trace: list[str], *, is_trusted: bool
    ) -> None:
        self.parts: list[PartFindings] = []
        self.targets: list[str] = []
        self._repositories: dict[str, str] = {}
        self.expander = Expander()
        self._paths = paths
        self._rules = paths.rules
        self._tool = tool
        self._is_trusted = is_trusted
        self._mode = mode
        self._trace = trace
        self._looks = Looks()
        self._forbids_any = self._rules.forbids_any(tool)
        self._doubts = Doubts(paths, tool, self.expander)

    def run(self, script: Statement, places: Places, depth: int, vouch: Permit | None) -> None:
        """Judges a script that starts in one of `places`; `vouch` is what already allows all of it."""
        self._doubts.hear(script)
        for step in steps_of(script, places, self.expander):
            if len(self.parts) >= MAX_PARTS:
                self._note("", [self._unreadable(f"there are more than {MAX_PARTS} parts")])
                return
            match step.command:
                case SimpleCommand():
                    self._command(_Task(step, step.command, depth, vouch))
                case Oddity():
                    self._oddity(step.command, vouch)
                case Definition():
                    self._other(step.command.text, "defining a function", vouch)
                case ForEach():
                    self._loop(step, step.command, vouch)

    def look_at_repositories(self) -> None:
        """Judges git commands that only read once more, because others run beside them: a command that does not only
        read runs without what protects git from a repository's settings."""
        for repository, text in self._repositories.items():
            if setting := starts_programs(repository, is_protected=False):
                self._trace.append(f"git: beside other commands, this may start a program: {setting}")
                what = f"`{_short(text)}`, for which the repository may start a program,"
                self._note(text, [by_mode(self._mode, "effect", what)])

    # --- pieces that are no commands ----------------------------------------------------------------------------------

    def _oddity(self, oddity: Oddity, vouch: Permit | None) -> None:
        self._trace.append(f"shell: {oddity.reason}")
        if oddity.unreadable:
            self._note(oddity.text, [self._unreadable(oddity.reason)])
        elif self._forbids_any:
            reason = f"{oddity.reason}, and rules forbid some commands"
            self._note(oddity.text, [Finding("ask", "floor", reason), by_mode(self._mode, "effect", oddity.text)])
        else:
            self._other(oddity.text, f"`{_short(oddity.text)}` ({oddity.reason})", vouch)

    def _other(self, text: str, what: str, vouch: Permit | None) -> None:
        """Something that only a rule for everything, or the mode, can allow."""
        view = CommandView(text, text)
        ruling = self._rules.on_command(self._tool, view, self._trace)
        permit = self._permit(ruling, view) or vouch
        found = by_rule(ruling)
        if found and found.decision != "allow":
            self._note(text, [found])
        elif permit and permit.reach == "everything" and self._mode is not PermissionMode.PLAN:
            self._note(text, [permit.finding])
        else:
            self._note(text, [by_mode(self._mode, "effect", what)])

    def _loop(self, step: Step, loop: ForEach, vouch: Permit | None) -> None:
        """The variable that a loop sets, and the names that its words show."""
        if not is_own_variable(loop.variable):
            self._other(loop.text, f"setting {loop.variable}", vouch)
        self.expander.take_listed()
        for place in step.places:
            for word in loop.words or ():
                self.expander.expand(word, place, step.bindings)
        nothing_else = Finding("allow", "read_only", "it only reads, and inside the workspace")
        found = PathFindings(self._paths, self._mode, self._trace, vouch, nothing_else, self._looks)
        found.of_listing(self._listed(loop.words or (), loop.nested, step.bindings))
        if any(finding.decision != "allow" for finding in found.findings):
            self.targets.extend(found.targets)
            self._note(loop.text, found.findings)

    def _unreadable(self, reason: str) -> Finding:
        if self._mode in (PermissionMode.DENY, PermissionMode.PLAN):
            return by_mode(self._mode, "effect", f"a command that cannot be read with certainty ({reason})")
        return Finding("ask", "floor", f"it cannot be read with certainty: {reason}")

    # --- simple commands ----------------------------------------------------------------------------------------------

    def _command(self, task: _Task) -> None:
        command = braced(task.command)
        wrapping = unwrap(command)
        view = command_view(command)
        ruling = self._rules.on_command(self._tool, view, self._trace)
        permit = self._permit(ruling, view) or task.vouch
        in_places = [found for place in task.step.places for found in self._in_place(command, wrapping, place, task)]
        is_harmless = is_harmless_setting(command)
        is_brought = any(self._is_brought(command, place) for place in task.step.places)
        is_reading = is_harmless and not is_brought and all(found.use is not None for found in in_places)
        by_words = self._by_words(command, wrapping, ruling, permit, is_reading=is_reading, is_brought=is_brought)
        if by_words.source == "read_only":
            self._repositories |= {
                self._paths.book.look(found.use.repository, found.directory).resolved: command.text
                for found in in_places
                if found.use is not None and found.use.repository is not None and found.directory is not None
            }
        paths = PathFindings(self._paths, self._mode, self._trace, permit, by_words, self._looks, [by_words])
        if permit and not permit.spells_assignments and not is_harmless:
            set_names = ", ".join(assignment.name for assignment in command.assignments)
            paths.findings.append(by_mode(self._mode, "effect", f"setting {set_names}"))
        if wrapping and wrapping.hidden:
            paths.findings.extend(self._on_hidden(wrapping, permit))
        if not is_reading and command.words:
            paths.of_assigned_programs(command.assignments)
            given = [Given(found.words, found.directory, found.effects) for found in in_places]
            paths.of_doubts(self._doubts.about(command, given, wrapping, task.step))
        if not is_reading:
            self._on_assignments(command, in_places, paths)
            self._on_handed_names(task, in_places, paths)
        self._on_paths(command, in_places, paths, task.step, is_reading=is_reading)
        self.targets.extend(paths.targets)
        self._note(command.text, paths.findings)
        if wrapping:
            self._inside(wrapping, command, ruling, permit, task)

    def _on_handed_names(self, task: _Task, in_places: Sequence[InPlace], paths: PathFindings) -> None:
        """What `find` hands on to a command that may change it counts as if `find` itself had it changed."""
        if task.outer is None or own_name(task.outer.name) != "xargs" or task.step.fed_by is None:
            return
        for found in in_places:
            for command in _fed_from(task.step.fed_by):
                if command.name == "find" and found.directory is not None:
                    words = self._plain_words(command, found.directory, task.step.bindings)
                    search = handing_on(words) if words else ()
                    paths.of_search(Effects(search=search), found.directory)

    def _on_assignments(self, command: SimpleCommand, in_places: Sequence[InPlace], paths: PathFindings) -> None:
        for found in in_places:
            for assignment in command.assignments:
                if command.words or assignment.name.startswith("GIT_"):
                    values = self.expander.assigned(assignment.value, found.directory, found.bindings)
                    paths.of_assignment(assignment.name, values, found.directory)

    def _is_brought(self, command: SimpleCommand, place: str | None) -> bool:
        """Whether its name means a program that the workspace brings, which may do anything."""
        program = brought_program(command.name, self._paths.book.workspace, place) if command.words else None
        if program is not None:
            self._trace.append(f"programs: {command.name} would come from the workspace, as {program}")
        return program is not None

    def _permit(self, ruling: Ruling, view: CommandView) -> Permit | None:
        """What a rule allows, and how far that reaches."""
        found = by_rule(ruling)
        if found is None or found.decision != "allow" or ruling.rule is None:
            return None
        if ruling.rule.pattern is None:
            return Permit(found, "everything", spells_assignments=True)
        patterns = command_patterns(ruling.rule.pattern)
        if any(pattern.is_everything for pattern in patterns):
            return Permit(found, "everything", spells_assignments=True)
        exact = [pattern for pattern in patterns if pattern.is_exact]
        spells = any(pattern.match(view.with_assignments) for pattern in exact)
        is_exact = spells or any(pattern.match(view.words) for pattern in exact)
        return Permit(found, "command" if is_exact else "words", spells)

    def _by_words(
        self,
        command: SimpleCommand,
        wrapping: Wrapping | None,
        ruling: Ruling,
        permit: Permit | None,
        *,
        is_reading: bool,
        is_brought: bool,
    ) -> Finding:
        found = by_rule(ruling)
        is_plain = is_harmless_setting(command) and not is_brought
        is_transparent = wrapping is not None and wrapping.is_transparent and is_plain
        if found and found.decision != "allow":
            return found
        if self._mode is PermissionMode.PLAN and not is_reading and not is_transparent:
            return by_mode(self._mode, "effect", f"`{_short(command.text)}`")
        if permit:
            return permit.finding
        if is_reading:
            self._trace.append(f"read-only: `{_short(command.text)}` only reads")
            return Finding("allow", "read_only", "it only reads, and inside the workspace")
        if is_transparent:
            return Finding("allow", "read_only", "what it runs decides")
        return by_mode(self._mode, "effect", f"`{_short(command.text)}`")

    def _on_hidden(self, wrapping: Wrapping, permit: Permit | None) -> list[Finding]:
        if self._forbids_any:
            return [Finding("ask", "floor", f"{wrapping.hidden}, and rules forbid some commands")]
        if permit and not (permit.covers_words or wrapping.vouches or wrapping.runs_file):
            return [by_mode(self._mode, "effect", f"what is inside: {wrapping.hidden}")]
        return []

    def _in_place(
        self, command: SimpleCommand, wrapping: Wrapping | None, place: str | None, task: _Task
    ) -> list[InPlace]:
        """The command in one directory: once for each value that the script's variables may have."""
        bindings = _told(command, task.step.bindings)
        turns = single_bindings(bindings, command.words)
        if turns is not None:
            return [self._in_turn(command, wrapping, place, task, turn, ()) for turn in turns]
        several = [name for name, values in bindings.items() if len(values) > 1]
        return [self._in_turn(command, wrapping, place, task, bindings, several)]

    def _in_turn(
        self,
        command: SimpleCommand,
        wrapping: Wrapping | None,
        place: str | None,
        task: _Task,
        bindings: Bindings,
        several: Sequence[str],
    ) -> InPlace:
        self.expander.take_listed()
        expanded = self._expanded(command, place, bindings)
        seen = self._listed(command.words, command.nested, bindings)
        if expanded is None:
            return InPlace(place, (), None, Effects(), listed=seen, bindings=bindings)
        words = tuple(word for group in expanded for word in group)
        known: Sequence[str] | None = words
        listed = [
            at
            for at, word in enumerate(command.words)
            if word.variables
            and (any(variable.name in several for variable in word.variables) or _is_list(word, bindings))
        ]
        if task.takes == "files":
            known = found_words(words) if _is_given_as_found(command) else None
        elif task.takes in ("paths", "lines"):
            known, listed = self._fed(command, expanded, listed, place, task)
        use = Use() if not command.words else read_only_use(known, command) if known else None
        if use is not None and listed:
            use = _with_bare(use, [word for group in expanded[: listed[0]] for word in group])
        if use is not None and use.follows_links and not self._follows_inside(use, place):
            use = None
        if use is not None and use.repository is not None and self._starts_programs(use.repository, place):
            use = None
        if use is not None and (not task.is_written or self._becomes_another(task.command, command, place, bindings)):
            use = None
        own = self._own_words(words, command, wrapping, place, bindings)
        effects = effects_of(words, command) if own is words else wrapper_effects(own)
        return InPlace(place, words, use, effects, own, seen, bindings)

    def _own_words(
        self,
        words: tuple[str, ...],
        command: SimpleCommand,
        wrapping: Wrapping | None,
        place: str | None,
        bindings: Bindings,
    ) -> tuple[str, ...]:
        """The words that tell what a command does by itself; what it runs is judged by itself, too."""
        if wrapping is None or not wrapping.own:
            return words
        if wrapping.is_transparent:
            return ()
        own = self._expanded(replace(command, words=wrapping.own), place, bindings) or ()
        return tuple(word for group in own for word in group)

    def _listed(self, words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> Listed:
        """The directories that the expansion of these words lists, since it was asked last."""
        listed = self.expander.take_listed()
        unsure = [word for word in words if (word.variables or word.live) and not is_told(word, bindings)]
        return replace(listed, is_certain=listed.is_certain and not may_list_anything(unsure, nested, bindings))

    def _fed(
        self,
        command: SimpleCommand,
        expanded: list[tuple[str, ...]],
        listed: list[int],
        place: str | None,
        task: _Task,
    ) -> tuple[list[str] | None, list[int]]:
        """The words of a command behind `xargs` with the names that it may get, and where these begin."""
        listing = self._listing(place, task)
        if listing is None:
            return None, listed
        known: list[str] = []
        for at, group in enumerate(expanded):
            for word in group:
                if UNKNOWN in word:
                    if not _takes(listing, word, is_last=at == len(expanded) - 1):
                        return None, listed
                    listed = [*listed, at]
                    is_found = task.takes == "paths" and command.words[at].text == "{}"
                    known.extend(name if is_found else word.replace(UNKNOWN, name) for name in listing.names)
                else:
                    known.append(word)
        return known, sorted(listed)

    def _listing(self, place: str | None, task: _Task) -> Listing | None:
        """The names that stand for a command's unknown words."""
        if place is None or task.outer is None:
            return None
        if task.takes == "paths":
            words = self._plain_words(task.outer, place, task.step.bindings)
            return found_names(words, place) if words else None
        by_zeros = splits_by_zeros(task.outer)
        if task.step.fed_by is None or by_zeros is None:
            return None
        listing = listed_names(task.step.fed_by, lambda fed: self._plain_words(fed, place, task.step.bindings), place)
        return listing if listing is not None and listing.by_zeros == by_zeros else None

    def _plain_words(self, command: SimpleCommand, place: str, bindings: Bindings) -> list[str] | None:
        turns = single_bindings(bindings, command.words)
        if turns is None or len(turns) != 1:
            return None
        return [value for word in command.words for value in self.expander.expand(word, place, bindings)]

    def _follows_inside(self, use: Use, place: str | None) -> bool:
        trees = [self._paths.book.look(tree, place) for tree in use.trees]
        return all(facts.is_inside and links_stay_inside(facts.resolved) for facts in trees)

    def _becomes_another(
        self, written: SimpleCommand, command: SimpleCommand, place: str | None, bindings: Bindings
    ) -> bool:
        """Whether the command's name, or one of its options, is not written as the shell passes it on: what follows it
        in the script, and what an option runs, was read from what is written."""
        name = written.words[0] if written.words else None
        if name and (name != command.words[0] or (has_glob(name) and name.value not in _BRACKETS)):
            return True
        is_find = command.name.endswith("find")
        patterns = (word for word in command.words if has_glob(word) or (is_find and word.variables))
        return any(
            value[:1] in _OPTION_SIGNS for word in patterns for value in self.expander.expand(word, place, bindings)
        )

    def _starts_programs(self, repository: str, place: str | None) -> bool:
        """Whether a repository's own settings may make git start programs while it looks: in a folder that is not
        trusted they are not even read."""
        if not self._is_trusted:
            self._trace.append("git: this folder is not trusted, and git would apply its repository's settings")
            return True
        if place is None and not repository.startswith("/"):
            self._trace.append("git: it is not certain in which repository it looks")
            return True
        setting = starts_programs(self._paths.book.look(repository, place).resolved)
        if setting is not None:
            self._trace.append(f"git: the repository's own settings may start a program: {setting}")
        return setting is not None

    def _expanded(self, command: SimpleCommand, place: str | None, bindings: Bindings) -> list[tuple[str, ...]] | None:
        """What the shell would pass on for each word; None if there is too much."""
        words = command.words
        if command.name == "[[":
            words = tuple(without_expansion(word) for word in words)
        groups: list[tuple[str, ...]] = []
        count = 0
        for word in words:
            groups.append(self.expander.expand(word, place, bindings))
            count += len(groups[-1])
            if count > MAX_WORDS:
                return None
        return groups

    def _on_paths(
        self, command: SimpleCommand, in_places: list[InPlace], paths: PathFindings, step: Step, *, is_reading: bool
    ) -> None:
        for found in in_places:
            if is_reading and found.use is not None:
                paths.of_reading(found.use, found.directory)
            else:
                paths.of_effects(found.effects, found.directory)
                paths.of_secrets(found.words, found.directory)
                paths.of_sources(sources_of(found.own), found.effects.code, found.directory)
            expanded = [
                (redirect, self.expander.expand(redirect.target, found.directory, found.bindings))
                for redirect in command.redirects
            ]
            paths.of_redirects(expanded, found.directory)
            paths.of_listing(found.listed)
            paths.of_search(found.effects, found.directory)
        if not is_reading and any(found.effects.writes for found in in_places):
            paths.of_patterns(command.words)

    # --- commands inside commands -------------------------------------------------------------------------------------

    def _inside(
        self, wrapping: Wrapping, command: SimpleCommand, ruling: Ruling, permit: Permit | None, task: _Task
    ) -> None:
        if task.depth >= MAX_DEPTH:
            self._note(command.text, [self._unreadable("commands are nested too deeply in one another")])
            return
        step = task.step
        for inner in wrapping.inners:
            speaks = permit is not None and self._speaks_for(permit, ruling, wrapping, inner)
            vouch = replace(permit, spells_assignments=True) if permit and speaks else None
            moved = replace(step, command=inner.command, places=_moved(inner, step.places))
            is_written = task.is_written and all(word in task.command.words for word in inner.command.words[:1])
            self._command(_Task(moved, inner.command, task.depth + 1, vouch, inner.takes, command, is_written))
        for script in wrapping.scripts:
            speaks = permit is not None and (permit.covers_words or wrapping.is_meant)
            self.run(read_script(script), step.places, task.depth + 1, permit if speaks else None)

    def _speaks_for(self, permit: Permit, ruling: Ruling, wrapping: Wrapping, inner: Inner) -> bool:
        """Whether what allows a wrapper is meant to allow what it runs, too."""
        if permit.covers_words or wrapping.vouches:
            return True
        if ruling.rule is None or ruling.rule.pattern is None:
            return False
        return any(pattern.spelled_words > inner.at for pattern in command_patterns(ruling.rule.pattern))

    def _note(self, text: str, findings: Sequence[Finding]) -> None:
        self.parts.append(PartFindings(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…", tuple(findings)))


def _told(command: SimpleCommand, bindings: Bindings) -> Bindings:
    """The bindings with something in place of what is only known to be a revision or a number, for a command that
    takes neither for a path."""
    kinds = {"git": (REVISION, NUMBER), "[": (NUMBER,), "test": (NUMBER,), "[[": (NUMBER,)}.get(command.name, ())
    if not kinds:
        return bindings
    told = {
        name.removesuffix(kind) + words: values
        for name, values in bindings.items()
        for kind in kinds
        if name.endswith(kind)
        for words in ("", WORDS)
    }
    return {**bindings, **told} if told else bindings


def _is_list(word: Word, bindings: Bindings) -> bool:
    """Whether a word becomes a list of which not every part need be there."""
    if word.value != VARIABLE or not word.variables or word.variables[0].quoted:
        return False
    name = word.variables[0].name
    return name + WORDS in bindings and name + REVISION not in bindings and name + NUMBER not in bindings


def _fed_from(statement: Statement) -> tuple[SimpleCommand, ...]:
    """The simple commands whose output may come through a pipe."""
    match statement:
        case SimpleCommand():
            return (statement,)
        case Pipeline(parts=parts):
            return tuple(command for part in parts for command in _fed_from(part))
        case _:
            return ()


def _is_given_as_found(command: SimpleCommand) -> bool:
    """Whether what `find` comes upon stands in no word together with anything else, which would name another file."""
    return all(word.text == "{}" for word in command.words if UNKNOWN in word.value)


def _takes(listing: Listing, word: str, *, is_last: bool) -> bool:
    """Whether a word of a command behind `xargs` can only become what is listed."""
    return (word == UNKNOWN and is_last) or not listing.on_one_line


def _with_bare(use: Use, words: list[str]) -> Use | None:
    """What a command reads that may get all of a list or nothing; None if a part of the list could mean more."""
    if not takes_more(words):
        return None
    bare = read_only_use(words, SimpleCommand("", ()))
    return replace(use, paths=(*use.paths, *bare.paths), trees=(*use.trees, *bare.trees)) if bare else None


def _moved(inner: Inner, places: Places) -> Places:
    """Where the inner command runs."""
    if inner.directory is None:
        return places
    value = inner.directory.value
    if not inner.directory.is_fixed:
        return (None,)
    return tuple(value if value.startswith("/") else place and f"{place}/{value}" for place in places)


def _short(text: str) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= 120 else line[:117] + "…"
