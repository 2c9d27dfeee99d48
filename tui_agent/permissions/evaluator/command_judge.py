"""Decision on a shell command. Every simple command, nested ones included, passes all checks; the strictest decides.

No check ends the others: a command that a rule allows is still checked for its targets, its variables and its nested
commands. In every mode and under every rule, the user decides about text that could not be read with certainty.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.catalogue import canonical_name, writer
from tui_agent.permissions.commands.consequences import (
    MAY_CHANGE,
    NETWORK_CODE,
    consequences_of,
    runs_input,
    sorted_consequences,
)
from tui_agent.permissions.commands.workspace_programs import workspace_program
from tui_agent.permissions.commands.wrappers import RUNS_INPUT, InnerCommand, Wrapping, expand_command_braces, unwrap
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.rules.command_pattern import command_patterns
from tui_agent.permissions.rules.normalized_argv import is_harmless_setting, is_script_variable, normalize_command
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
    Finding,
    PartFindings,
    decision_of,
    finding_for_mode,
    finding_for_rule,
    invalid,
)
from tui_agent.protocol.permissions import NO_CONTAINMENT, Containment, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Accesses

from .command_accesses import AccessCollector
from .execution_contexts import ExecutionContexts, Task
from .opaque_command_checks import LocatedCommand, OpaqueCommandChecks
from .path_checks import AllowScope, EarlierChanges, ExecutionContext, Looks, PathChecks, UnknownTargets
from .repository_settings import find_program_setting
from .script_strings import assigned_names, may_evaluate_strings
from .script_variables import walk_statements
from .shell_flow import PossibleDirectories, ScriptStep, script_steps, widens_patterns

MAX_DEPTH = 6
"""Maximum nesting of commands inside commands (`sh -c`, `env`, `xargs`)."""
MAX_PARTS = 2_000
"""Maximum number of parts judged separately."""
MAX_SHOWN = 4_000
"""Maximum length of a part's displayed text, in characters."""

_MAKES_NO_TREE = names("[ [[ cat chgrp chmod chown echo mkdir printf rm rmdir sed tee test touch truncate unlink")
"""Commands that make nothing below their targets."""
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
            is_trusted: True if git may look at the workspace's repository without a question.
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
        case = _Case(self._paths, "", PermissionMode.ASK, [], is_trusted=self._is_trusted, unknown_targets="sandbox")
        case.accesses = AccessCollector(command, self._paths.path_lookup, case.expander)
        case.run(read_script(command), (self._paths.path_lookup.workspace,), 0, None)
        case.check_across_parts()
        return None if case.is_confined else case.accesses.accesses()

    def judge(
        self,
        tool: str,
        command: str,
        mode: PermissionMode,
        trace: list[str],
        containment: Containment = NO_CONTAINMENT,
    ) -> PermissionDecision:
        """Decide one command; never raises.

        Args:
            tool: the name of the shell tool in rules.
            command: byte for byte as it would run.
            mode: the mode in force.
            trace: gets a line for every rule and check.
            containment: the sandbox that this command can run in.
        """
        if _NOT_IN_COMMANDS.search(command) is not None:
            return invalid("the command contains characters that no command can contain", trace)
        unknown_targets: UnknownTargets = "sandbox" if containment.is_available else self._unknown_targets
        case = _Case(self._paths, tool, mode, trace, is_trusted=self._is_trusted, unknown_targets=unknown_targets)
        statement = read_script(command)
        case.run(statement, (self._paths.path_lookup.workspace,), 0, None)
        case.check_across_parts()
        if case.is_confined and case.writes_outside and not containment.confines_all:
            case.keep_out_of_sandbox()
        if not case.parts:
            return PermissionDecision(
                decision="allow", source="read_only", reason="there is nothing to run", trace=tuple(trace)
            )
        decision = case.decision()
        # Beside a command that is not read-only, git runs in the user's environment, without its protection.
        if decision.decision == "allow" and any(part.deciding.source != "read_only" for part in case.parts):
            case.look_at_repositories()
            decision = case.decision()
        # Also for an `ask`: an approval does not let a command with unknown targets out of the sandbox.
        is_confined = case.is_confined or (case.is_confined_by_grant and not case.writes_outside)
        return decision.model_copy(update={"confinement": containment.words}) if is_confined else decision


class _Case:
    """Findings of one decision, collected along the way."""

    def __init__(
        self,
        paths: PathJudge,
        tool: str,
        mode: PermissionMode,
        trace: list[str],
        *,
        is_trusted: bool,
        unknown_targets: UnknownTargets,
    ) -> None:
        self.parts: list[PartFindings] = []
        self.targets: list[str] = []
        self.is_confined = False
        """True if a part has unknown targets and may therefore only run in the sandbox."""
        self.is_confined_by_grant = False
        """True if a grant spells out a part with unknown targets."""
        self.writes_outside = False
        """True if a part certainly changes a file outside the workspace, which the sandbox prevents."""
        self.accesses: AccessCollector | None = None
        """Collects the paths of all commands, if they are wanted."""
        self._earlier = EarlierChanges()
        self._changing: list[tuple[str, PathChecks, Sequence[ExecutionContext]]] = []
        """Texts of the parts that are not read-only, with the checks of their paths."""
        self._assigned: dict[str, list[Word | None]] = {}
        """Values that the script gives its variables; None for one that is not literal."""
        self._is_remote = False
        """True while the commands are those of another machine."""
        self._repeats = False
        """True if a part may run again after a later one."""
        self._repositories: dict[str, str] = {}
        self.expander = Expander()
        self._paths = paths
        self._rules = paths.rules
        self._tool = tool
        self._mode = mode
        self._trace = trace
        self._contexts = ExecutionContexts(paths, self.expander, trace, is_trusted=is_trusted)
        self._unknown_targets: UnknownTargets = unknown_targets
        self._looks = Looks()
        self._forbids_any = self._rules.forbids_any(tool)
        self._opaque_checks = OpaqueCommandChecks(paths, tool, self.expander)
        self._widens_patterns = False

    def run(
        self, script: Statement, places: PossibleDirectories, depth: int, inherited_scope: AllowScope | None
    ) -> None:
        """Judge a script that starts in one of `places`; `inherited_scope` is a permission for all of it."""
        self._opaque_checks.add_script(script)
        steps = script_steps(script, places, self.expander, "runs" if depth else "")
        everything = tuple(walk_statements(script))
        self._widens_patterns = self._widens_patterns or widens_patterns(everything)
        kinds = set(map(type, everything))
        self._repeats = self._repeats or not kinds.isdisjoint((ForEach, Branches, Definition))
        for name, value in assigned_names(everything):
            self._assigned.setdefault(name, []).append(value)
        if may_evaluate_strings(everything):
            self._unknown_commands("", "values of variables run as commands", inherited_scope)
        for step in steps:
            if len(self.parts) >= MAX_PARTS:
                self._note("", [self._unreadable(f"there are more than {MAX_PARTS} parts")])
                self._give_up_accesses()
                return
            match step.command:
                case SimpleCommand():
                    self._command(Task(step, step.command, depth, inherited_scope))
                case Unsupported():
                    self._give_up_accesses()
                    self._unsupported(step.command, inherited_scope, step.operator)
                case Definition():
                    self._give_up_accesses()
                    self._other(step.command.text, "defining a function", inherited_scope, step.operator)
                case ForEach():
                    if self.accesses is not None:
                        self.accesses.add_loop(step.command)
                    self._loop(step, step.command, inherited_scope)

    def _give_up_accesses(self) -> None:
        if self.accesses is not None:
            self.accesses.give_up()

    def decision(self) -> PermissionDecision:
        """Return the decision by all findings so far."""
        return decision_of(self.parts, self._trace, self.targets)

    def keep_out_of_sandbox(self) -> None:
        """Ask, because the sandbox would refuse or discard a part's changes."""
        self.is_confined = False
        reason = "tui-agent cannot determine all its targets, and the sandbox changes nothing outside the workspace"
        self._note("", [Finding("ask", "floor", reason)])

    def check_across_parts(self) -> None:
        """Judge links and copies, now that all parts are known.

        Other parts may change a file through a link to it, and the parts of a loop run again.
        """
        for text, paths, contexts in self._changing if len(self._changing) > 1 else ():
            paths.findings.clear()
            paths.check_links()
            for found in contexts if self._repeats else ():
                paths.check_copies(found.invocation, found.directory)
            self._keep(text, paths)

    def look_at_repositories(self) -> None:
        """Judge read-only git commands again because other commands run beside them.

        Only a fully read-only command line runs with the environment that protects git from a repository's settings.
        """
        for repository, text in self._repositories.items():
            if setting := find_program_setting(repository, is_protected=False):
                self._trace.append(f"git: beside other commands, this may start a program: {setting}")
                what = f"`{_short(text)}`, for which the repository may start a program,"
                self._note(text, [finding_for_mode(self._mode, "effect", what)])

    # --- parts other than simple commands -----------------------------------------------------------------------------

    def _unsupported(self, unsupported: Unsupported, inherited_scope: AllowScope | None, operator: str) -> None:
        self._trace.append(f"shell: {unsupported.reason}")
        if unsupported.unreadable:
            self._note(unsupported.text, [self._unreadable(unsupported.reason)], operator)
        elif self._forbids_any:
            # The construct may run a forbidden command under any name.
            reason = f"{unsupported.reason}, and rules forbid some commands"
            self._note(
                unsupported.text,
                [Finding("ask", "floor", reason), finding_for_mode(self._mode, "effect", unsupported.text)],
                operator,
            )
        else:
            what = f"`{_short(unsupported.text)}` ({unsupported.reason})"
            self._other(unsupported.text, what, inherited_scope, operator)

    def _other(self, text: str, what: str, inherited_scope: AllowScope | None, operator: str) -> None:
        """Judge a part that only the mode, or a rule for everything, can allow."""
        view = NormalizedCommand(text, text)
        ruling = self._rules.ruling_for_command(self._tool, view, self._trace)
        allow_scope = self._allow_scope(ruling, view) or inherited_scope
        found = finding_for_rule(ruling)
        if found and found.decision != "allow":
            self._note(text, [found], operator)
        elif allow_scope and allow_scope.reach == "everything" and self._mode is not PermissionMode.PLAN:
            self._note(text, [allow_scope.finding], operator)
        else:
            self._note(text, [finding_for_mode(self._mode, "effect", what)], operator)

    def _loop(self, step: ScriptStep, loop: ForEach, inherited_scope: AllowScope | None) -> None:
        """Judge a loop's variable and the names that its words list."""
        if not is_script_variable(loop.variable):
            self._other(loop.text, f"setting {loop.variable}", inherited_scope, step.operator)
        self.expander.take_listed_directories()  # Drops listings of earlier expansions.
        for place in step.places:
            for word in loop.words or ():
                self.expander.expand(word, place, step.bindings)
        nothing_else = Finding("allow", "read_only", "it only reads, and only inside the workspace")
        found = self._path_checks(inherited_scope, nothing_else)
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
        command = expand_command_braces(task.command)
        wrapping = unwrap(command)
        view = normalize_command(command)
        ruling = self._rules.ruling_for_command(self._tool, view, self._trace)
        allow_scope = self._allow_scope(ruling, view) or task.inherited_scope
        get = self._contexts.contexts_for
        contexts = [found for place in task.step.places for found in get(command, wrapping, place, task)]
        is_harmless = is_harmless_setting(command)
        is_workspace_program = any(self._is_workspace_program(command, place) for place in task.step.places)
        is_reading = is_harmless and not is_workspace_program and all(found.is_reading for found in contexts)
        if self.accesses is not None:
            is_plain = is_harmless and not is_workspace_program
            self.accesses.add_command(command, wrapping, contexts, task.step.bindings, is_plain=is_plain)
        known = () if is_reading else _consequences(command, contexts, task.step, runs_project=is_workspace_program)
        by_words = self._by_words(
            command,
            wrapping,
            ruling,
            allow_scope,
            is_reading=is_reading,
            is_workspace_program=is_workspace_program,
            consequences=known,
        )
        if by_words.source == "read_only":
            self._repositories |= dict.fromkeys(_repositories_read(self._paths, contexts), command.text)
        paths = self._path_checks(allow_scope, by_words)
        paths.findings.append(by_words)
        if allow_scope and not allow_scope.spells_assignments and not is_harmless:
            set_names = ", ".join(assignment.name for assignment in command.assignments)
            paths.findings.append(finding_for_mode(self._mode, "effect", f"setting {set_names}"))
        if allow_scope and not allow_scope.covers_words and not is_reading:
            paths.findings.extend(self._on_words_to_spell(command, contexts, allow_scope))
        if wrapping and wrapping.hidden:
            paths.findings.extend(self._on_hidden(wrapping, allow_scope))
        named = self._named_by_variable(command, task.step.bindings) if task.depth < MAX_DEPTH else None
        if not is_reading and not self._is_remote and (named == () or _runs_unknown(command, wrapping, task)):
            paths.check_unknown_commands("files of commands that only the running shell knows")
        if not is_reading and command.words:
            paths.check_assigned_programs(command.assignments)
            given = [LocatedCommand(found.words, found.directory, found.invocation) for found in contexts]
            paths.add_reasons_to_ask(self._opaque_checks.about(command, given, wrapping, task.step))
        if not is_reading:
            self._on_assignments(command, contexts, paths)
        self._on_paths(command, contexts, paths, task.step, is_reading=is_reading)
        self._keep(command.text, paths, task.step.operator, known)
        # A variable without a value leaves its arguments as the command, so they are judged as such, too.
        for inner in named or ():
            self._command(Task(replace(task.step, operator="runs"), inner, task.depth + 1, None, is_written=False))
        if wrapping:
            self._inside(wrapping, command, ruling, allow_scope, task)
        if not is_reading or paths.targets:
            self._changing.append((command.text, paths, contexts))
            self._earlier.has_changed = True
            self._earlier.trees += paths.targets if canonical_name(command.name) not in _MAKES_NO_TREE else ()

    def _path_checks(self, allow_scope: AllowScope | None, by_words: Finding) -> PathChecks:
        return PathChecks(
            self._paths,
            self._mode,
            self._trace,
            allow_scope,
            by_words,
            self._looks,
            self._unknown_targets,
            self._earlier,
        )

    def _keep(self, text: str, paths: PathChecks, operator: str = "again", consequences: tuple[str, ...] = ()) -> None:
        """Keep the results of the checks of one part."""
        self.targets.extend(paths.targets)
        self.is_confined = self.is_confined or paths.is_confined
        self.is_confined_by_grant = self.is_confined_by_grant or paths.is_confined_by_grant
        self.writes_outside = self.writes_outside or paths.writes_outside
        if paths.findings:
            self._note(text, paths.findings, operator, consequences)

    def _unknown_commands(self, text: str, what: str, inherited_scope: AllowScope | None) -> None:
        """Judge commands that no part names."""
        found = finding_for_mode(self._mode, "effect", what)
        paths = self._path_checks(inherited_scope, inherited_scope.finding if inherited_scope else found)
        paths.check_unknown_commands(what)
        if self._forbids_any:
            paths.findings.append(Finding("ask", "floor", f"{what}, and rules forbid some commands"))
        self._keep(text, paths)

    def _on_assignments(self, command: SimpleCommand, contexts: Sequence[ExecutionContext], paths: PathChecks) -> None:
        for found in contexts:
            for assignment in command.assignments:
                # A bare assignment only sets a shell variable, but git reads a `GIT_*` that is exported already.
                if command.words or assignment.name.startswith("GIT_"):
                    values = self.expander.assigned(assignment.value, found.directory, found.bindings)
                    paths.check_assignment(assignment.name, values, found.directory)

    def _is_workspace_program(self, command: SimpleCommand, place: str | None) -> bool:
        """True if the command's name runs a program from the workspace, which may do anything."""
        program = workspace_program(command.name, self._paths.path_lookup.workspace, place) if command.words else None
        if program is not None:
            self._trace.append(f"programs: {command.name} would come from the workspace, as {program}")
        return program is not None

    def _allow_scope(self, ruling: Ruling, view: NormalizedCommand) -> AllowScope | None:
        """Return the permission that a rule gives, with its reach."""
        found = finding_for_rule(ruling)
        if found is None or found.decision != "allow" or ruling.rule is None:
            return None
        if ruling.rule.pattern is None:
            return AllowScope(found, "everything", spells_assignments=True)
        patterns = command_patterns(ruling.rule.pattern)
        if any(pattern.is_everything for pattern in patterns):
            return AllowScope(found, "everything", spells_assignments=True)
        exact = [pattern for pattern in patterns if pattern.is_exact]
        spells = any(pattern.match(view.with_assignments) for pattern in exact)
        is_exact = spells or any(pattern.match(view.words) for pattern in exact)
        spelled = frozenset(word for pattern in patterns for word in pattern.spelled)
        return AllowScope(found, "command" if is_exact else "words", spells, spelled)

    def _by_words(
        self,
        command: SimpleCommand,
        wrapping: Wrapping | None,
        ruling: Ruling,
        allow_scope: AllowScope | None,
        *,
        is_reading: bool,
        is_workspace_program: bool,
        consequences: tuple[str, ...],
    ) -> Finding:
        found = finding_for_rule(ruling)
        is_plain = is_harmless_setting(command) and not is_workspace_program
        is_transparent = wrapping is not None and wrapping.is_transparent and is_plain
        if found and found.decision != "allow":
            return found
        # Plan mode comes before permits: no rule may allow a change in it.
        if self._mode is PermissionMode.PLAN and not is_reading and not is_transparent:
            return finding_for_mode(self._mode, "effect", f"`{_short(command.text)}`")
        if allow_scope:
            return allow_scope.finding
        if is_reading:
            words = " ".join(word.text or word.value for word in command.words)
            beside = "; redirections and variables count separately" if words != command.text else ""
            self._trace.append(f"read-only: `{_short(words)}` only reads{beside}")
            return Finding("allow", "read_only", "it only reads, and only inside the workspace")
        if is_transparent:
            return Finding("allow", "read_only", "the command it runs decides")
        shown = f"`{_short(command.text)}`"
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
        found = dict.fromkeys(word for one in contexts for word in words_to_spell(one.words or written))
        for word in (word for word in found if word not in allow_scope.spelled):
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
        contexts: list[ExecutionContext],
        paths: PathChecks,
        step: ScriptStep,
        *,
        is_reading: bool,
    ) -> None:
        for found in contexts:
            if is_reading and found.invocation.reads is not None:
                paths.check_reads(found.invocation.reads, found.directory)
            else:
                paths.check_effects(found.invocation, found.directory)
                paths.check_secrets(found.words, found.directory)
                paths.check_sources(found.invocation, found.directory)
            expanded = [
                (redirect, self.expander.expand(redirect.target, found.directory, found.bindings))
                for redirect in command.redirects
            ]
            paths.check_redirects(expanded, found.directory)
            paths.check_listing(found.listed)
            paths.check_matches(found.invocation)
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
            speaks = allow_scope is not None and self._allows_inner(allow_scope, ruling, wrapping, inner)
            inherited_scope = replace(allow_scope, spells_assignments=True) if allow_scope and speaks else None
            moved = replace(step, command=inner.command, places=_moved(inner, step.places), operator="runs")
            is_written = task.is_written and all(word in task.command.words for word in inner.command.words[:1])
            self._command(Task(moved, inner.command, task.depth + 1, inherited_scope, inner.takes, command, is_written))
        was_remote, self._is_remote = self._is_remote, self._is_remote or wrapping.is_remote
        for script in wrapping.scripts:
            speaks = allow_scope is not None and (allow_scope.covers_words or wrapping.allows_scripts)
            self.run(read_script(script), step.places, task.depth + 1, allow_scope if speaks else None)
        self._is_remote = was_remote

    def _allows_inner(self, allow_scope: AllowScope, ruling: Ruling, wrapping: Wrapping, inner: InnerCommand) -> bool:
        """True if the permission for a wrapper also covers the command it runs."""
        if allow_scope.covers_words or wrapping.allows_inner:
            return True
        if ruling.rule is None or ruling.rule.pattern is None:
            return False
        return any(pattern.spelled_words > inner.at for pattern in command_patterns(ruling.rule.pattern))

    def _note(
        self, text: str, findings: Sequence[Finding], operator: str = "again", consequences: tuple[str, ...] = ()
    ) -> None:
        shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
        self.parts.append(PartFindings(shown, tuple(findings), consequences, operator))


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


def _moved(inner: InnerCommand, places: PossibleDirectories) -> PossibleDirectories:
    """Return the directories in which the inner command may run."""
    if inner.directory is None:
        return places
    value = inner.directory.value
    if not inner.directory.is_fixed:
        return (None,)
    return tuple(value if value.startswith("/") else place and f"{place}/{value}" for place in places)


def _repositories_read(paths: PathJudge, contexts: Iterable[ExecutionContext]) -> Iterator[str]:
    """Yield the directories in which a read-only git command looks for its repository."""
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
