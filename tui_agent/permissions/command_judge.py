"""Decision on a shell command by its text: rules that forbid, allow rules on a plain line, the list of safe commands.

Whatever else a command may do is not guessed: it runs in a trial, or asks where none works.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

from tui_agent.permissions.path_judge import PathJudge
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import CommandSubject
from tui_agent.protocol.trial import Place, TrialFacts

from .commands.safe_commands import SafeRead, safe_read
from .commands.script_reader import UNKNOWN, Script, SimpleCommand, read_script
from .commands.wrappers import INTERPRETERS, OUTSIDE, base_name, consequences_of, inner_commands
from .rules.rule import Finding, PartFindings, decision_of, finding_for_mode, invalid

MAX_SHOWN = 4_000
MAX_PARTS = 200
MAX_PATHS = 100
"""Maximum number of words of a command that are compared with rules on paths."""

_PATH = re.compile(r"[\w./~+@-]*[\w~]")
_NOT_IN_COMMANDS = re.compile("[\x00\ud800-\udfff]")
_WITHOUT_TRIAL = "no rule allows `{}`"


@dataclass(slots=True)
class _Case:
    """Findings on the text of one command line."""

    command: str
    script: Script
    parts: list[PartFindings]
    forbidding: Finding | None
    """The strictest finding of the rules that forbid."""
    allowing: list[Finding | None]
    """For each command the finding that allows it; None if nothing does."""

    @property
    def is_allowed(self) -> bool:
        """True if every command is allowed, and at least one by a rule."""
        return self.is_safe and any(found and found.source != "read_only" for found in self.allowing)

    @property
    def is_safe(self) -> bool:
        """True if every command is allowed by a rule or only reads."""
        return all(found is not None for found in self.allowing)


class CommandJudge:
    """Decides commands for one workspace."""

    def __init__(self, paths: PathJudge, *, is_trusted: bool = True) -> None:
        self._paths = paths
        self._rules = paths.rules
        self._is_trusted = is_trusted

    def only_reads(self, command: str) -> bool:
        """True if a command is known to only read files of the workspace; never raises, and is False in doubt."""
        if _NOT_IN_COMMANDS.search(command):
            return False
        script = read_script(command)
        return script.is_plain and None not in self._safe(script, [])

    def judge(
        self, tool: str, subject: CommandSubject, mode: PermissionMode, facts: TrialFacts, trace: list[str]
    ) -> PermissionDecision:
        """Decide one command, byte for byte as it would run; never raises. `trace` gets a line for every check."""
        # Such a character is shown as nothing or as another one, so the user would approve another command.
        if _NOT_IN_COMMANDS.search(subject.command):
            return invalid("the command contains characters that no command can contain", trace)
        case = self._case(tool, subject.command, trace)
        found, place = self._decide(case, subject, mode, facts)
        trace.append(f"{found.decision}: {found.reason}")
        decision = decision_of(self._parts(case, found, mode) or [PartFindings("", (found,))], trace)
        update = {"decision": found.decision, "source": found.source, "reason": found.reason, "place": place}
        update |= {"rule": found.rule and found.rule.cited, "parts": decision.parts[:MAX_PARTS] if case.parts else ()}
        return decision.model_copy(update=update | self._bound(case))

    def _bound(self, case: _Case) -> dict[str, tuple[str, ...]]:
        """Return the files to which an approval is bound: targets of redirections, and programs and scripts by name."""
        commands = case.script.commands
        directories, scripts, targets = list[str | None]((None,)), list[str](), list[str]()
        look = self._paths.path_lookup.look
        for command in commands:
            # A redirection is the one change that the text shows for certain.
            targets += [word.value for word in command.targets]
            for argv in (command.argv, *inner_commands(command)):
                runs_file = argv[:1] and (base_name(argv[0]) in INTERPRETERS or base_name(argv[0]) == "make")
                # A program without a path is found by PATH, which is not this call's to answer for.
                scripts += [argv[0]] if argv and "/" in argv[0] else []
                scripts += [word for word in (*argv[1:], *targets) if not word.startswith("-")][:3] if runs_file else []
            if command.argv[:1] == ("cd",) and command.is_literal:
                directories += [look(word).resolved for word in command.argv[1:2]]
        found = [
            tuple(dict.fromkeys(look(word, top).resolved for word in words[:MAX_PATHS] for top in directories[:3]))
            for words in ([word for word in words if UNKNOWN not in word] for words in (scripts, targets))
        ]
        return {"scripts": tuple(filter(os.path.isfile, found[0])), "targets": found[1]}

    def _parts(self, case: _Case, found: Finding, mode: PermissionMode) -> list[PartFindings]:
        """Return the parts, each with its own finding: that of a rule or the safe list, else that of the whole line."""
        is_of_line = found.source in ("mode", "floor")
        other = found if is_of_line else finding_for_mode(mode, "effect", "it")
        # Each part alone would run; only the line as a whole is the reason to ask.
        if found.decision == "ask" and is_of_line and all(case.allowing):
            return [replace(part, findings=(found,)) for part in case.parts]
        pairs = zip(case.parts, case.allowing, strict=True)
        return [replace(part, findings=part.findings or (allowing or other,)) for part, allowing in pairs]

    def _case(self, tool: str, command: str, trace: list[str]) -> _Case:
        script = read_script(command)
        parts: list[PartFindings] = []
        allowing: list[Finding | None] = []
        forbidding: list[Finding] = []
        safe = self._safe(script, trace) if script.is_plain else [None] * len(script.commands)
        before: tuple[str, ...] = ()
        for one, reads in zip(script.commands, safe, strict=True):
            # `curl | sh` is dangerous although neither part is.
            piped = before if one.operator == "|" else ()
            found = self._rules.judge_command(tool, one, trace)
            found = self._strictest([*([found] if found else []), *self._forbidden_inside(tool, one, piped, trace)])
            is_allowed = found is not None and found.decision == "allow"
            allowing.append(found if is_allowed else None if found else reads)
            forbidding += [found] if found and not is_allowed else []
            dangers = consequences_of(one.argv, before=piped)
            dangers += (OUTSIDE,) if self._names_outside(one) else ()
            parts.append(PartFindings(one.text[:MAX_SHOWN], (found,) if found else (), dangers, one.operator))
            before = one.argv
        # Without such a rule an unread rest hides nothing that would matter: the trial is the wall.
        if not script.is_complete and self._rules.forbids_any(tool):
            reason = "a rule that forbids commands may apply: the command is too long or too deeply nested to read"
            forbidding.append(Finding("ask", "rule", reason))
        return _Case(command, script, parts, self._strictest(forbidding), allowing)

    def _forbidden_inside(
        self, tool: str, command: SimpleCommand, piped: Sequence[str], trace: list[str]
    ) -> Iterator[Finding]:
        # Looking through wrappers takes the most time, and only a rule that forbids needs it.
        if not self._rules.forbids_any(tool):
            return
        for argv in inner_commands(command, piped):
            if found := self._rules.forbid_command(tool, argv, trace):
                yield found

    def _decide(
        self, case: _Case, subject: CommandSubject, mode: PermissionMode, facts: TrialFacts
    ) -> tuple[Finding, Place]:
        """Return the decision on a whole command line, and its place."""
        leaves = subject.leaves_sandbox or subject.in_background
        forbidding = case.forbidding
        # First, so that neither mode nor place lifts a denial.
        if forbidding is not None and forbidding.decision == "deny":
            return forbidding, "nowhere"
        # The settings demand a trial: running outside after a yes would be what they rule out.
        if facts.place == "nowhere":
            problem = facts.problem or "no backend was found"
            return Finding("deny", "floor", f"commands must run in a trial, and none works here: {problem}"), "nowhere"
        if not facts.is_available:
            return self._without_trial(case, mode)
        if mode is PermissionMode.PLAN and (leaves or forbidding is not None):
            why = "this command would run outside of the trial" if leaves else forbidding and forbidding.reason
            return Finding("deny", "floor", f"{PLAN_MODE_DENIAL}: {why}"), "nowhere"
        if forbidding is not None:
            # What may match runs in the trial after a yes.
            is_certain = forbidding.rule is not None and forbidding.rule.verdict == "ask" and not forbidding.is_open
            return forbidding, "outside" if is_certain or leaves else facts.place
        stays = self._names_forbidden(case) is not None or self._is_distrusted_git(case)
        # Outside, no one would see which paths a command changes.
        stays_in = facts.setting == "required" or self._rules.denies_changes
        is_everything = mode is PermissionMode.ALLOW and not stays_in
        if is_everything and not stays:
            return finding_for_mode(mode, "effect", "every command"), "outside"
        if mode is not PermissionMode.PLAN and case.script.is_plain and case.is_allowed and not stays:
            return self._hardest(case), "outside"
        # It has left the trial's walls by its own wish, so the text alone has to justify it.
        if leaves:
            how = "" if subject.leaves_sandbox else "in the background, "
            asks = f"it runs {how}outside of the trial; no rule allows it"
            return finding_for_mode(_asking(mode), "effect", "it", asks=asks), "outside"
        return Finding("allow", "mode", facts.words), facts.place

    def _without_trial(self, case: _Case, mode: PermissionMode) -> tuple[Finding, Place]:
        """Return the decision where no trial works: the safe list and allow rules run, everything else asks."""
        named = self._names_forbidden(case)
        forbidding = self._strictest([one for one in (case.forbidding, named) if one is not None])
        if forbidding is not None and forbidding.decision == "deny":
            return forbidding, "nowhere"
        if mode is PermissionMode.PLAN and not (case.script.is_plain and self._only_safe(case)):
            return finding_for_mode(mode, "effect", "the command"), "nowhere"
        if forbidding is not None:
            return forbidding, "outside"
        if self._is_distrusted_git(case) and mode is not PermissionMode.DENY:
            asks = "git would apply the settings of this folder, which is not trusted, and may run its programs"
            return Finding("ask", "floor", asks), "outside"
        is_unbounded = bool(case.allowing) and all(
            found and found.rule and found.rule.is_unbounded for found in case.allowing
        )
        if case.is_safe and (case.script.is_plain or is_unbounded):
            return self._hardest(case), "outside"
        if mode is PermissionMode.ALLOW and (protected := self._names_protected(case)):
            return Finding("ask", "floor", protected), "outside"
        shown = next((part.text for part, ok in zip(case.parts, case.allowing, strict=True) if ok is None), "")
        asks = _WITHOUT_TRIAL.format(shown[:80]) if shown else "no rule allows this form of a command"
        found = finding_for_mode(mode, "effect", "it", asks=asks)
        return found, "nowhere" if found.decision == "deny" else "outside"

    # --- the safe list ---

    def _safe(self, script: Script, trace: list[str]) -> list[Finding | None]:
        """Return for each command of a plain line the finding that it only reads, or None."""
        found: list[Finding | None] = []
        directory: str | None = self._paths.path_lookup.roots.workspace
        for command, after in zip_longest(script.commands, script.commands[1:]):
            one = None
            if directory is not None and command.argv and not command.assignments:
                # In a pipeline `cd` runs in a shell of its own.
                is_piped = command.operator == "|" or (after is not None and after.operator == "|")
                if command.argv[0] == "cd" and not is_piped:
                    directory = self._entered(command.argv[1:], directory)
                    one = Finding("allow", "read_only", "it enters a directory of the workspace") if directory else None
                elif reads := safe_read(command.argv):
                    one = self._reading(reads, directory, trace)
            found.append(one)
        return found

    def _entered(self, operands: Sequence[str], directory: str) -> str | None:
        """Return the directory in the workspace that `cd` enters for certain, or None."""
        if len(operands) != 1 or operands[0].startswith(("-", "~")) or not operands[0]:
            return None
        facts = self._paths.path_lookup.look(operands[0], directory)
        is_there = facts.is_inside and facts.private is None and os.access(facts.resolved, os.X_OK)
        return facts.resolved if is_there and os.path.isdir(facts.resolved) else None

    def _reading(self, reads: SafeRead, directory: str, trace: list[str]) -> Finding | None:
        if reads.is_git and not self._is_trusted:
            return None
        for path in reads.paths:
            facts = self._paths.path_lookup.look(path, directory)
            intent = "search" if reads.is_tree else "read"
            if reads.is_file and os.path.isdir(facts.resolved):
                return None
            found = self._paths.reading(None, facts, intent, PermissionMode.ASK, trace, relaxed=True)
            if found.decision != "allow":
                return None
        return Finding("allow", "read_only", "it only reads, and only inside the workspace")

    def _is_distrusted_git(self, case: _Case) -> bool:
        """Return True for a command that names git in a folder that is not trusted: only an answer lets it outside."""
        if self._is_trusted:
            return False
        pairs = zip(case.script.commands, case.allowing, strict=True)
        # The safe list has uses of git that look at no repository.
        doubtful = (one for one, found in pairs if found is None or found.source != "read_only")
        argvs = (argv for one in doubtful for argv in (one.argv, *inner_commands(one)))
        return any(argv and base_name(argv[0]) == "git" for argv in argvs)

    # --- paths that its words name ---

    @staticmethod
    def _words(command: str, commands: Sequence[SimpleCommand]) -> Iterator[str]:
        """Yield the words, and the parts of words, that may be paths, at most `MAX_PATHS`."""
        words = (word.value for one in commands for word in (*one.words[1:], *one.targets, *one.assignments))
        values = (
            value for word in words for value in (word, word.rpartition("=")[2], word[2:] if word[:1] == "-" else "")
        )
        found = dict.fromkeys((*_PATH.findall(command), *values))
        return islice((one for one in found if one and UNKNOWN not in one and not one.startswith("-")), MAX_PATHS)

    def _names_forbidden(self, case: _Case) -> Finding | None:
        """Return the finding of a rule on paths that forbids a path which the words name, or None.

        Without it an allow rule or a mode would let a command change what `deny edit(…)` protects.
        """
        if not self._rules.forbids_paths:
            return None
        found: list[Finding] = []
        for word in self._words(case.command, case.script.commands):
            facts = self._paths.path_lookup.look(word)
            for intent in ("read", "write"):
                one = self._rules.judge_path(None, facts, intent, [], whole=True)
                # A word that looks like a secret file is not yet a read of it.
                if one is None or one.decision == "allow" or one.rule in self._rules.secrets:
                    continue
                # A command may only read what it must not change.
                is_change = intent == "write" and one.decision == "deny"
                asks = replace(one, decision="ask", reason=f"it may change {word}: {one.reason}")
                found.append(asks if is_change else one)
        return self._strictest(found)

    def _names_protected(self, case: _Case) -> str:
        lookup = self._paths.path_lookup
        named = ((word, lookup.look(word)) for word in self._words(case.command, case.script.commands))
        reasons = ((word, lookup.why_protected(facts) or lookup.why_lasting(facts)) for word, facts in named)
        return next((f"it may change {word}: {why}" for word, why in reasons if why), "")

    def _names_outside(self, command: SimpleCommand) -> bool:
        lookup = self._paths.path_lookup
        named = (word for word in self._words("", [command]) if word.startswith(("/", "~", "../")) or word == "..")
        return any(not (facts.is_inside or facts.is_device) for facts in map(lookup.look, named))

    # --- choice among findings ---

    @staticmethod
    def _strictest(findings: Sequence[Finding]) -> Finding | None:
        return max(findings, key=lambda one: ("allow", "ask", "deny").index(one.decision), default=None)

    @staticmethod
    def _only_safe(case: _Case) -> bool:
        return all(found is not None and found.source == "read_only" for found in case.allowing)

    @staticmethod
    def _hardest(case: _Case) -> Finding:
        found = [one for one in case.allowing if one is not None]
        order = ("read_only", "rule", "grant")
        nothing = Finding("allow", "read_only", "nothing runs")
        return max(found, key=lambda one: order.index(one.source), default=nothing)


def _asking(mode: PermissionMode) -> PermissionMode:
    """Return the mode that decides on a command outside of the trial: none lets it out where a trial is required."""
    return PermissionMode.ASK if mode is PermissionMode.ALLOW else mode
