"""Decision on a shell command. Every simple command, nested ones included, passes all checks; the strictest decides.

No check ends the others: a command that a rule allows is still checked for its targets, its variables and its nested
commands. In every mode and under every rule, the user decides about text that could not be read with certainty.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tui_agent.git.repository import DATA_VARIABLES, places_repository
from tui_agent.git.repository_safety import find_program_setting
from tui_agent.permissions.commands.analysis import may_run_input
from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.builtins import (
    DECLARATION_COMMANDS,
    changes_shell,
    declared_assignments,
    is_script_variable,
    sets_any,
    text_changes_shell,
)
from tui_agent.permissions.commands.catalogue import canonical_name, group, writer
from tui_agent.permissions.commands.wrappers import InnerCommand, Wrapping, has_shell_escape
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.rules.rule_coverage import AllowScope, allow_scope, spells_beyond, words_to_spell
from tui_agent.permissions.rules.rule_set import NormalizedCommand
from tui_agent.permissions.shell.expansion import OPEN, Bindings, Expander
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import (
    VARIABLE,
    Branches,
    Definition,
    ForEach,
    SimpleCommand,
    Unsupported,
    Word,
    names,
    walk_statements,
)
from tui_agent.permissions.verdicts import (
    MAY_CHANGE,
    NETWORK_CODE,
    Finding,
    PartFindings,
    consequences_of,
    decision_of,
    finding_for_mode,
    invalid,
    runs_input,
    sorted_consequences,
)
from tui_agent.protocol.permissions import NO_CONTAINMENT, Containment, PermissionDecision, PermissionMode
from tui_agent.protocol.shell_script import start_directory
from tui_agent.protocol.tool import Accesses

from .case_state import CaseState, ExecutionContext, UnknownTargets
from .command_accesses import accesses_of
from .execution_contexts import ExecutionContexts, Part, Task, may_get_options, runs_unknown
from .path_checks import PathChecks
from .shell_flow import PossibleDirectories, ScriptStep, script_steps, widens_patterns
from .suspicions import Suspicions, assigned_names, declares_array_again, may_evaluate_strings

MAX_DEPTH = 6
"""Maximum nesting of commands inside commands (`sh -c`, `env`, `xargs`)."""
MAX_PARTS = 200
"""Maximum number of parts judged separately; a part counts once for each directory in which it may run."""
MAX_SHOWN = 4_000
"""Maximum length of a part's displayed text, in characters."""

_CHANGES_SHELL = "files of commands after a change of the shell, or of a variable that they obey"
_MAKES_NO_TREE = names("[ [[ cat chgrp chmod chown echo mkdir printf rm rmdir sed tee test touch truncate unlink")
"""Commands that make nothing below their targets."""
_ONLY_READS = Finding("allow", "read_only", "it only reads, and only inside the workspace")
_PLAIN_COMMAND = re.compile(r"[\w./:=@%+, -]*\w[\w./:=@%+, -]*\Z", re.ASCII)
_NOT_IN_COMMANDS = re.compile("[\x00\ud800-\udfff]")


class CommandJudge:
    """Decides commands for one workspace."""

    def __init__(
        self, paths: PathJudge, *, is_trusted: bool = True, unknown_targets: Literal["ask", "allow"] = "ask"
    ) -> None:
        """
        Args:
            paths: judges the paths of a command.
            is_trusted: True if a command may look at the workspace's repository without a question.
            unknown_targets: the answer to a command whose targets tui-agent cannot determine, if it cannot run
                in the sandbox.
        """
        self._paths = paths
        self._unknown_targets: Literal["ask", "allow"] = unknown_targets
        self._is_trusted = is_trusted

    def accesses(self, command: str) -> Accesses | None:
        """Return the paths that a command reads and changes; None unless the list is certainly complete."""
        if _NOT_IN_COMMANDS.search(command) is not None:
            return None
        state = CaseState(self._paths, PermissionMode.ASK, [], "sandbox")
        case = _Case(state, "", is_trusted=self._is_trusted)
        case.run_whole(command)
        if state.is_confined or not case.only_commands:
            return None
        return accesses_of(command, case.commands, self._paths.path_lookup)

    def judge(
        self,
        tool: str,
        command: str,
        mode: PermissionMode,
        trace: list[str],
        containment: Containment = NO_CONTAINMENT,
    ) -> PermissionDecision:
        """Decide one command, byte for byte as it would run; never raises. `trace` gets a line for every check."""
        if _NOT_IN_COMMANDS.search(command) is not None:
            return invalid("the command contains characters that no command can contain", trace)
        unknown_targets: UnknownTargets = "sandbox" if containment.is_available else self._unknown_targets
        state = CaseState(self._paths, mode, trace, unknown_targets)
        case = _Case(state, tool, is_trusted=self._is_trusted)
        case.run_whole(command)
        if state.is_confined and state.writes_outside and not containment.confines_all:
            state.is_confined = False
            reason = "tui-agent cannot determine all its targets, and the sandbox changes nothing outside the workspace"
            case.note("", [Finding("ask", "floor", reason)])
        if not case.parts:
            case.note("", [Finding("allow", "read_only", "there is nothing to run")])
        decision = decision_of(case.parts, trace, case.targets)
        # Beside a command that is not read-only, nothing protects from a repository's settings.
        if decision.decision == "allow" and any(part.deciding.source != "read_only" for part in case.parts):
            case.look_at_repositories()
            decision = decision_of(case.parts, trace, case.targets)
        # Also for an `ask`: an approval does not let a command with unknown targets out of the sandbox.
        is_confined = state.is_confined or (state.is_confined_by_grant and not state.writes_outside)
        scripts = tuple(dict.fromkeys(case.scripts))
        return decision.model_copy(update={"scripts": scripts, "confinement": containment.words if is_confined else ""})


class _Case:
    """Findings of one decision, collected along the way."""

    def __init__(self, state: CaseState, tool: str, *, is_trusted: bool) -> None:
        self.parts: list[PartFindings] = []
        self.targets: list[str] = []
        self.scripts: list[str] = []
        """Files that its commands run or obey, as far as their words name them."""
        self.commands: list[Part] = []
        """Every simple command, nested ones included."""
        self.only_commands = True
        """False if the script has other parts, or more commands than are judged."""
        self._expander = Expander()
        self._state = state
        self._paths, self._rules = state.judge, state.judge.rules
        self._mode, self._trace, self._tool = state.mode, state.trace, tool
        self._changing: list[tuple[Part, PathChecks]] = []
        """The parts that are not read-only, with the checks of their paths."""
        self._assigned: dict[str, list[Word | None]] = {}
        """Values that the script gives its variables; None for one that is not literal."""
        self._judged = 0
        """Number of parts judged so far."""
        self._is_remote = False
        """True while the commands are those of another machine."""
        self._repeats = False
        """True if a part may run again after a later one."""
        self._widens_patterns = False
        self._repositories: dict[str, str] = {}
        self._contexts = ExecutionContexts(state, tool, self._expander, is_trusted=is_trusted)
        self._forbids_any = self._rules.forbids_any(tool)
        self._suspicions = Suspicions(state.judge, tool, self._expander)

    def run_whole(self, command: str) -> None:
        """Judge a whole command line, and what its parts do together."""
        self._run(command, (str(start_directory(Path(self._paths.path_lookup.workspace))),), 0, None)
        # Other parts may change a file through a link that one part makes, and the parts of a loop run again.
        for part, paths in self._changing if len(self._changing) > 1 else ():
            paths.findings.clear()
            paths.check_links()
            if canonical_name(part.command.name) != "mkdir":
                paths.check_repositories(makes_trees=_makes_trees(part))
            for found in part.contexts if self._repeats else ():
                paths.check_copies(found.invocation, found.directory)
            if self._repeats:
                paths.check_copied_links()
            self._keep(part.command.text, paths)
        uses_repository = any(canonical_name(part.command.name) in group("version_control") for part in self.commands)
        if uses_repository and any(sets_any(part.command, group("settings_homes")) for part in self.commands):
            self._unknown_effects(None, "files of programs in settings from another place")

    def look_at_repositories(self) -> None:
        """Judge commands that read repositories again because other commands run beside them.

        Only a fully read-only command line runs with the environment that protects from a repository's settings.
        """
        for repository, text in self._repositories.items():
            if setting := find_program_setting(repository, is_protected=False, is_open=self._paths.path_lookup.is_open):
                self._trace.append(f"repository: beside other commands, this may start a program: {setting}")
                what = f"`{_short(text)}`, for which the repository may start a program,"
                self.note(text, [self._by_mode(what)])

    def note(
        self, text: str, findings: Sequence[Finding], operator: str = "again", consequences: tuple[str, ...] = ()
    ) -> None:
        """Add a part with its findings."""
        shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
        self.parts.append(PartFindings(shown, tuple(findings), consequences, operator))

    def _keep(self, text: str, paths: PathChecks, operator: str = "again", consequences: tuple[str, ...] = ()) -> None:
        """Keep the results of the checks of one part."""
        self.targets.extend(paths.targets)
        if paths.findings:
            self.note(text, paths.findings, operator, consequences)

    def _by_mode(self, what: str, *, asks: str = "") -> Finding:
        return finding_for_mode(self._mode, "effect", what, asks=asks)

    # --- parts other than simple commands -----------------------------------------------------------------------------

    def _run(self, text: str, places: PossibleDirectories, depth: int, scope: AllowScope | None) -> None:
        """Judge a script that starts in one of `places`; `scope` is a permission for all of it."""
        script = read_script(text)
        steps = script_steps(script, places, self._expander, "runs" if depth else "")
        everything = tuple(walk_statements(script))
        self._suspicions.scripts.append(everything)
        self._widens_patterns = self._widens_patterns or widens_patterns(everything)
        self._repeats = self._repeats or any(isinstance(part, ForEach | Branches | Definition) for part in everything)
        for name, value in assigned_names(everything):
            self._assigned.setdefault(name, []).append(value)
        if may_evaluate_strings(everything) or declares_array_again(everything):
            self._unknown_effects(scope, "values of variables run as commands")
        for step in steps:
            self.only_commands = self.only_commands and isinstance(step.command, SimpleCommand)
            self._judged += len(step.places)
            if self._judged > MAX_PARTS:
                self.only_commands = False
                self.note("", [self._unreadable(f"there are more than {MAX_PARTS} parts")])
                return
            match step.command:
                case SimpleCommand():
                    self._command(Task(step, step.command, depth, scope))
                case ForEach():
                    self._loop(step, step.command, scope)
                case Unsupported():
                    self._unsupported(step, step.command, scope)
                case Definition():
                    self._other(step, "defining a function", scope)

    def _unsupported(self, step: ScriptStep, unsupported: Unsupported, scope: AllowScope | None) -> None:
        text, reason = unsupported.text, unsupported.reason
        self._trace.append(f"shell: {reason}")
        if not unsupported.unreadable and text_changes_shell(text):
            self._unknown_effects(scope, _CHANGES_SHELL, text)
        if unsupported.unreadable:
            self.note(text, [self._unreadable(reason)], step.operator)
        elif self._forbids_any:
            # The construct may run a forbidden command under any name.
            forbids = Finding("ask", "floor", f"{reason}, and rules forbid some commands")
            self.note(text, [forbids, self._by_mode(text)], step.operator)
        else:
            self._other(step, f"`{_short(text)}` ({reason})", scope)

    def _other(self, step: ScriptStep, what: str, inherited_scope: AllowScope | None) -> None:
        """Judge a part that only the mode, or a rule for everything, can allow."""
        view = NormalizedCommand(step.command.text, step.command.text)
        found = self._rules.judge_command(self._tool, view, self._trace)
        scope = allow_scope(found, view) or inherited_scope
        if found is None or found.decision == "allow":
            is_allowed = scope and scope.reach == "everything" and self._mode is not PermissionMode.PLAN
            found = scope.finding if scope and is_allowed else self._by_mode(what)
        self.note(step.command.text, [found], step.operator)

    def _loop(self, step: ScriptStep, loop: ForEach, scope: AllowScope | None) -> None:
        """Judge a loop's variable and the names that its words list."""
        if text_changes_shell(f"{loop.variable}=") or loop.variable in group("settings_homes"):
            self._unknown_effects(scope, _CHANGES_SHELL, loop.text)
        if not is_script_variable(loop.variable):
            self._other(step, f"setting {loop.variable}", scope)
        self._expander.take_listed_directories()  # Drops listings of earlier expansions.
        for place in step.places:
            for word in loop.words or ():
                self._expander.expand(word, place, step.bindings)
        found = PathChecks(self._state, scope, _ONLY_READS)
        found.check_listing(self._contexts.listed(loop.words or (), loop.nested, step.bindings))
        if any(finding.decision != "allow" for finding in found.findings):
            self._keep(loop.text, found, step.operator)

    def _unreadable(self, reason: str) -> Finding:
        if self._mode in (PermissionMode.DENY, PermissionMode.PLAN):
            return self._by_mode(f"a command that cannot be read with certainty ({reason})")
        return Finding("ask", "floor", f"it is unclear what this command runs: {reason}")

    def _unknown_effects(self, scope: AllowScope | None, what: str, text: str = "") -> None:
        """Judge a part after which only the running shell knows which commands run."""
        paths = PathChecks(self._state, scope, scope.finding if scope else self._by_mode(what))
        paths.check_unknown(what)
        if self._forbids_any:
            paths.findings.append(Finding("ask", "floor", f"{what}, and rules forbid some commands"))
        self._keep(text, paths)

    # --- simple commands ----------------------------------------------------------------------------------------------

    def _command(self, task: Task) -> None:
        part = self._contexts.part(task)
        command, step, is_reading = part.command, task.step, part.is_reading
        self.commands.append(part)
        self.scripts += () if is_reading else self._contexts.scripts_of(part)
        known = () if is_reading else _consequences(part)
        by_words = self._by_words(part, known)
        if by_words.source == "read_only":
            self._repositories |= dict.fromkeys(_repositories_read(self._paths, part.contexts), command.text)
        paths = PathChecks(self._state, part.scope, by_words)
        paths.findings.append(by_words)
        if part.scope and not part.scope.spells_assignments and not part.is_harmless:
            set_names = ", ".join(assignment.name for assignment in command.assignments)
            paths.findings.append(self._by_mode(f"setting {set_names}"))
        if part.wrapping and part.wrapping.hidden:
            paths.findings.extend(self._on_hidden(part.wrapping, part.scope))
        named: tuple[SimpleCommand, ...] | None = None
        if not is_reading:
            named = self._named_by_variable(command, step.bindings) if task.depth < MAX_DEPTH else None
            self._on_effects(part, paths, is_open=named == ())
        self._on_paths(part, paths)
        if why := self._contexts.why_git_asks(part):
            paths.findings.append(
                Finding("ask", "floor", f"git may run a program of the repository, or read elsewhere: {why}")
            )
        self._keep(command.text, paths, step.operator, known)
        # A variable without a value leaves its arguments as the command, so they are judged as such, too.
        for inner in named or ():
            self._command(Task(replace(step, operator="runs"), inner, task.depth + 1, None, is_written=False))
        if part.wrapping:
            self._inside(part, part.wrapping)
        if not self._is_remote and changes_shell(command):
            self._unknown_effects(part.scope, _CHANGES_SHELL, command.text)
        if not is_reading or paths.targets:
            self._changing.append((part, paths))
            for found in part.contexts:
                paths.note_copies(found)
            self._state.has_changed = True
            name = canonical_name(command.name)
            makes_trees = _makes_trees(part) and not all(map(_only_rewrites, part.contexts))
            self._state.changed_trees += paths.targets if makes_trees else ()
            # What a compiler makes is not a script, and a copy is one only if the command line wrote it before.
            facts = writer(name)
            is_copy = facts is not None and facts.writes in ("LAST", "MOVE")
            is_build = name in group("named_by_operands") | group("version_control")
            if name == "tee" or (makes_trees and not is_build and (self._state.written or not is_copy)):
                self._state.written.update(paths.targets)

    def _by_words(self, part: Part, consequences: tuple[str, ...]) -> Finding:
        """Return the finding for a command's words."""
        command, found = part.command, part.ruling
        if found and found.decision != "allow":
            return found
        shown = f"`{_short(command.text)}`"
        # Plan mode comes before permits: no rule may allow a change in it.
        is_transparent = part.is_plain and part.wrapping is not None and part.wrapping.is_transparent
        if self._mode is PermissionMode.PLAN and not part.is_reading and not is_transparent:
            return self._by_mode(shown)
        if part.scope:
            return part.scope.finding
        if part.is_reading:
            words = " ".join(word.text or word.value for word in command.words)
            beside = "; redirections and variables count separately" if words != command.text else ""
            self._trace.append(f"read-only: `{_short(words)}` only reads{beside}")
            return _ONLY_READS
        if is_transparent:
            return Finding("allow", "read_only", "the command it runs decides")
        why = self._contexts.reasons.get(command.text) or ", ".join(consequences) or MAY_CHANGE
        return self._by_mode(shown, asks=f"{why}; no rule allows {shown}")

    def _on_effects(self, part: Part, paths: PathChecks, *, is_open: bool) -> None:
        """Judge the words, the hidden commands and the variables of a command that does not only read."""
        command, scope = part.command, part.scope
        if scope and not scope.covers_words:
            paths.findings.extend(self._on_words_to_spell(part, scope))
            for found in part.contexts if not self._is_remote else ():
                paths.check_places(found.own, found.directory)
            is_fed = part.is_fed or any(redirect.operator == "<" for redirect in command.redirects)
            if any(may_run_input(found.words, is_fed=is_fed) for found in part.contexts):
                paths.findings.append(self._by_mode(f"the input of `{_short(command.text)}`"))
        declared = (declared_assignments(command) or ()) if command.name in DECLARATION_COMMANDS else ()
        if self._forbids_any and any(one.name in ("BASH_ENV", "ENV") for one in (*command.assignments, *declared)):
            paths.findings.append(Finding("ask", "floor", "shells run a file of commands first, and rules forbid some"))
        fed = tuple(self._suspicions.programs_fed_to(part))
        runs_text = part.runs_written_shell or (command.words and has_shell_escape(command.words[0].value, fed))
        if self._forbids_any and runs_text:
            reason = "it runs shell commands that this command line writes, and rules forbid some commands"
            paths.findings.append(Finding("ask", "floor", reason))
        if not self._is_remote and (is_open or runs_text or runs_unknown(part)):
            paths.check_unknown("files of commands that only the running shell knows")
        if command.words and may_get_options(part):
            paths.check_unknown("what a word known only when it runs does as an option")
        if command.words:
            paths.check_assigned_programs(command.assignments)
            paths.add_reasons_to_ask(self._suspicions.about(part))
            paths.check_fed(fed)
        for found in part.contexts:
            for assignment in (*command.assignments, *(one for one in declared if one.name in DATA_VARIABLES)):
                # A bare assignment only sets a shell variable; programs read one that is exported already.
                if command.words or assignment.name in os.environ or places_repository(assignment.name):
                    values = self._expander.assigned(assignment.value, found.directory, found.bindings)
                    paths.check_assignment(assignment.name, values, found.directory)

    def _named_by_variable(self, command: SimpleCommand, bindings: Bindings) -> tuple[SimpleCommand, ...] | None:
        """Return the commands that a name in a variable of the script may mean; none if it may mean any other.

        None if the name is not a variable whose values the script sets.
        """
        name, *rest = command.words or (Word(""),)
        held = name.variables[0].name if name.value == VARIABLE and name.variables else ""
        known = bindings.get(held, OPEN)
        values = [Word(" ".join(known.texts))] if known.kind == "words" and known.texts else self._assigned.get(held)
        if values is None:
            return None
        texts = [value.value if value else "" for value in values]
        if not all(map(_PLAIN_COMMAND.match, texts)):
            return ()
        return tuple(SimpleCommand(command.text, (*map(Word, text.split()), *rest)) for text in dict.fromkeys(texts))

    def _on_words_to_spell(self, part: Part, scope: AllowScope) -> Iterator[Finding]:
        """Yield a finding for each word that a rule for the command covers only if it spells the word out."""
        written = [word.value for word in part.command.words]
        found = [
            word for one in part.contexts for word in words_to_spell(one.words or written, scope.spelled, scope.starts)
        ]
        for word in dict.fromkeys(found):
            if word not in scope.spelled:
                shown = f"`{_short(word)}`" if is_known(word) else "a word known only when the command runs"
                yield self._by_mode(f"{shown} in `{_short(part.command.text)}`")

    def _on_hidden(self, wrapping: Wrapping, scope: AllowScope | None) -> list[Finding]:
        if self._forbids_any:
            return [Finding("ask", "floor", f"{wrapping.hidden}, and rules forbid some commands")]
        if scope and not (scope.covers_words or wrapping.allows_inner or wrapping.runs_file):
            return [self._by_mode(f"the nested command: {wrapping.hidden}")]
        return []

    def _on_paths(self, part: Part, paths: PathChecks) -> None:
        command, is_reading = part.command, part.is_reading
        for found in part.contexts:
            if is_reading and found.invocation.reads is not None:
                paths.check_reads(found.invocation.reads, found.directory)
            else:
                paths.check_invocation(found)
            for redirect in command.redirects:
                targets = self._expander.expand(redirect.target, found.directory, found.bindings)
                paths.check_redirect(redirect, targets, found.directory, is_reading=is_reading)
            paths.check_listing(found.listed)
            if found.invocation.changes_matches:
                paths.check_unknown("the files that it finds")
        if not is_reading and any(found.invocation.writes for found in part.contexts):
            paths.check_patterns(part.task.command.words, fit_hidden=self._widens_patterns)
            facts = writer(canonical_name(command.name))
            if facts is not None and facts.writes in ("LAST", "MOVE"):
                for place in part.task.step.places:
                    paths.check_moved_patterns(command.words, place)

    def _inside(self, part: Part, wrapping: Wrapping) -> None:
        """Judge the commands that a command runs."""
        task, step, scope = part.task, part.task.step, part.scope
        if task.depth >= MAX_DEPTH:
            self.only_commands = False
            self.note(part.command.text, [self._unreadable("commands are nested too deeply in one another")])
            return
        for inner in wrapping.inner_commands:
            covers = wrapping.allows_inner or spells_beyond(part.ruling, inner.at)
            speaks = scope is not None and (scope.covers_words or covers)
            inherited_scope = replace(scope, spells_assignments=True) if scope and speaks else None
            moved = replace(step, command=inner.command, places=_moved(inner, step.places), operator="runs")
            is_written = task.is_written and all(word in task.command.words for word in inner.command.words[:1])
            self._command(
                Task(moved, inner.command, task.depth + 1, inherited_scope, inner.takes, part.command, is_written)
            )
        was_remote, self._is_remote = self._is_remote, self._is_remote or wrapping.is_remote
        for script in wrapping.scripts:
            speaks = scope is not None and (scope.covers_words or wrapping.allows_inner)
            self._run(script, step.places, task.depth + 1, scope if speaks else None)
        self._is_remote = was_remote


def _makes_trees(part: Part) -> bool:
    """True if a command may make something below its targets."""
    return canonical_name(part.command.name) not in _MAKES_NO_TREE


def _consequences(part: Part) -> tuple[str, ...]:
    """Return the known consequences of a command that does not only read, the worst first."""
    command, step = part.command, part.task.step
    words = next((found.words for found in part.contexts if found.words), [word.value for word in command.words])
    found = [*consequences_of(words, runs_project=part.is_own)]
    if runs_input(words):
        feeding = (*command.nested, *((step.fed_by,) if step.fed_by is not None else ()))
        inner = (part for statement in feeding for part in walk_statements(statement))
        if any(_fetches(part) for part in inner if isinstance(part, SimpleCommand)):
            found.append(NETWORK_CODE)
    return sorted_consequences(found)


def _fetches(command: SimpleCommand) -> bool:
    return "uses the network" in consequences_of([word.value for word in command.words])


def _only_rewrites(context: ExecutionContext) -> bool:
    """True if a command changes only the contents of files, as a formatter does."""
    writes = context.invocation.writes
    return bool(writes) and all(write.includes is not None for write in writes)


def _moved(inner: InnerCommand, places: PossibleDirectories) -> PossibleDirectories:
    """Return the directories in which the inner command may run."""
    if inner.directory is None:
        return places
    value = inner.directory.value
    if not inner.directory.is_fixed:
        return (None,)
    return tuple(value if value.startswith("/") else place and f"{place}/{value}" for place in places)


def _repositories_read(paths: PathJudge, contexts: Iterable[ExecutionContext]) -> Iterator[str]:
    """Yield the directories in which a read-only command looks for its repository."""
    for found in contexts:
        reads = found.invocation.reads
        if reads is not None and reads.repository is not None and found.directory is not None:
            yield paths.path_lookup.look(reads.repository, found.directory).resolved


def _short(text: str) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= 120 else line[:117] + "…"
