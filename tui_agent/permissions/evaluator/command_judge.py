"""Decision on a shell command. Every simple command, nested ones included, passes all checks; the strictest decides.

No check ends the others: a command that a rule allows is still checked for its targets, its variables and its nested
commands. In every mode and under every rule, the user decides about text that could not be read with certainty.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from tui_agent.permissions.commands.analysis import may_run_input
from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.catalogue import canonical_name, writer
from tui_agent.permissions.commands.wrappers import RUNS_INPUT, InnerCommand, Wrapping, expand_command_braces, unwrap
from tui_agent.permissions.evaluator.execution_contexts import workspace_program
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.paths.repository import find_program_setting, places_repository
from tui_agent.permissions.rules.normalized_argv import (
    DECLARATION_COMMANDS,
    declared_assignments,
    is_harmless_setting,
    is_script_variable,
    normalize_command,
)
from tui_agent.permissions.rules.patterns import command_patterns
from tui_agent.permissions.rules.rule_coverage import words_to_spell
from tui_agent.permissions.rules.rule_set import NormalizedCommand, Ruling
from tui_agent.permissions.shell.expansion import OPEN, WORDS, Bindings, Expander, is_computed_name
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import (
    PIPE,
    UNKNOWN,
    VARIABLE,
    Branches,
    Definition,
    ForEach,
    SimpleCommand,
    Statement,
    Unsupported,
    Word,
    names,
)
from tui_agent.permissions.verdicts import (
    MAY_CHANGE,
    NETWORK_CODE,
    Finding,
    PartFindings,
    consequences_of,
    decision_of,
    finding_for_mode,
    finding_for_rule,
    invalid,
    runs_input,
    sorted_consequences,
)
from tui_agent.protocol.permissions import NO_CONTAINMENT, Containment, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Accesses

from .command_accesses import AccessCollector
from .execution_contexts import ExecutionContexts, Task, with_changes
from .path_checks import AllowScope, CaseState, ExecutionContext, PathChecks, UnknownTargets
from .script_variables import walk_statements
from .shell_flow import PossibleDirectories, ScriptStep, script_steps, widens_patterns
from .suspicions import Suspicions, assigned_names, may_evaluate_strings

MAX_DEPTH = 6
"""Maximum nesting of commands inside commands (`sh -c`, `env`, `xargs`)."""
MAX_PARTS = 2_000
"""Maximum number of parts judged separately."""
MAX_SHOWN = 4_000
"""Maximum length of a part's displayed text, in characters."""

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
        """Return the paths that a command reads and changes; None unless the list is certainly complete.

        The decision does not need them, and collecting them costs lookups, so both are separate walks.
        """
        if _NOT_IN_COMMANDS.search(command) is not None:
            return None
        state = CaseState(self._paths, PermissionMode.ASK, [], "sandbox")
        case = _Case(state, "", is_trusted=self._is_trusted)
        case.accesses = AccessCollector(command, self._paths.path_lookup, case.expander)
        case.run_whole(command)
        return None if state.is_confined else case.accesses.accesses()

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
            case.keep_out_of_sandbox()
        if not case.parts:
            return PermissionDecision(
                decision="allow", source="read_only", reason="there is nothing to run", trace=tuple(trace)
            )
        decision = case.decision()
        # Beside a command that is not read-only, nothing protects from a repository's settings.
        if decision.decision == "allow" and any(part.deciding.source != "read_only" for part in case.parts):
            case.look_at_repositories()
            decision = case.decision()
        # Also for an `ask`: an approval does not let a command with unknown targets out of the sandbox.
        is_confined = state.is_confined or (state.is_confined_by_grant and not state.writes_outside)
        return decision.model_copy(update={"confinement": containment.words}) if is_confined else decision


class _Case:
    """Findings of one decision, collected along the way."""

    def __init__(self, state: CaseState, tool: str, *, is_trusted: bool) -> None:
        self.parts: list[PartFindings] = []
        self.targets: list[str] = []
        self.accesses: AccessCollector | None = None
        """Collects the paths of all commands, if they are wanted."""
        self.expander = Expander()
        self._state = state
        self._paths, self._rules = state.judge, state.judge.rules
        self._mode, self._trace, self._tool = state.mode, state.trace, tool
        self._changing: list[tuple[str, PathChecks, Sequence[ExecutionContext]]] = []
        """Texts of the parts that are not read-only, with the checks of their paths."""
        self._assigned: dict[str, list[Word | None]] = {}
        """Values that the script gives its variables; None for one that is not literal."""
        self._is_remote = False
        """True while the commands are those of another machine."""
        self._repeats = False
        """True if a part may run again after a later one."""
        self._widens_patterns = False
        self._repositories: dict[str, str] = {}
        self._contexts = ExecutionContexts(state.judge, self.expander, state.trace, is_trusted=is_trusted)
        self._forbids_any = self._rules.forbids_any(tool)
        self._suspicions = Suspicions(state.judge, tool, self.expander)

    def run_whole(self, command: str) -> None:
        """Judge a whole command line, and what its parts do together."""
        self.run(read_script(command), (self._paths.path_lookup.workspace,), 0, None)
        # Other parts may change a file through a link that one part makes, and the parts of a loop run again.
        for text, paths, contexts in self._changing if len(self._changing) > 1 else ():
            paths.findings.clear()
            paths.check_links()
            for found in contexts if self._repeats else ():
                paths.check_copies(found.invocation, found.directory)
            self._keep(text, paths)

    def run(self, script: Statement, places: PossibleDirectories, depth: int, scope: AllowScope | None) -> None:
        """Judge a script that starts in one of `places`; `scope` is a permission for all of it."""
        self._suspicions.add_script(script)
        steps = script_steps(script, places, self.expander, "runs" if depth else "")
        everything = tuple(walk_statements(script))
        self._widens_patterns = self._widens_patterns or widens_patterns(everything)
        self._repeats = self._repeats or any(isinstance(part, ForEach | Branches | Definition) for part in everything)
        for name, value in assigned_names(everything):
            self._assigned.setdefault(name, []).append(value)
        if may_evaluate_strings(everything):
            self._unknown_commands("", "values of variables run as commands", scope)
        for step in steps:
            if len(self.parts) >= MAX_PARTS:
                self._give_up_accesses()
                self._note("", [self._unreadable(f"there are more than {MAX_PARTS} parts")])
                return
            match step.command:
                case SimpleCommand():
                    self._command(Task(step, step.command, depth, scope))
                case ForEach():
                    self._loop(step, step.command, scope)
                case Unsupported():
                    self._unsupported(step.command, scope, step.operator)
                case Definition():
                    self._give_up_accesses()
                    self._other(step.command.text, "defining a function", scope, step.operator)

    def _give_up_accesses(self) -> None:
        if self.accesses is not None:
            self.accesses.give_up()

    def decision(self) -> PermissionDecision:
        """Return the decision by all findings so far."""
        return decision_of(self.parts, self._trace, self.targets)

    def keep_out_of_sandbox(self) -> None:
        """Ask, because the sandbox would refuse or discard a part's changes."""
        self._state.is_confined = False
        reason = "tui-agent cannot determine all its targets, and the sandbox changes nothing outside the workspace"
        self._note("", [Finding("ask", "floor", reason)])

    def look_at_repositories(self) -> None:
        """Judge commands that read repositories again because other commands run beside them.

        Only a fully read-only command line runs with the environment that protects from a repository's settings.
        """
        for repository, text in self._repositories.items():
            if setting := find_program_setting(repository, is_protected=False):
                self._trace.append(f"repository: beside other commands, this may start a program: {setting}")
                what = f"`{_short(text)}`, for which the repository may start a program,"
                self._note(text, [finding_for_mode(self._mode, "effect", what)])

    # --- parts other than simple commands -----------------------------------------------------------------------------

    def _unsupported(self, unsupported: Unsupported, scope: AllowScope | None, operator: str) -> None:
        self._give_up_accesses()
        text, reason = unsupported.text, unsupported.reason
        self._trace.append(f"shell: {reason}")
        if unsupported.unreadable:
            self._note(text, [self._unreadable(reason)], operator)
        elif self._forbids_any:
            # The construct may run a forbidden command under any name.
            forbids = Finding("ask", "floor", f"{reason}, and rules forbid some commands")
            self._note(text, [forbids, finding_for_mode(self._mode, "effect", text)], operator)
        else:
            self._other(text, f"`{_short(text)}` ({reason})", scope, operator)

    def _other(self, text: str, what: str, inherited_scope: AllowScope | None, operator: str) -> None:
        """Judge a part that only the mode, or a rule for everything, can allow."""
        view = NormalizedCommand(text, text)
        ruling = self._rules.ruling_for_command(self._tool, view, self._trace)
        scope = _allow_scope(ruling, view) or inherited_scope
        found = finding_for_rule(ruling)
        if found is None or found.decision == "allow":
            is_allowed = scope and scope.reach == "everything" and self._mode is not PermissionMode.PLAN
            found = scope.finding if scope and is_allowed else finding_for_mode(self._mode, "effect", what)
        self._note(text, [found], operator)

    def _loop(self, step: ScriptStep, loop: ForEach, scope: AllowScope | None) -> None:
        """Judge a loop's variable and the names that its words list."""
        if self.accesses is not None:
            self.accesses.add_loop(loop)
        if not is_script_variable(loop.variable):
            self._other(loop.text, f"setting {loop.variable}", scope, step.operator)
        self.expander.take_listed_directories()  # Drops listings of earlier expansions.
        for place in step.places:
            for word in loop.words or ():
                self.expander.expand(word, place, step.bindings)
        found = PathChecks(self._state, scope, _ONLY_READS)
        found.check_listing(self._contexts.listed(loop.words or (), loop.nested, step.bindings))
        if any(finding.decision != "allow" for finding in found.findings):
            self.targets.extend(found.targets)
            self._note(loop.text, found.findings, step.operator)

    def _unreadable(self, reason: str) -> Finding:
        if self._mode in (PermissionMode.DENY, PermissionMode.PLAN):
            return finding_for_mode(self._mode, "effect", f"a command that cannot be read with certainty ({reason})")
        return Finding("ask", "floor", f"it is unclear what this command runs: {reason}")

    # --- simple commands ----------------------------------------------------------------------------------------------

    def _command(self, task: Task) -> None:
        step, command = task.step, expand_command_braces(task.command)
        wrapping = unwrap(command)
        view = normalize_command(command)
        ruling = self._rules.ruling_for_command(self._tool, view, self._trace)
        scope = _allow_scope(ruling, view) or task.inherited_scope
        get = self._contexts.contexts_for
        contexts = [found for place in step.places for found in get(command, wrapping, place, task)]
        is_harmless = is_harmless_setting(command)
        is_own = any(self._is_workspace_program(command, place) for place in step.places)
        is_reading = is_harmless and not is_own and all(found.invocation.reads is not None for found in contexts)
        if not is_reading or (wrapping and wrapping.inner_commands):
            contexts = [with_changes(found, command) for found in contexts]
        if self.accesses is not None:
            is_plain = is_harmless and not is_own
            self.accesses.add_command(command, wrapping, contexts, step.bindings, is_plain=is_plain)
        known = () if is_reading else _consequences(command, contexts, step, runs_project=is_own)
        is_transparent = wrapping is not None and wrapping.is_transparent and is_harmless and not is_own
        by_words = self._by_words(command, ruling, scope, known, is_reading=is_reading, is_transparent=is_transparent)
        if by_words.source == "read_only":
            self._repositories |= dict.fromkeys(_repositories_read(self._paths, contexts), command.text)
        paths = PathChecks(self._state, scope, by_words)
        paths.findings.append(by_words)
        if scope and not scope.spells_assignments and not is_harmless:
            set_names = ", ".join(assignment.name for assignment in command.assignments)
            paths.findings.append(finding_for_mode(self._mode, "effect", f"setting {set_names}"))
        named: tuple[SimpleCommand, ...] | None = None
        if not is_reading:
            named = self._named_by_variable(command, step.bindings) if task.depth < MAX_DEPTH else None
            self._on_effects(command, wrapping, contexts, paths, task, is_open=named == ())
        elif wrapping and wrapping.hidden:
            paths.findings.extend(self._on_hidden(wrapping, scope))
        self._on_paths(command, contexts, paths, step, is_reading=is_reading)
        self._keep(command.text, paths, step.operator, known)
        # A variable without a value leaves its arguments as the command, so they are judged as such, too.
        for inner in named or ():
            self._command(Task(replace(step, operator="runs"), inner, task.depth + 1, None, is_written=False))
        if wrapping:
            self._inside(wrapping, command, ruling, scope, task)
        if not is_reading or paths.targets:
            self._changing.append((command.text, paths, contexts))
            self._state.has_changed = True
            makes_trees = canonical_name(command.name) not in _MAKES_NO_TREE and not all(map(_only_rewrites, contexts))
            self._state.changed_trees += paths.targets if makes_trees else ()

    def _on_effects(
        self,
        command: SimpleCommand,
        wrapping: Wrapping | None,
        contexts: Sequence[ExecutionContext],
        paths: PathChecks,
        task: Task,
        *,
        is_open: bool,
    ) -> None:
        """Judge the words, the hidden commands and the variables of a command that does not only read."""
        if paths.allow_scope and not paths.allow_scope.covers_words:
            paths.findings.extend(self._on_words_to_spell(command, contexts, paths.allow_scope))
            if any(may_run_input(found.words, command.heredoc, is_fed=task.step.is_fed) for found in contexts):
                paths.findings.append(finding_for_mode(self._mode, "effect", f"the input of `{_short(command.text)}`"))
        if wrapping and wrapping.hidden:
            paths.findings.extend(self._on_hidden(wrapping, paths.allow_scope))
        declared = (declared_assignments(command) or ()) if command.name in DECLARATION_COMMANDS else ()
        if self._forbids_any and any(one.name in ("BASH_ENV", "ENV") for one in (*command.assignments, *declared)):
            paths.findings.append(Finding("ask", "floor", "shells run a file of commands first, and rules forbid some"))
        if not self._is_remote and (is_open or _runs_unknown(command, wrapping, task)):
            paths.check_unknown("files of commands that only the running shell knows")
        if command.words:
            paths.check_assigned_programs(command.assignments)
            paths.add_reasons_to_ask(self._suspicions.about(command, contexts, wrapping, task.step))
        for found in contexts:
            for assignment in command.assignments:
                # A bare assignment only sets a shell variable; programs read one that is exported already.
                if command.words or _is_inherited(assignment.name):
                    values = self.expander.assigned(assignment.value, found.directory, found.bindings)
                    paths.check_assignment(assignment.name, values, found.directory)

    def _keep(self, text: str, paths: PathChecks, operator: str = "again", consequences: tuple[str, ...] = ()) -> None:
        """Keep the results of the checks of one part."""
        self.targets.extend(paths.targets)
        if paths.findings:
            self._note(text, paths.findings, operator, consequences)

    def _unknown_commands(self, text: str, what: str, scope: AllowScope | None) -> None:
        """Judge commands that no part names."""
        paths = PathChecks(self._state, scope, scope.finding if scope else finding_for_mode(self._mode, "effect", what))
        paths.check_unknown(what)
        if self._forbids_any:
            paths.findings.append(Finding("ask", "floor", f"{what}, and rules forbid some commands"))
        self._keep(text, paths)

    def _is_workspace_program(self, command: SimpleCommand, place: str | None) -> bool:
        """True if the command's name runs a program from the workspace, which may do anything."""
        program = workspace_program(command.name, self._paths.path_lookup.workspace, place) if command.words else None
        if program is not None:
            self._trace.append(f"programs: {command.name} would come from the workspace, as {program}")
        return program is not None

    def _by_words(
        self,
        command: SimpleCommand,
        ruling: Ruling,
        scope: AllowScope | None,
        consequences: tuple[str, ...],
        *,
        is_reading: bool,
        is_transparent: bool,
    ) -> Finding:
        found = finding_for_rule(ruling)
        if found and found.decision != "allow":
            return found
        shown = f"`{_short(command.text)}`"
        # Plan mode comes before permits: no rule may allow a change in it.
        if self._mode is PermissionMode.PLAN and not is_reading and not is_transparent:
            return finding_for_mode(self._mode, "effect", shown)
        if scope:
            return scope.finding
        if is_reading:
            words = " ".join(word.text or word.value for word in command.words)
            beside = "; redirections and variables count separately" if words != command.text else ""
            self._trace.append(f"read-only: `{_short(words)}` only reads{beside}")
            return _ONLY_READS
        if is_transparent:
            return Finding("allow", "read_only", "the command it runs decides")
        asks = f"{', '.join(consequences) or MAY_CHANGE}; no rule allows {shown}"
        return finding_for_mode(self._mode, "effect", shown, asks=asks)

    def _named_by_variable(self, command: SimpleCommand, bindings: Bindings) -> tuple[SimpleCommand, ...] | None:
        """Return the commands that a name in a variable of the script may mean; none if it may mean any other.

        None if the name is not a variable whose values the script sets.
        """
        name, *rest = command.words or (Word(""),)
        held = name.variables[0].name if name.value == VARIABLE and name.variables else ""
        words = bindings.get(held + WORDS)
        values = [" ".join(words)] if words else self._assigned.get(held)
        if values is None:
            return None
        known = [value if isinstance(value, str) else value.value if value else "" for value in values]
        if not all(map(_PLAIN_COMMAND.match, known)):
            return ()
        return tuple(SimpleCommand(command.text, (*map(Word, value.split()), *rest)) for value in dict.fromkeys(known))

    def _on_words_to_spell(
        self, command: SimpleCommand, contexts: Sequence[ExecutionContext], allow_scope: AllowScope
    ) -> Iterator[Finding]:
        """Yield a finding for each word that a rule for the command covers only if it spells the word out."""
        written = [word.value for word in command.words]
        spelled = allow_scope.spelled
        found = dict.fromkeys(word for one in contexts for word in words_to_spell(one.words or written, spelled))
        for word in (word for word in found if word not in spelled):
            shown = "a word known only when the command runs" if not is_known(word) else f"`{_short(word)}`"
            yield finding_for_mode(self._mode, "effect", f"{shown} in `{_short(command.text)}`")

    def _on_hidden(self, wrapping: Wrapping, allow_scope: AllowScope | None) -> list[Finding]:
        if self._forbids_any:
            return [Finding("ask", "floor", f"{wrapping.hidden}, and rules forbid some commands")]
        if allow_scope and not (allow_scope.covers_words or wrapping.allows_inner or wrapping.runs_file):
            return [finding_for_mode(self._mode, "effect", f"the nested command: {wrapping.hidden}")]
        return []

    def _on_paths(
        self,
        command: SimpleCommand,
        contexts: Sequence[ExecutionContext],
        paths: PathChecks,
        step: ScriptStep,
        *,
        is_reading: bool,
    ) -> None:
        for found in contexts:
            if is_reading and found.invocation.reads is not None:
                paths.check_reads(found.invocation.reads, found.directory)
            else:
                paths.check_invocation(found)
            for redirect in command.redirects:
                targets = self.expander.expand(redirect.target, found.directory, found.bindings)
                paths.check_redirect(redirect, targets, found.directory)
            paths.check_listing(found.listed)
            if found.invocation.changes_matches:
                paths.check_unknown("the files that it finds")
        if not is_reading and any(found.invocation.writes for found in contexts):
            paths.check_patterns(command.words, fit_hidden=self._widens_patterns)
            facts = writer(canonical_name(command.name))
            if facts is not None and facts.writes in ("LAST", "MOVE"):
                for place in step.places:
                    paths.check_moved_patterns(command.words, place)

    # --- commands inside commands -------------------------------------------------------------------------------------

    def _inside(
        self, wrapping: Wrapping, command: SimpleCommand, ruling: Ruling, allow_scope: AllowScope | None, task: Task
    ) -> None:
        if task.depth >= MAX_DEPTH:
            self._give_up_accesses()
            self._note(command.text, [self._unreadable("commands are nested too deeply in one another")])
            return
        step = task.step
        for inner in wrapping.inner_commands:
            speaks = allow_scope is not None and _allows_inner(allow_scope, ruling, wrapping, inner)
            inherited_scope = replace(allow_scope, spells_assignments=True) if allow_scope and speaks else None
            moved = replace(step, command=inner.command, places=_moved(inner, step.places), operator="runs")
            is_written = task.is_written and all(word in task.command.words for word in inner.command.words[:1])
            self._command(Task(moved, inner.command, task.depth + 1, inherited_scope, inner.takes, command, is_written))
        was_remote, self._is_remote = self._is_remote, self._is_remote or wrapping.is_remote
        for script in wrapping.scripts:
            speaks = allow_scope is not None and (allow_scope.covers_words or wrapping.allows_scripts)
            self.run(read_script(script), step.places, task.depth + 1, allow_scope if speaks else None)
        self._is_remote = was_remote

    def _note(
        self, text: str, findings: Sequence[Finding], operator: str = "again", consequences: tuple[str, ...] = ()
    ) -> None:
        shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
        self.parts.append(PartFindings(shown, tuple(findings), consequences, operator))


def _allow_scope(ruling: Ruling, view: NormalizedCommand) -> AllowScope | None:
    """Return the permission that a rule gives, with its reach."""
    found = finding_for_rule(ruling)
    if found is None or found.decision != "allow" or ruling.rule is None:
        return None
    patterns = command_patterns(ruling.rule.pattern) if ruling.rule.pattern is not None else ()
    if not patterns or any(pattern.is_everything for pattern in patterns):
        return AllowScope(found, "everything", spells_assignments=True)
    exact = [pattern for pattern in patterns if pattern.is_exact]
    spells = any(pattern.match(view.with_assignments) for pattern in exact)
    is_exact = spells or any(pattern.match(view.words) for pattern in exact)
    spelled = frozenset(word for pattern in patterns for word in pattern.spelled)
    return AllowScope(found, "command" if is_exact else "words", spells, spelled)


def _allows_inner(scope: AllowScope, ruling: Ruling, wrapping: Wrapping, inner: InnerCommand) -> bool:
    """True if the permission for a wrapper also covers the command it runs."""
    pattern = ruling.rule.pattern if ruling.rule is not None else None
    spells = (one.spelled_words > inner.at for one in command_patterns(pattern)) if pattern is not None else ()
    return scope.covers_words or wrapping.allows_inner or any(spells)


def _is_inherited(name: str) -> bool:
    """True if programs may read a variable that a script sets without exporting it."""
    return name in os.environ or places_repository(name) or name.startswith("HIST")


def _consequences(
    command: SimpleCommand,
    contexts: Sequence[ExecutionContext],
    step: ScriptStep,
    *,
    runs_project: bool,
) -> tuple[str, ...]:
    """Return the known consequences of a command that does not only read, the worst first."""
    words = next((found.words for found in contexts if found.words), [word.value for word in command.words])
    found = [*consequences_of(words, runs_project=runs_project)]
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
        if (
            found.invocation.reads is not None
            and found.invocation.reads.repository is not None
            and found.directory is not None
        ):
            yield paths.path_lookup.look(found.invocation.reads.repository, found.directory).resolved


def _runs_unknown(command: SimpleCommand, wrapping: Wrapping | None, task: Task) -> bool:
    """True if only the running shell knows a command that this one runs, or its own name."""
    bindings = task.step.bindings
    if wrapping is None or not wrapping.hidden:
        name = command.words[0] if command.words else Word("")
        return _is_computed(replace(name, value=name.value.rpartition("/")[2]), bindings)
    if wrapping.is_unknown:
        # A shell without a script reads its input, which is empty outside a pipe.
        is_fed = task.step.is_fed or (task.depth > 0 and task.outer is None)
        return wrapping.hidden != RUNS_INPUT or is_fed
    if wrapping.runs_file or wrapping.is_remote:
        return False
    return any(_is_computed(word, bindings) for word in command.words)


def _is_computed(word: Word, bindings: Bindings) -> bool:
    """True if the script computes a part of a word, which is not known. A variable of the environment is the user's."""
    if UNKNOWN in word.value or PIPE in word.value:
        return True
    held = [variable.name for variable in word.variables]
    if word.value.count(VARIABLE) > len(held):
        return True
    held = held if VARIABLE in word.value else []
    unknown = [name for name in held if name not in bindings and name + WORDS not in bindings]
    return any(name + OPEN in bindings for name in held) or any(map(is_computed_name, unknown))


def _short(text: str) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= 120 else line[:117] + "…"
