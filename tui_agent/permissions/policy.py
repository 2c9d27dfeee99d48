"""The checker that every call passes: floor, rules, read-only relaxation, mode, in this order."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast, get_args

from tui_agent.protocol.errors import ConfigurationError, TuiAgentError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import (
    ChangesDecision,
    GrantScope,
    PermissionDecision,
    PermissionMode,
    as_permission_mode,
)
from tui_agent.protocol.tool import CommandSubject, PathSubject, Subject, Tool, UrlSubject
from tui_agent.protocol.trial import NO_TRIAL, ProposedChanges, TrialFacts
from tui_agent.protocol.value_checks import expect_choice, expect_flag, expect_function, expect_items, expect_kind
from tui_agent.protocol.web_address import host_of

from .command_judge import CommandJudge
from .path_judge import ChangesJudge, PathJudge, PathLookup
from .rules.path_resolution import WorkspaceRoots
from .rules.rule import Finding, PartFindings, Rule, RuleLike, decision_of, finding_for_mode, invalid
from .rules.rule_set import RuleResolution, RuleSet
from .rules.suggestions import Offer, offer_for_command, offer_for_path, refusal_of_line

MAX_GRANTS_AT_ONCE = 8
"""Maximum number of rules that one approval may store."""
SESSION_ORIGIN = "granted for the session"
"""Origin of an allow rule that ends with the session."""

SECRET_FILES = (
    *(".env", ".env.local", ".env.*.local", ".env.production", ".env.development", ".env.staging", ".netrc", ".pgpass"),
    *(".pypirc", ".git-credentials", ".htpasswd", "id_rsa", "id_ed25519", "id_ecdsa", "*.p12", "*.pfx", "*.kdbx"),
)
"""Patterns of files that hold secrets and that nothing but people and their programs needs to read."""

_PREDICATE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TuiAgentError,
                     TypeError, ValueError)  # fmt: skip
"""Exceptions that a tool's predicates may raise; they count as the more careful answer."""
_SENDS_DATA = ("web_search",)
"""Tools that change nothing here, yet their arguments leave the machine."""
_REMOTE_PREFIX = "mcp__"
"""Prefix of tools of MCP servers. Their claim to be read-only does not loosen a decision."""


class PermissionPolicy:
    """Decides calls in one workspace. Implements `protocol.permissions.PermissionChecker`."""

    def __init__(
        self,
        workspace: Path | str,
        *,
        rules: Iterable[RuleLike] = (),
        layers: Iterable[Iterable[RuleLike]] = (),
        mode: PermissionMode | str = PermissionMode.ASK,
        resolution: RuleResolution = "first_match",
        private_paths: Sequence[Path] = (),
        readable_paths: Sequence[Path] = (),
        folders: Sequence[Path] = (),
        relaxed_reads: bool = True,
        store_grant: Callable[[Sequence[Rule], GrantScope], str | None] | None = None,
        is_trusted: bool = True,
        secret_files: Sequence[str] = SECRET_FILES,
        trial: TrialFacts = NO_TRIAL,
    ) -> None:
        """
        Args:
            workspace: the working directory of calls.
            rules: one list of rules, first match first; each a `Rule`, or its text such as
                `"allow bash(make test:*)"`.
            layers: more lists; each gives its own verdict and the strictest wins.
            mode: the decision for calls that no rule decides; a `PermissionMode`, or its text such as `"plan"`.
            resolution: which rule of a list decides.
            private_paths: our own settings and sessions: never written, and read only with an answer.
            readable_paths: paths outside the workspace that may be read like it, such as kept tool output.
            folders: folders that count as part of the workspace, and rules that start at it also start there.
            relaxed_reads: read-only calls in the workspace need no answer (S1-17).
            store_grant: stores grants beyond the session, all or none, and returns the file; None refuses such a scope.
            is_trusted: the user trusts the contents of the workspace; else commands that apply its settings ask.
            secret_files: patterns of files that are read only with an answer or by a rule, if a call names them.
            trial: the place in which commands run that no rule and no mode lets outside.

        Raises:
            ConfigurationError: an argument is of the wrong kind, or a rule cannot be read; the text names it.
        """
        expect_kind("PermissionPolicy.workspace", workspace, (Path, str), "a path")
        expect_choice("PermissionPolicy.resolution", resolution, get_args(RuleResolution))
        expect_flag("PermissionPolicy.relaxed_reads", relaxed_reads)
        expect_flag("PermissionPolicy.is_trusted", is_trusted)
        expect_function("PermissionPolicy.store_grant", store_grant, "a function or None", optional=True)
        expect_kind("PermissionPolicy.trial", trial, TrialFacts, "a TrialFacts")
        for name, paths in (("private_paths", private_paths), ("readable_paths", readable_paths), ("folders", folders)):
            expect_items(f"PermissionPolicy.{name}", paths, _expect_path, "a list of paths")
        lists = (_rules("PermissionPolicy.rules", rules), *_layers("PermissionPolicy.layers", layers))
        self._roots = WorkspaceRoots(workspace, folders)
        # Rules, so that the user's own rules come before them and explain shows them.
        secrets = tuple(Rule.parse("ask", f"read({pattern})", "default") for pattern in secret_files)
        self._rules = RuleSet(filter(None, lists), self._roots, resolution, secrets)
        self._paths = PathJudge(PathLookup(self._roots, private_paths, readable_paths), self._rules)
        self._changes = ChangesJudge(self._paths)
        self._commands = CommandJudge(self._paths, is_trusted=is_trusted)
        self.is_trusted = is_trusted
        self._relaxed_reads, self._trial = relaxed_reads, trial
        self._mode = as_permission_mode("PermissionPolicy.mode", mode)
        self._store_grant = store_grant
        # Stored grants, which end when the user deletes them from the settings.
        self._kept: set[Rule] = set()

    @property
    def workspace(self) -> Path:
        """The working directory of the calls that the policy judges, with every link followed."""
        return Path(self._roots.workspace)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that count as part of the workspace, with every link followed."""
        return tuple(map(Path, self._roots.folders))

    def add_folder(self, folder: Path) -> None:
        """Let a folder count as part of the workspace in all later decisions."""
        self._roots.add(folder)

    @property
    def mode(self) -> PermissionMode:
        """The mode in force."""
        return self._mode

    def set_mode(self, mode: PermissionMode | str) -> None:
        """Change the mode for all later decisions.

        Raises:
            ConfigurationError: no mode has this name.
        """
        self._mode = as_permission_mode("permission mode", mode)

    @property
    def trial(self) -> TrialFacts:
        """The trial that commands can run in."""
        return self._trial

    def set_trial(self, facts: TrialFacts) -> None:
        """Replace the facts about the trial for all later decisions."""
        self._trial = facts

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule in force, list by list, without grants."""
        return self._rules.rules

    @property
    def secret_rules(self) -> tuple[Rule, ...]:
        """Ask rules for files that hold secrets, checked after all others."""
        return self._rules.secrets

    def set_rules(self, layers: Iterable[Iterable[RuleLike]]) -> None:
        """Replace the rules for all later decisions.

        Grants for the session stay; a stored grant ends when its rule is gone.

        Raises:
            ConfigurationError: a rule cannot be read; those in force stay.
        """
        self._rules.replace(_layers("layers", layers), self._kept)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """Decide one call; never raises."""
        # The mode is read here and not kept in a call, so that a change counts for calls that wait.
        return self.check_in_mode(tool, arguments, self._mode)

    def check_in_mode(self, tool: Tool, arguments: JsonObject, mode: PermissionMode) -> PermissionDecision:
        """Decide one call as in another mode."""
        trace = [f"mode {mode.words}"]
        try:
            subject = tool.subject(arguments)
        except _PREDICATE_ERRORS as error:
            return invalid(f"the tool cannot tell what this call is about: {type(error).__name__}", trace)
        if isinstance(subject, CommandSubject):
            return self._commands.judge(tool.name, subject, mode, self._trial, trace)
        is_read_only = _is_read_only(tool, arguments)
        if isinstance(subject, PathSubject):
            return self._check_path(tool.name, subject, mode, trace, is_read_only=is_read_only)
        return _decision(self._check_other(tool.name, subject, mode, trace, is_read_only=is_read_only), trace)

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """Return the denial that nothing can override (a protected path, plan mode, a deny rule, an invalid call), or
        None.
        """
        decision = self.check(tool, arguments)
        # A denial by the mode is none: the mode may change while the call waits.
        is_floor = decision.decision == "deny" and decision.source in ("floor", "rule", "invalid")
        return decision if is_floor else None

    def denied_below(self, tool: Tool, arguments: JsonObject) -> Callable[[str], bool]:
        """Return a function that says if a deny rule forbids reading a path below the directory of a search.

        Its argument is relative to that directory. For a call that is not about a path it always returns False.
        """
        subject = subject_of(tool, arguments)
        # Such a call is refused before it searches.
        if not isinstance(subject, PathSubject) or "\x00" in subject.path:
            return lambda _: False
        return self._rules.denied_below(tool.name, self._paths.path_lookup.look(subject.path))

    def check_changes(self, changes: ProposedChanges) -> ChangesDecision:
        """Decide what a command changed in a trial; never raises."""
        return self._changes.decide(changes, self._mode)

    def changes_refusal(self, rule: str, changes: ProposedChanges) -> str:
        """Return why a typed rule may not be stored with an answer to the changes, in words; empty if it may."""

        def decide(rules: Sequence[Rule]) -> ChangesDecision:
            self._rules.tried = rules
            try:
                return self._changes.decide(changes, self._mode)
            finally:
                self._rules.tried = ()

        return self._changes.refusal(rule, changes, decide)

    def is_protected_change(self, path: str) -> bool:
        """True if only the user may keep a change of a path, which is as in `ProposedFile.path`."""
        return self._changes.is_protected(path)

    def why_never_kept(self, path: str) -> str:
        """Return the rule that denies a change of a path, in words; empty if none does."""
        return self._changes.why_never_kept(path)

    def _check_path(
        self, tool: str, subject: PathSubject, mode: PermissionMode, trace: list[str], *, is_read_only: bool
    ) -> PermissionDecision:
        if "\x00" in subject.path:
            return invalid("a path cannot contain a NUL character", trace)
        facts = self._paths.path_lookup.look(subject.path)
        # A tool that does not swear to only read is treated as a writer, whatever it calls its intent.
        if subject.intent == "write" or not is_read_only:
            found = self._paths.writing(tool, facts, mode, trace)
        else:
            relaxed = self._relaxes(tool)
            filtered = subject.leaves_out_denied and subject.intent == "search"
            found = self._paths.reading(tool, facts, subject.intent, mode, trace, relaxed=relaxed, filtered=filtered)
        return _decision(found, trace, facts.resolved)

    def _check_other(
        self, tool: str, subject: UrlSubject | None, mode: PermissionMode, trace: list[str], *, is_read_only: bool
    ) -> Finding:
        """Decide a fetch, or a call that is about nothing that rules can name."""
        # Before the rules: plan mode is a promise that no allow rule breaks.
        if mode is PermissionMode.PLAN and not is_read_only:
            return finding_for_mode(mode, "effect", tool)
        host = host_of(subject.url) if subject else None
        # An unclear address is judged, too: a rule that forbids some hosts may mean it.
        if found := self._rules.judge_host(tool, host, trace):
            return found
        if subject is None and is_read_only and self._relaxes(tool):
            return Finding("allow", "read_only", f"{tool} only reads")
        what = f"fetching from {host or 'an unclear address'}" if subject else f"the tool {tool}"
        return finding_for_mode(mode, "look" if is_read_only else "effect", what)

    def _relaxes(self, tool: str) -> bool:
        return self._relaxed_reads and tool not in _SENDS_DATA and not tool.startswith(_REMOTE_PREFIX)

    # --- rules to offer with a question -------------------------------------------------------------------------------

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """Return the narrowest rule that would allow this call, or None; several rules are on separate lines."""
        offers = self._offers(tool, arguments)
        return self._narrowest(offers, tool, arguments) if offers else None

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        """Return every rule that may be stored for a call, narrowest first, including `grant_rule`'s."""
        offers = self._offers(tool, arguments)
        proposed = self._narrowest(offers, tool, arguments) if offers else None
        if proposed is None:
            return ()
        ladders = [offer.choices for offer in offers]
        # What is proposed may mix the ladders, and must be among the choices.
        offered = {text for ladder in ladders for text in ladder}
        ladders += [(text,) for text in proposed.split("\n") if text not in offered]
        # Widens all parts of a call step by step; a part that has no wider rule keeps its widest.
        steps = range(max(len(ladder) for ladder in ladders))
        found = [list(dict.fromkeys(ladder[min(step, len(ladder) - 1)] for ladder in ladders)) for step in steps]
        texts = ["\n".join(self._needed(rules, tool, arguments)) for rules in found]
        texts = [text for text in dict.fromkeys(texts) if text]
        return tuple(texts if proposed in texts else [*texts[:1], proposed, *texts[1:]])

    def grant_refusal(self, rule: str, tool: Tool, arguments: JsonObject) -> str:
        """Return why a rule that the user typed may not be stored for a call, in words; empty if it may.

        Such a rule is never wider than `grant_choices` could be, allows the call, and has no line it does not need.
        """
        offered = [line for choice in self.grant_choices(tool, arguments) for line in choice.split("\n")]
        lines = [line.strip() for line in rule.split("\n") if line.strip()]
        if not offered:
            return "No rule is narrow enough to be stored for this call."
        if not lines:
            return "Type a rule, or press escape."
        if len(lines) > MAX_GRANTS_AT_ONCE:
            return f"At most {MAX_GRANTS_AT_ONCE} rules can be stored at once."
        subject = subject_of(tool, arguments)
        refusals = (refusal_of_line(line, tool.name, subject, offered) for line in lines)
        if refusal := next(filter(None, refusals), ""):
            return refusal
        if not self.passes_with(lines, tool, arguments):
            return "This would not allow the call that waits."
        for place, line in enumerate(lines):
            if self.passes_with([*lines[:place], *lines[place + 1 :]], tool, arguments):
                return f"The call does not need `{line}`."
        return ""

    def passes_with(self, texts: Sequence[str], tool: Tool, arguments: JsonObject) -> bool:
        """True if a call would be allowed with these rules granted; grants nothing.

        Raises:
            ConfigurationError: a rule cannot be read.
        """
        # Tried and not granted: another call that is judged meanwhile must not profit.
        self._rules.tried = [Rule.parse("allow", text) for text in texts]
        try:
            return self.check(tool, arguments).decision == "allow"
        finally:
            self._rules.tried = ()

    def _narrowest(self, offers: Sequence[Offer], tool: Tool, arguments: JsonObject) -> str | None:
        """Return the narrowest of the offered rules that allow a call."""
        needed = list(dict.fromkeys(offer.proposed for offer in offers))
        # No one reads that many rules before the answer.
        if len(needed) > MAX_GRANTS_AT_ONCE:
            return None
        return "\n".join(self._needed(needed, tool, arguments)) or None

    def _needed(self, texts: Sequence[str], tool: Tool, arguments: JsonObject) -> list[str]:
        """Return those of some rules that a call needs to be allowed; none if they are not enough."""
        found = list(dict.fromkeys(texts))
        # The rules for commands often suffice; those for paths, which come last, go first.
        for text in reversed(texts) if self.passes_with(texts, tool, arguments) else ():
            others = [other for other in found if other != text]
            found = others if others and self.passes_with(others, tool, arguments) else found
        return found if self.passes_with(found, tool, arguments) else []

    def _offers(self, tool: Tool, arguments: JsonObject) -> list[Offer]:
        """Return an offer for each asking part of a call; none if a part should not be allowed by a stored rule."""
        decision = self.check(tool, arguments)
        if decision.decision != "ask":
            return []
        offers: list[Offer | None]
        match subject := subject_of(tool, arguments):
            case CommandSubject():
                asking = [part.text for part in decision.parts if part.decision == "ask"]
                offers = [offer_for_command(tool.name, text) for text in asking]
            case PathSubject():
                offers = [offer_for_path(tool.name, target, self._roots.workspace) for target in decision.targets]
            case UrlSubject():
                host = host_of(subject.url)
                rule = f"{tool.name}(domain:{host})"
                offers = [Offer(rule, (rule,)) if host else None]
            case None:
                offers = [Offer(tool.name, (tool.name,))]
        return [] if None in offers else [offer for offer in offers if offer]

    # --- grants and rules of the session ------------------------------------------------------------------------------

    def grant(self, rule: str, scope: GrantScope) -> str | None:
        """Store a rule that was proposed, or that `grant_refusal` accepted. It answers an `ask`, never a `deny`.

        Several rules are on separate lines. The scope `once` stores nothing.

        Returns:
            The file with the rule; None if it is only in memory.

        Raises:
            ConfigurationError: the rule cannot be read or the scope cannot be stored; nothing was granted.
            Exception: anything else that `store_grant` raises; nothing was granted.
        """
        granted = [Rule.parse("allow", line, f"granted for the {scope}") for line in rule.split("\n") if line.strip()]
        if not granted:
            raise ConfigurationError("there is no rule to grant")
        if scope == "once":
            return None
        where = None
        if scope != "session":
            if self._store_grant is None:
                raise ConfigurationError(f"rules cannot be stored for the {scope} here; grant it for the session")
            # Stored before it applies: a rule that only seems stored would surprise the next session.
            where = self._store_grant(granted, scope)
            self._kept.update(granted)
        # Stored grants apply at once, too: the settings are only read again after a moment.
        self._rules.grants.extend(one for one in granted if one not in self._rules.grants)
        return where

    @property
    def session_rules(self) -> tuple[Rule, ...]:
        """Rules that end with the session, in the order in which they are checked: ask and deny rules, then grants."""
        return (*self._rules.restrictions, *(grant for grant in self._rules.grants if grant not in self._kept))

    def add_session_rule(self, verdict: str, text: str) -> Rule | None:
        """Add a rule for the rest of the session and return it; None if the session has it already.

        An allow rule answers an `ask` like a grant. An ask or deny rule counts as much as those of the settings.

        Raises:
            ConfigurationError: the rule cannot be read; nothing changed.
        """
        rule = Rule.parse(verdict, text, SESSION_ORIGIN if verdict == "allow" else "added for the session")
        # Apart, because a grant answers a question and a restriction is a list of its own.
        rules = self._rules.grants if rule.verdict == "allow" else self._rules.restrictions
        if rule in rules:
            return None
        rules.append(rule)
        return rule

    def remove_session_rule(self, verdict: str, text: str) -> bool:
        """Remove a rule of the session; False if no rule of the session has this verdict and text."""
        # Not the stored ones: they are the settings', and would come back with the next start.
        found = [rule for rule in self.session_rules if (rule.verdict, rule.text) == (verdict, text)]
        for rule in found:
            (self._rules.grants if rule.verdict == "allow" else self._rules.restrictions).remove(rule)
        return bool(found)


def subject_of(tool: Tool, arguments: JsonObject) -> Subject | None:
    """Return a call's subject; None if it has none, or if the tool cannot name it."""
    try:
        return tool.subject(arguments)
    except _PREDICATE_ERRORS:
        return None


def _is_read_only(tool: Tool, arguments: JsonObject) -> bool:
    try:
        return tool.is_read_only(arguments)
    except _PREDICATE_ERRORS:
        return False


def _decision(finding: Finding, trace: list[str], *targets: str) -> PermissionDecision:
    """Return the decision on a call without parts."""
    return decision_of([PartFindings("", (finding,))], trace, targets).model_copy(update={"parts": ()})


def _rules(name: str, rules: object) -> tuple[Rule, ...]:
    """Return the rules of one list; an error names the index of the faulty rule."""
    wanted = 'a list of rules such as "allow bash(make test:*)"'
    # Parsed with the index only for the error: as origin it would appear in every decision.
    items = expect_items(name, rules, lambda place, item: Rule.of(item, place), wanted)
    return tuple(map(Rule.of, items))


def _layers(name: str, layers: object) -> tuple[tuple[Rule, ...], ...]:
    found = expect_items(name, layers, None, "a list of lists of rules")
    return tuple(_rules(f"{name}[{place}]", cast(object, layer)) for place, layer in enumerate(found))


def _expect_path(name: str, path: object) -> None:
    expect_kind(name, path, (Path, str), "a path")


def is_read_only_command(command: str, workspace: Path, readable_paths: Sequence[Path] = ()) -> bool:
    """True if a command is plain and in the list of those that only read; never raises, and is False in doubt.

    It may read the workspace and the readable paths outside.
    """
    return _judge_without_rules(workspace, tuple(readable_paths)).only_reads(command)


@lru_cache(maxsize=8)
def _judge_without_rules(workspace: Path, readable_paths: tuple[Path, ...]) -> CommandJudge:
    roots = WorkspaceRoots(workspace)
    return CommandJudge(PathJudge(PathLookup(roots, readable_paths=readable_paths), RuleSet((), roots)))
