"""Decision on one path: may it be read, may it be written?"""

from dataclasses import replace
from typing import Literal

from tui_agent.permissions.commands.invocation import FileFilter
from tui_agent.permissions.rules.rule import Intent
from tui_agent.permissions.rules.rule_set import RuleSet
from tui_agent.permissions.verdicts import OUTSIDE, AccessKind, Finding, finding_for_mode
from tui_agent.protocol.permissions import PermissionMode

from .path_facts import PathFacts, PathLookup


class PathJudge:
    """Judges paths by the floor, the rules and the mode, for file tools and shell commands alike."""

    def __init__(self, path_lookup: PathLookup, rules: RuleSet) -> None:
        self.path_lookup = path_lookup
        self.rules = rules

    def reading(
        self,
        tool: str | None,
        facts: PathFacts,
        intent: Intent | Literal["list"],
        mode: PermissionMode,
        trace: list[str],
        *,
        relaxed: bool,
        includes: FileFilter | None = None,
        filtered: bool = False,
    ) -> Finding:
        """Decide a read of a path.

        Args:
            tool: the tool that reads; None for a shell command.
            facts: the path.
            intent: `read`, `search` (with everything below it) or `list` (the names of everything below it).
            mode: the mode in force.
            trace: gets a line for every rule and check.
            relaxed: reading in the workspace needs no answer.
            includes: the files of a directory that are read; None for all.
            filtered: files that a rule denies are left out, so that such a rule does not decide for the directory.
        """
        found = self.rules.judge_path(
            tool, facts, "read" if intent == "list" else intent, trace, includes=includes, filtered=filtered
        )
        private = facts.private or (self.path_lookup.why_tree_private(facts) if intent != "read" else None)
        # A rule without a pattern, such as `allow read`, does not open private paths; one that names them does.
        if private and not (found and (found.decision == "deny" or (found.decision == "allow" and found.is_named))):
            trace.append(f"private: {facts.resolved}: {private}")
            access_kind: AccessKind = "look"
            decided = finding_for_mode(mode, access_kind, f"reading {facts.given}")
            if decided.decision == "deny":
                return decided
            return Finding("ask", "floor", f"{facts.given} is private: {private}")
        if found:
            return found
        if relaxed and self.path_lookup.is_readable(facts):
            trace.append(f"read-only: {facts.resolved} may be read")
            return Finding("allow", "read_only", "it only reads, and only inside the workspace")
        if facts.is_inside:
            return finding_for_mode(mode, "look", f"reading {facts.given}")
        return _outside(facts, mode, "look", "reading")

    def writing(
        self,
        tool: str | None,
        facts: PathFacts,
        mode: PermissionMode,
        trace: list[str],
        *,
        whole: bool = False,
        allowed_by: Finding | None = None,
    ) -> Finding:
        """Decide a change of a path; a protected path may never be changed, in any mode (S1-12).

        Args:
            tool: the tool that changes it; None for a shell command, to which accept_edits does not apply.
            facts: the path.
            mode: the mode in force.
            trace: gets a line for every rule and check.
            whole: everything below it is changed, too.
            allowed_by: the finding that allowed the whole command, if it covers this change.
        """
        if why := self.path_lookup.why_protected(facts):
            trace.append(f"floor: {facts.resolved} is protected: {why}")
            return Finding("deny", "floor", f"{facts.given} is protected and never changed: {why}")
        if facts.is_device:
            return Finding("allow", "read_only", f"{facts.given} stores nothing")
        if mode is PermissionMode.PLAN:
            return finding_for_mode(mode, "effect", f"changing {facts.given}")
        found = self.rules.judge_path(tool, facts, "write", trace, whole=whole)
        if found and found.decision == "deny":
            return found
        if (why := self.path_lookup.why_lasting(facts)) and not (found and found.is_named):
            trace.append(f"floor: {facts.resolved} lasts: {why}")
            decided = finding_for_mode(mode, "effect", f"changing {facts.given}")
            return decided if decided.decision == "deny" else Finding("ask", "floor", f"changes {facts.given}: {why}")
        if whole and (held := self.path_lookup.why_tree_protected(facts)):
            trace.append(f"floor: {facts.resolved} is changed as a whole: {held}")
            return Finding("ask", "floor", f"{facts.given} is changed with everything in it: {held}")
        if found:
            return found
        # Outside the workspace the mode gives the same verdict with a reason that names the place.
        if allowed_by is not None and (facts.is_inside or allowed_by.source != "mode"):
            return allowed_by
        if not facts.is_inside:
            return _outside(facts, mode, "effect", "changing")
        # accept_edits covers only the file tools, and only inside the workspace.
        access_kind: AccessKind = "edit" if tool is not None else "effect"
        asks = f"changes {facts.given}; no rule allows it"
        return finding_for_mode(mode, access_kind, f"changing {facts.given}", asks=asks)


def _outside(facts: PathFacts, mode: PermissionMode, access_kind: AccessKind, doing: str) -> Finding:
    """Return the mode's finding for a path outside the workspace."""
    asks = f"{OUTSIDE}: {facts.given}; no rule allows {doing} it"
    decided = finding_for_mode(mode, access_kind, f"{doing} {facts.given} {OUTSIDE}", asks=asks)
    return replace(decided, is_outside=True)
