"""All rules in force, and their combined verdict on one subject.

Within a list the first matching rule decides (or the strictest, if so configured); across lists the strictest wins. A
grant by the user answers an `ask`, never a `deny` (S1-14).
"""

import os
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from tui_agent.permissions.commands.builtins import is_harmless_setting
from tui_agent.permissions.commands.invocation import FileFilter
from tui_agent.permissions.commands.version_control import forms_of
from tui_agent.permissions.paths.path_resolution import PathFacts
from tui_agent.permissions.shell.expansion import has_glob
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand, Word
from tui_agent.permissions.verdicts import STRICTNESS, Finding, finding_for_rule

from .patterns import BORDER, CommandPattern, Match, command_patterns, path_pattern
from .rule import Intent, Rule

RuleResolution = Literal["first_match", "severity"]
"""The deciding rule of a list: the first that matches, or the strictest."""

_GLOB = "\x02"
"""Placeholder that no rule contains."""


@dataclass(frozen=True, slots=True)
class NormalizedCommand:
    """Texts of one simple command for comparison with rules: words joined by `BORDER`."""

    words: str
    """The words as written, which an `allow` must match."""
    with_assignments: str
    """The same with the assignments before it, for an `allow` that spells them out."""
    normalized_forms: tuple[str, ...] = ()
    """Equivalent forms, which only forbidding rules are compared with."""

    sets_more: bool = False
    """True if the assignments may change what programs do, so that a rule must spell them out."""

    def allowed_by(self, pattern: CommandPattern) -> bool:
        """True if a pattern of an allow rule matches."""
        is_covered = not self.sets_more or pattern.is_everything
        return self.spelled_by(pattern) or (is_covered and pattern.match(self.words))

    def spelled_by(self, pattern: CommandPattern) -> bool:
        """True if a pattern spells out the assignments, if there are any, and matches the words."""
        count = self.with_assignments.count(BORDER) - self.words.count(BORDER)
        return pattern.spelled_words > count and pattern.match(self.with_assignments)


def normalize_command(command: SimpleCommand) -> NormalizedCommand:
    """Return the forms of a command, whose braces are already expanded, that rules are compared with."""
    words = [word.value for word in command.words]
    if command.words and has_glob(command.words[0]) and words[0] not in ("[", "[["):
        words[0] = UNKNOWN
    pairs = zip(command.words, words, strict=True)
    literal = [_without_globs(word) if word.value == value else value for word, value in pairs]
    shown = BORDER.join(literal)
    assigned = [f"{assignment.name}={assignment.value.value}" for assignment in command.assignments]
    name = words[0].rsplit("/", 1)[-1] if words else ""
    forms = (words, [name, *words[1:]], *forms_of((name, *words[1:]))) if words else ()
    normalized = dict.fromkeys(form for form in map(BORDER.join, forms) if form != shown)
    sets_more = not is_harmless_setting(command)
    return NormalizedCommand(shown, BORDER.join((*assigned, *literal)), tuple(normalized), sets_more)


def _without_globs(word: Word) -> str:
    """Return a word with `_GLOB` for `[` and `?` that the shell takes for a pattern: a rule's are literal."""
    if not word.live or word.value in ("[", "[["):
        return word.value
    return "".join(_GLOB if at in word.live and letter in "[?" else letter for at, letter in enumerate(word.value))


class RuleSet:
    """The rules in force and the grants since the start."""

    def __init__(
        self,
        layers: Iterable[Sequence[Rule]],
        workspace: str,
        root: str,
        resolution: RuleResolution = "first_match",
        secrets: Sequence[Rule] = (),
    ) -> None:
        self._resolution = resolution
        self.secrets = tuple(secrets)
        """Ask rules for files that hold secrets: they count for a path that is named, where no other rule decides."""
        self._workspace = workspace
        self._root = root
        self._layers = tuple(tuple(layer) for layer in layers)
        self.grants: list[Rule] = []
        """Allow rules granted by the user, newest last."""
        self.restrictions: list[Rule] = []
        """Ask and deny rules that the user added for the session; a list of its own, checked after the others."""
        self.tried: Sequence[Rule] = ()
        """Rules that count as granted during a trial decision."""

    def replace(self, layers: Iterable[Sequence[Rule]], kept: Container[Rule] = ()) -> None:
        """Replace the rules. Grants stay, but a `kept` (stored) grant only while its rule is still in the settings."""
        self._layers = tuple(tuple(layer) for layer in layers)
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
    def forbids_reading(self) -> bool:
        """True if a rule denies or asks about reading some paths."""
        return any(rule.verdict != "allow" and rule.applies_to_path(None, "read") for rule in self.rules)

    @property
    def denies_changes(self) -> bool:
        """True if a rule denies changes of some paths."""
        return any(rule.verdict == "deny" and rule.applies_to_path(None, "write") for rule in self.rules)

    def judge_command(self, tool: str, view: NormalizedCommand, trace: list[str]) -> Finding | None:
        """Return the finding of the rules for `tool` on one simple command; None if no rule matches."""
        texts = dict.fromkeys((view.words, view.with_assignments, *view.normalized_forms))

        def match(rule: Rule, pattern: str) -> Match:
            patterns = command_patterns(pattern)
            if rule.verdict == "allow":
                return "yes" if any(view.allowed_by(one) for one in patterns) else "no"
            if any(one.match(text) for one in patterns for text in texts):
                return "yes"
            return "maybe" if any(one.may_match(text) for one in patterns for text in texts) else "no"

        return self._judge(lambda rule: rule.applies_to(tool), match, view.words.replace(BORDER, " "), trace)

    def judge_path(
        self,
        tool: str | None,
        facts: PathFacts,
        intent: Intent,
        trace: list[str],
        *,
        whole: bool = False,
        includes: FileFilter | None = None,
        filtered: bool = False,
    ) -> Finding | None:
        """Return the finding of the rules on a path; None if no rule matches.

        `whole` includes everything below it; `includes` filters that; if `filtered`, what `denied_below` names does not
        count.
        """
        whole = whole or intent == "search"

        def match(rule: Rule, text: str) -> Match:
            pattern = path_pattern(text, self._workspace, self._root)
            # An allow must match the target itself; a link's own name would let the link's owner choose the target.
            if rule.verdict == "allow":
                matches = pattern.matches_all_below if whole else pattern.matches
                return "yes" if matches(facts.resolved) else "no"
            names = dict.fromkeys((facts.resolved, facts.lexical))
            if any(map(pattern.matches_all_below, names)):
                return "yes"
            if filtered and rule.verdict == "deny":
                trace.append(f"{rule.shown}: files that it matches are left out")
                return "no"
            return "maybe" if whole and any(pattern.may_match_below(name, includes) for name in names) else "no"

        def applies(rule: Rule) -> bool:
            # A rule without a pattern is not meant for the rest of the machine.
            is_meant = rule.pattern is not None or rule.verdict != "allow" or facts.is_inside or facts.is_device
            return is_meant and rule.applies_to_path(tool, intent)

        found = self._judge(applies, match, facts.resolved, trace)
        if found is not None or intent == "write":
            return found
        secret = (rule for rule in self.secrets if match(rule, rule.pattern or "") == "yes")
        return next(map(finding_for_rule, secret), None)

    def may_forbid_below(self, facts: PathFacts) -> Rule | None:
        """Return an ask or deny rule that may match changes below a directory, by its text alone, or None.

        The files need not exist: those of a trial are elsewhere.
        """
        for layer in (*self._layers, self.restrictions):
            for rule in layer:
                if rule.pattern is None or not rule.applies_to_path("edit", "write"):
                    continue
                pattern = path_pattern(rule.pattern, self._workspace, self._root)
                if rule.verdict != "allow" and any(map(pattern.overlaps, (facts.resolved, facts.lexical))):
                    return rule
                if self._resolution == "first_match" and pattern.matches_all_below(facts.resolved):
                    break
        return None

    def denied_below(self, tool: str, facts: PathFacts) -> Callable[[str], bool]:
        """Return a predicate for paths below a directory, relative to it: True if a rule denies `tool` to read them."""
        rules = (rule for rule in self.rules if rule.verdict == "deny" and rule.applies_to_path(tool, "read"))
        patterns = [path_pattern(rule.pattern or "**", self._workspace, self._root) for rule in rules]

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
                trace.append(f"{rule.shown}: {_RESULTS[result]} {subject!r}")
                if result != "no":
                    found = finding_for_rule(rule, is_open=result == "maybe")
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


_RESULTS = {"yes": "matches", "maybe": "may match", "no": "does not match"}
