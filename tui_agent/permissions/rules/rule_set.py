"""All rules in force, and their combined verdict on one subject.

Within a list the first matching rule decides (or the strictest, if so configured); across lists the strictest wins. A
grant by the user answers an `ask`, never a `deny` (S1-14).
"""

import os
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

from tui_agent.permissions.commands.script_reader import SimpleCommand, names
from tui_agent.permissions.commands.wrappers import forms_of
from tui_agent.permissions.rules.path_resolution import PathFacts, WorkspaceRoots

from .patterns import BORDER, CommandPattern, Match, command_patterns, path_pattern
from .rule import STRICTNESS, Finding, Intent, Rule, finding_for_rule

RuleResolution = Literal["first_match", "severity"]
"""The deciding rule of a list: the first that matches, or the strictest."""

HARMLESS_VARIABLES = names("LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI TERM COLUMNS LINES")
"""Variables that an allow rule need not name, and those that begin with `LC_`: they change how a program displays
something, never what it runs or reads."""


class RuleSet:
    """The rules in force and the grants since the start."""

    def __init__(
        self,
        layers: Iterable[Sequence[Rule]],
        roots: WorkspaceRoots,
        resolution: RuleResolution = "first_match",
        secrets: Sequence[Rule] = (),
    ) -> None:
        self._resolution = resolution
        self.secrets = tuple(secrets)
        """Ask rules for files that hold secrets: they count for a path that is named, where no other rule decides."""
        self._roots = roots
        self._layers = tuple(tuple(layer) for layer in layers)
        self.grants: list[Rule] = []
        self.restrictions: list[Rule] = []
        """Ask and deny rules that the user added for the session; a list of its own, checked after the others."""
        self.tried: Sequence[Rule] = ()
        """Rules that count as granted during a trial decision."""

    def replace(self, layers: Iterable[Sequence[Rule]], kept: Container[Rule] = ()) -> None:
        """Replace the rules. Grants stay, but a `kept` (stored) grant only while its rule is still in the settings."""
        self._layers = tuple(tuple(layer) for layer in layers)
        # By text: the same rule has another origin once it is read from its file.
        standing = {rule.text for rule in self.rules if rule.verdict == "allow"}
        self.grants = [grant for grant in self.grants if grant not in kept or grant.text in standing]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule, list by list, without grants."""
        return tuple(chain(*self._layers, self.restrictions))

    def forbids_any(self, tool: str) -> bool:
        """True if a rule denies or asks about some calls of a tool."""
        return any(rule.verdict != "allow" and rule.applies_to(tool) for rule in self.rules)

    @property
    def forbids_paths(self) -> bool:
        """True if a rule denies or asks about some paths."""
        intents: tuple[Intent, ...] = ("read", "write")
        applying = (rule for rule in self.rules if rule.verdict != "allow" and rule.pattern is not None)
        return any(rule.applies_to_path(None, intent) for rule in applying for intent in intents)

    @property
    def denies_changes(self) -> bool:
        """True if a rule denies changes of some paths."""
        denying = (rule for rule in self.rules if rule.verdict == "deny" and rule.pattern is not None)
        return any(rule.applies_to_path(None, "write") for rule in denying)

    def judge_command(self, tool: str, command: SimpleCommand, trace: list[str]) -> Finding | None:
        """Return the finding of the rules for `tool` on one simple command; None if no rule matches.

        An allow rule must match literal words as written, a rule that forbids any form of them.
        """
        assigned = [word.value for word in command.assignments]
        # With its assignments: `X=1 make` is another command than `make`.
        whole = BORDER.join((*assigned, *command.argv))
        texts = dict.fromkeys((whole, *map(BORDER.join, forms_of(command.argv))))
        names = {word.partition("=")[0] for word in assigned}
        is_harmless = all(name in HARMLESS_VARIABLES or name.startswith("LC_") for name in names)

        def allows(pattern: CommandPattern) -> bool:
            is_spelled = pattern.spelled_words > len(assigned) and pattern.allows(whole)
            # A locale changes no meaning; any other variable could make a program load something.
            is_covered = (is_harmless or pattern.is_everything) and pattern.allows(BORDER.join(command.argv))
            return is_spelled or is_covered

        def match(rule: Rule, pattern: str) -> Match:
            patterns = command_patterns(pattern)
            if rule.verdict == "allow":
                is_meant = rule.is_unbounded or (command.is_literal and any(map(allows, patterns)))
                return "yes" if is_meant else "no"
            return _forbids(patterns, texts)

        return self._judge(lambda rule: rule.applies_to(tool), match, whole.replace(BORDER, " "), trace)

    def forbid_command(self, tool: str, argv: Sequence[str], trace: list[str]) -> Finding | None:
        """Return the finding of the rules that forbid `tool` a command which another one runs; None if none does."""
        texts = dict.fromkeys(map(BORDER.join, forms_of(argv)))

        def match(_: Rule, pattern: str) -> Match:
            return _forbids(command_patterns(pattern), texts)

        def applies(rule: Rule) -> bool:
            return rule.verdict != "allow" and rule.pattern is not None and rule.applies_to(tool)

        found = self._judge(applies, match, " ".join(argv), trace)
        return found if found is None or found.decision != "allow" else None

    def judge_path(
        self,
        tool: str | None,
        facts: PathFacts,
        intent: Intent,
        trace: list[str],
        *,
        whole: bool = False,
        filtered: bool = False,
    ) -> Finding | None:
        """Return the finding of the rules on a path; None if no rule matches.

        Args:
            tool: the tool; None for a shell command.
            facts: the path.
            intent: its use; a `search` reads everything below the path, too, and blocks to look for matches there.
            trace: gets a line for every rule.
            whole: the call uses everything below the path: a rule counts if it matches all of it.
            filtered: deny rules that match only a part of it do not count, because `denied_below` leaves that out.
        """
        is_search, whole = intent == "search", whole or intent == "search"
        names = dict.fromkeys((facts.resolved, facts.lexical))

        def matches_all(text: str) -> bool:
            return any(map(path_pattern(text, self._roots.bases).matches_all_below, names))

        def match(rule: Rule, text: str) -> Match:
            pattern = path_pattern(text, self._roots.bases)
            # An allow must match the target itself; a link's own name would let the link's owner choose the target.
            if rule.verdict == "allow":
                matches = pattern.matches_all_below if whole else pattern.matches
                return "yes" if matches(facts.resolved) else "no"
            if matches_all(text):
                return "yes"
            if filtered and rule.verdict == "deny":
                trace.append(f"{rule.shown}: files that it matches are left out")
                return "no"
            return "maybe" if is_search and any(map(pattern.may_match_below, names)) else "no"

        def applies(rule: Rule) -> bool:
            # A rule without a pattern is not meant for the rest of the machine.
            is_meant = rule.pattern is not None or rule.verdict != "allow" or facts.is_inside or facts.is_device
            return is_meant and rule.applies_to_path(tool, intent)

        found = self._judge(applies, match, facts.resolved, trace)
        if found is not None or intent == "write":
            return found
        # Not `match`, which would look through all of a searched directory for each of these rules.
        # Last of all: a rule of the user on the same file says what is wanted.
        secret = (rule for rule in self.secrets if matches_all(rule.pattern or ""))
        return next(map(finding_for_rule, secret), None)

    def may_forbid_below(self, facts: PathFacts) -> Rule | None:
        """Return an ask or deny rule that may match changes below a directory, by its text alone, or None.

        The files need not exist: those of a trial are elsewhere.
        """
        for layer in (*self._layers, self.restrictions):
            for rule in layer:
                if rule.pattern is None or not rule.applies_to_path("edit", "write"):
                    continue
                pattern = path_pattern(rule.pattern, self._roots.bases)
                if rule.verdict != "allow" and any(map(pattern.overlaps, (facts.resolved, facts.lexical))):
                    return rule
                if self._resolution == "first_match" and pattern.matches_all_below(facts.resolved):
                    break
        return None

    def denied_below(self, tool: str, facts: PathFacts) -> Callable[[str], bool]:
        """Return a function that says if a deny rule forbids `tool` to read a path below a directory.

        Its argument is relative to the directory that `facts` describe. A rule before the deny rule may allow the path.
        Later changes of the rules count only in part, so ask for a new function for each search.
        """
        rules = (rule for rule in self.rules if rule.verdict == "deny" and rule.applies_to_path(tool, "read"))
        patterns = [path_pattern(rule.pattern or "**", self._roots.bases) for rule in rules]

        def is_denied(path: str) -> bool:
            resolved, lexical = (os.path.join(top, path) for top in (facts.resolved, facts.lexical))
            if not any(pattern.matches_all_below(name) for pattern in patterns for name in {resolved, lexical}):
                return False
            # A rule of the same list may allow it before.
            found = self.judge_path(tool, replace(facts, resolved=resolved, lexical=lexical), "read", [])
            return found is not None and found.decision == "deny"

        return is_denied

    def judge_host(self, tool: str, host: str | None, trace: list[str]) -> Finding | None:
        """Return the finding of the rules on a call for a host; None if no rule matches.

        Without a host, for an ambiguous address or a tool that is about nothing, no pattern matches for certain.
        """

        def match(rule: Rule, pattern: str) -> Match:
            """Compare by whole labels; a rule that forbids a domain also forbids its subdomains."""
            if host is None:
                return "no" if rule.verdict == "allow" else "maybe"
            wanted = pattern.strip().removeprefix("domain:").lower().rstrip(".")
            # An allow is never wider than its words, a denial never narrower than its meaning.
            covers_subdomains = wanted.startswith("*.") or rule.verdict != "allow"
            is_below = covers_subdomains and host.endswith(f".{wanted.removeprefix('*.')}")
            return "yes" if host == wanted or is_below else "no"

        return self._judge(lambda rule: rule.applies_to(tool), match, host or tool, trace)

    def _judge(
        self, applies: Callable[[Rule], bool], match: Callable[[Rule, str], Match], subject: str, trace: list[str]
    ) -> Finding | None:
        def matches(rule: Rule) -> Match:
            if not applies(rule):
                return "no"
            return "yes" if rule.pattern is None else match(rule, rule.pattern)

        decided: Finding | None = None
        is_open = False
        for layer in (*self._layers, self.restrictions):
            for rule in layer:
                result = matches(rule)
                # Also of rules that do not match: explain answers why a rule did not help.
                trace.append(f"{rule.shown}: {_RESULTS[result]} {subject!r}")
                if result != "no":
                    found = finding_for_rule(rule, is_open=result == "maybe")
                    # Among lists the strictest wins, so a project can tighten what the user allows but not loosen it.
                    if decided is None or STRICTNESS[found.decision] > STRICTNESS[decided.decision]:
                        decided, is_open = found, result == "maybe"
                if result == "yes" and self._resolution == "first_match":
                    break
        # A grant answers only a certain `ask`: the text of an open one is not known.
        if decided is None or (decided.decision == "ask" and not is_open):
            for grant in (*self.grants, *self.tried):
                if matches(grant) == "yes":
                    trace.append(f"granted {grant.text}: answers {subject!r}")
                    return finding_for_rule(grant, is_grant=True)
        return decided


def _forbids(patterns: Sequence[CommandPattern], texts: Iterable[str]) -> Match:
    if any(one.match(text) for one in patterns for text in texts):
        return "yes"
    return "maybe" if any(one.may_match(text) for one in patterns for text in texts) else "no"


_RESULTS = {"yes": "matches", "maybe": "may match", "no": "does not match"}
