"""Findings for one simple command: its words, the paths it touches, the variables it sets, the parts it hides."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal
from urllib.parse import unquote

from tui_agent.git.repository import (
    DATA_VARIABLES,
    names_own_directory,
    places_repository,
    repository_roots,
)
from tui_agent.permissions.commands.analysis import shows_environments
from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.catalogue import canonical_name, group
from tui_agent.permissions.commands.invocation import FileFilter, Invocation, Reads, Write, pieces_of
from tui_agent.permissions.paths.path_resolution import (
    MAX_LENGTH,
    PathFacts,
    is_within,
)
from tui_agent.permissions.paths.protected_paths import (
    hit_by_git,
    may_mean_protected,
    names_project_definition,
    protected_name,
    swept_top,
)
from tui_agent.permissions.rules.rule import Intent
from tui_agent.permissions.rules.rule_coverage import AllowScope
from tui_agent.permissions.shell.expansion import ListedDirectories, expand_braces, has_glob
from tui_agent.permissions.shell.syntax import MARKS, PIPE, UNKNOWN, Assignment, Redirect, Word, names
from tui_agent.permissions.verdicts import AccessKind, Finding, finding_for_mode

from .case_state import MAX_LOOKUPS, CaseState, ExecutionContext

MAX_MENTIONS = 200
"""Maximum number of words of an unknown command looked up as paths; of further words only the names are checked."""

_NETWORK = re.compile(r"/dev/(?:tcp|udp)(?:/|\Z)")
_MARK = f"[{''.join(MARKS)}]"
_UP = re.compile(r"/\.\.(?=/|\Z)")
_KEEPS_LINKS = names("mkdir rm rmdir unlink")
"""Commands that do not follow a link which is their target."""
_LOOKS_LIKE_PATH = re.compile(r"(?!.*//)(?:.*/|\.\.\Z|~)", re.DOTALL)
_BARE = re.compile(r"[\w-]+\Z")
_ADDRESS = re.compile(r"(?:-[^=]*=)?(?:[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:)")
_OF_THIS_MACHINE = re.compile(r".*?://(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/?#]|\Z)")
_TAKES_ADDRESS = names("clone remote ls-remote submodule")
"""Actions for which an address is an ordinary operand."""
_PLACE = re.compile(r"(?:\A|[,:=@]|\A-[A-Za-z])(?:~|/|\.\.(?![^/])|[^,:=@]*/)[^,:=@]*")
"""Parts of a word that may be paths."""
CODE_WRITES = re.compile(
    r"write|\brm\w*\(|\b(?:rm|mv|cp)\b|put_|open\s*\([^)]*,[^)]*['\"][rbtU]*[wax+]|unlink|remove|rename|\+<|rmtree|mkdir|makedirs|copy|move|truncate|chmod|"
    r"link|touch|replace|save|dump|append|system|spawn|exec|popen|subprocess|>|\bw\b|"
    r"delete|output|attach|(?:open|creat\w*|file):|\.(?:once|clone|backup|log|excel|open|import)|\binto\b|\\[og]",
    re.IGNORECASE,
)
"""Text of a program in any language that may change files."""
_BETWEEN_NAMES = re.compile(r"[\s(),;=|]+")
_WITHOUT_QUOTES = str.maketrans("", "", "'\"`")
_EXPANDED = re.compile(r"\\(?:[0-7]{1,3}|.)|\[[^\]/]*\]|\{[^}/]*\}|[*?]")
"""Patterns and escapes in names of files."""


class PathChecks:
    """Findings about the paths of one command."""

    def __init__(self, state: CaseState, allow_scope: AllowScope | None, by_words: Finding) -> None:
        self.findings: list[Finding] = []
        self.targets: list[str] = []
        self.allow_scope = allow_scope
        self._state = state
        self._by_words = by_words
        """Finding for the command's words."""
        self._lookup, self._rules = state.judge.path_lookup, state.judge.rules
        self._denies_changes = self._rules.denies_changes
        self._covers = allow_scope is not None and allow_scope.covers_words
        """True if the rule that allows the command covers everything that its words name."""
        self._is_spelled_out = allow_scope is not None and allow_scope.reach == "command"
        """True if the rule spells out the paths in doubt."""
        self._links: list[tuple[str, str | None]] = []
        """Paths to which it makes links, with the directory that they are relative to."""
        self._made: list[str] = []
        """Directories of repositories' data that it makes."""

    # --- certain effects ----------------------------------------------------------------------------------------------

    def check_reads(self, reads: Reads, directory: str | None) -> None:
        """Judge everything that a read-only command reads."""
        for path in reads.paths:
            facts = self._look(path, directory) if reads.only_files and self.allow_scope is None else None
            # In a directory the command would follow links, which are not judged one by one.
            if facts and os.path.isdir(facts.resolved):
                self._by_mode("look", f"reading everything in {path}")
            self._read(path, directory, "read")
        for tree in reads.trees:
            self._read(tree, directory, "search", includes=reads.includes, shows_settings=reads.repository is None)
            facts = self._look(tree, directory) if reads.from_top else None
            # Some commands show the rest of the repository from any directory in it.
            for top in repository_roots(facts.resolved) if facts else ():
                if facts and top != facts.resolved and is_within(top, self._lookup.workspace):
                    self._read(top, None, "search", includes=reads.includes, shows_settings=False)
        for tree in reads.listed:
            self._read(tree, directory, "list")

    def check_listing(self, listed: ListedDirectories) -> None:
        """Judge the directories whose names the expansion of a command's words shows."""
        for directory in listed.directories:
            self._read(directory, None, "read")
        if not listed.is_certain and self.allow_scope is None:
            self._by_mode("look", "listing a directory whose path is known only when the command runs")

    def check_redirect(
        self, redirect: Redirect, targets: Sequence[str], directory: str | None, *, is_reading: bool
    ) -> None:
        """Judge a redirection with its expanded targets; `is_reading` if its command only reads."""
        allowed_by = self.allow_scope.finding if self.allow_scope and self.allow_scope.reach == "everything" else None
        for target in () if redirect.names_descriptor else targets:
            if _NETWORK.match(target):
                if allowed_by is None:
                    self._ask(f"{redirect.text} opens a network connection")
            elif redirect.operator in ("<", "<&"):
                self._read(target, directory, "read")
            elif (facts := self._look(target, directory)) is None:
                self._unknown_write(target, directory, redirect.text, allowed_by)
            else:
                if self._may_pass_link(target, facts, directory):
                    self._unknown_write(target, directory, redirect.text, allowed_by)
                self._note_target(facts)
                self._state.written.add(facts.resolved)
                self.findings.append(self._writing(facts, allowed_by=allowed_by))

    def check_invocation(self, context: ExecutionContext) -> None:
        """Judge the paths that a command changes or may change, and those it reads though it does not only read."""
        found, directory = context.invocation, context.directory
        place = directory
        if found.runs_in is not None:
            place = _below(directory, found.runs_in)
            self._may_change(Write(found.runs_in), directory)
        for path in found.works_in:
            self._work_in(path, directory)
        keeps_links = bool(context.words) and canonical_name(context.words[0]) in _KEEPS_LINKS
        for write in found.writes:
            self._write(write, place, keeps_link=keeps_links)
        for number, mention in enumerate(found.mentions):
            self._may_change(mention, place, is_looked_up=number < MAX_MENTIONS)
        for attached in found.attached[:MAX_MENTIONS]:
            self._may_change(attached, place)
            self._may_change_denied(attached.path, place)
            if _LOOKS_LIKE_PATH.match(attached.path):
                self._work_in(attached.path, place)
        if found.changes_tracked and self._denies_changes:
            self._doubt("it may change any tracked file of its repository, and rules deny some changes")
        for word in found.unknown[:MAX_MENTIONS]:
            # A bare word counts as a path only if a file of that name exists.
            if not _BARE.match(word) or (place is not None and os.path.lexists(f"{place}/{word}")):
                self._may_change_denied(word, place)
        is_client = bool(context.words) and canonical_name(context.words[0]) in group("shell_escapes")
        for code in found.code:
            self._code(code)
            if is_client:
                self._patterns_in(code)
        self._links += [(link, place) for link in found.links]
        for path in found.repositories:
            self._made += self.note_repository(path, place)
        self.check_copies(found, place)
        self._check_secrets(context.words, directory)
        self._check_sources(found, directory)

    def check_copies(self, found: Invocation, directory: str | None) -> None:
        """Judge copies of a directory or archive over an existing directory. A new directory replaces nothing."""
        for copy in found.copies:
            into = self._look(copy.into, directory)
            if into is None:
                continue  # An unknown target is judged as such.
            is_copy = copy.source is not None and not copy.is_archive
            source = self._look(copy.source or "", directory)
            if source is not None and is_copy and os.path.islink(source.lexical):
                self._links.append((source.resolved, directory))
            # Only an earlier part could make the source, or an archive of that name with the usual ending.
            places = (source.resolved, f"{source.resolved}.zip") if source and not self._state.has_changed else ()
            if not copy.is_merged or (places and not any(map(os.path.lexists, places))):
                continue
            if os.path.isdir(into.resolved) or self._state.may_have_made(into.resolved):
                what = "a directory that it copies over another" if is_copy else "an archive or patch"
                self.check_unknown(f"the files of {what}")

    def check_copied_links(self) -> None:
        """Judge targets again that a part which runs again may have reached through a link copied meanwhile."""
        if any(map(self._state.may_pass_link, self.targets)):
            self.check_unknown("files behind links that it copies")

    def note_copies(self, context: ExecutionContext) -> None:
        """Note what a command copies, moves, clones or unpacks, because later ones may change files through links."""
        found, state = context.invocation, self._state
        place = context.directory if found.runs_in is None else _below(context.directory, found.runs_in)
        for copy in found.copies:
            into, source = self._look(copy.into, place), self._look(copy.source or "", place)
            if into is None:
                continue  # An unknown target is judged as such.
            is_open = source is None or copy.is_archive or os.path.islink(source.lexical)
            if source is not None and any(is_within(link, source.resolved) for link in state.link_places):
                is_open = True
            held = None if is_open or source is None else source.resolved
            state.filled.append((held, into.resolved))
            # If `a` does not exist, the copy is `a` itself, not `a/b`.
            above, name = os.path.split(into.resolved)
            may_be_new = not os.path.isdir(above) or state.has_changed
            if (
                source
                and name == os.path.basename(source.lexical)
                and may_be_new
                and not is_within(source.resolved, above)
            ):
                state.filled.append((held, above))
        if found.links:
            state.link_places += self.targets

    def check_links(self) -> None:
        """Judge the targets of the links that it makes, because other commands may change them through these."""
        for path, directory in self._links:
            facts = self._look(path, directory)
            if facts is None:
                self.check_unknown(f"the target of the link to {_shown(path)}")
                continue
            found = self._writing(facts, allowed_by=self._allowance(facts))
            if found.decision == "allow" and self._denies_changes and os.path.isdir(facts.resolved):
                found = self._forbidden(facts, "write", whole=True) or found
            if found.decision != "allow":
                self._ask_for(found, f"a later command may change {facts.given} through the link to it")

    def note_repository(self, path: str, directory: str | None) -> list[str]:
        """Keep a directory of a repository's data that is made, if it is certain: nothing else may change it."""
        facts = self._look(path, directory)
        found = [facts.resolved] if facts else []
        self._state.repositories += found
        self._state.changed_trees += found
        return found

    def check_repositories(self, *, makes_trees: bool) -> None:
        """Judge its targets in the data of repositories that other parts make, before or after it.

        The directory itself may be made first, and removed, unless the command may fill or rename it (`makes_trees`).
        """
        for repository in {*self._state.repositories}.difference(self._made):
            inside = (one for one in self.targets if is_within(one, repository) and (makes_trees or one != repository))
            if target := next(inside, None):
                self._ask(f"{target} is changed, in a repository's data that the command makes")

    def check_assignment(self, name: str, values: Sequence[str], directory: str | None) -> None:
        """Judge a variable that may tell a command where to work or write."""
        if name.endswith("PATH"):
            return  # Lists of directories for programs and modules are only read.
        for value in values:
            if name in DATA_VARIABLES:
                self.note_repository(value, directory)
            if places_repository(name) and not is_known(value):
                self.check_unknown(f"files below {name}")
            elif not names_own_directory(name, value):
                self._may_change(Write(value), directory, is_looked_up=bool(value))
                for written in (value, f"{value}/x") if value else ():
                    self._may_change_denied(written, directory)  # Such as GIT_TRACE and TMPDIR.
            if self._rules.forbids_reading:
                self._may_read(value, directory)  # Such as BASH_ENV.

    def check_assigned_programs(self, assignments: Sequence[Assignment]) -> None:
        """Judge programs that a command may run because a variable names them."""
        for assignment in assignments:
            if " " in assignment.value.value:
                self._code(assignment.value.value)

    def check_patterns(self, words: Sequence[Word], *, fit_hidden: bool) -> None:
        """Judge patterns and braces in the words of a command that changes files: may one name a protected path?

        If the script makes patterns match hidden names (`fit_hidden`), any pattern may.
        """
        for word in words if not self._is_spelled_out else ():
            made = expand_braces(word)
            is_pattern = any(map(may_mean_protected, (part for one in made for part in _patterns(one))))
            # Which of the words that braces make is the target is easily overlooked.
            if is_pattern or (len(made) > 1 and any(protected_name(one.value) for one in made)):
                self._ask(f"{word.text or word.value} may name a protected path")
            elif fit_hidden and has_glob(word):
                self.check_unknown(f"the files that {word.text or word.value} matches")

    def check_moved_patterns(self, words: Sequence[Word], directory: str | None) -> None:
        """Judge patterns for files that an earlier part may have made, and that a command copies or moves elsewhere."""
        for word in words if self._state.has_changed else ():
            first = min((at for at in word.live if word.value[at] in "*?["), default=0)
            above = word.value[:first].rpartition("/")[0]
            place = self._look(above, directory) if above else None
            is_doubtful = place and (not os.path.isdir(place.resolved) or self._state.may_have_made(place.resolved))
            if is_doubtful or (place and self._may_pass_link(above, place, directory)):
                self.check_unknown(f"the files that {word.text or word.value} matches")

    def _check_secrets(self, words: Sequence[str], directory: str | None) -> None:
        """Find private paths among the words of a command that is not known to be read-only, its name included."""
        if shows_environments(words):
            self._doubt("it shows the environments of other processes")
        for path in dict.fromkeys(path for word in words[1:] for path in (word, *pieces_of(word))):
            if is_known(path) and "/" not in path and directory is not None:
                continue
            facts = self._look(path, directory)
            if facts is None:
                self._perhaps_private(path, directory)
            elif facts.private:
                self._doubt(f"{path} is private: {facts.private}")

    def _check_sources(self, found: Invocation, directory: str | None) -> None:
        """Judge the reads of a command that is not known to be read-only.

        Definite reads are judged like a read-only command's, but a pattern that allows the command does not cover
        those outside the workspace. Of possible reads only those that a rule forbids are reported.
        """
        for path in found.sources:
            self._read(path, directory, "source")
        for path in found.open_reads:
            # Without a rule, the mode decides about the whole command.
            self._unknown_read(path, directory, is_allowed=self.allow_scope is None or self._is_spelled_out)
        if not self._rules.forbids_reading:
            return
        for path in found.searches:
            facts = self._look(path, directory)
            if facts and (ruling := self._forbidden(facts, "search")):
                self._ask_for(ruling, f"files in {path} may be read")
        inside = (piece for text in (*found.code, *found.may_read) for piece in pieces_of(text))
        for text in dict.fromkeys((*found.may_read, *inside)):
            self._may_read(text, directory)

    def add_reasons_to_ask(self, reasons: Iterable[str]) -> None:
        """Add reasons to ask about a command, unless a rule spells the command out."""
        for reason in reasons:
            self._doubt(reason)

    def _read(
        self,
        path: str,
        directory: str | None,
        intent: Literal["read", "search", "list", "source"],
        *,
        includes: FileFilter | None = None,
        is_allowed: bool | None = None,
        shows_settings: bool = True,
    ) -> None:
        """Judge a read; if a rule allows it, the mode has nothing to add. A `source` is a file or a tree."""
        is_allowed = self._is_spelled_out if is_allowed is None else is_allowed
        facts = self._look(path, directory)
        if facts is None:
            self._unknown_read(path, directory, is_allowed=is_allowed)
            return
        if self._may_pass_link(path, facts, directory):
            self._unknown_read(path, directory, is_allowed=is_allowed)
        if intent == "source":
            intent = "search" if os.path.isdir(facts.resolved) else "read"
        state = self._state
        is_copied = any(source is None and is_within(into, facts.resolved) for source, into in state.filled)
        if is_copied and intent == "search" and self._rules.forbids_reading:
            self._ask(f"{_shown(path)} may contain a copy of a file that a rule forbids to read")
        found = state.judge.reading(
            None,
            facts,
            intent,
            state.mode,
            state.trace,
            relaxed=True,
            includes=includes,
            shows_settings=shows_settings,
        )
        if not facts.is_inside and not facts.is_device:
            self.targets.append(facts.resolved)
        if found.source != "mode" or not is_allowed:
            self.findings.append(found)

    def _unknown_read(self, path: str, directory: str | None, *, is_allowed: bool) -> None:
        """Judge a read whose path only the running shell knows."""
        self._perhaps_private(path, directory)
        if self._rules.forbids_reading:
            why = f"{_shown(path)} is known only when the command runs, and a rule forbids some reads"
            self.findings.append(Finding("ask", "rule", why))
        if not is_allowed:
            self._by_mode("look", f"reading {_shown(path)}, wherever that is,")

    def _write(self, write: Write, directory: str | None, *, keeps_link: bool = False) -> None:
        self._check_sweep(write, directory)
        facts = self._look(write.path, directory)
        if facts is None and write.includes is not None and not self._denies_changes:
            # Formatters often get listed names, and they change nothing but the layout.
            self._may_change(write, directory, is_looked_up=False)
        elif facts is None:
            self._unknown_write(write.path, directory, _shown(write.path), self._by_words)
        else:
            if self._may_pass_link(write.path, facts, directory, keeps_link=keeps_link):
                self._unknown_write(write.path, directory, _shown(write.path), self._by_words)
            self._note_target(facts)
            is_tree = write.below and os.path.isdir(facts.resolved)
            if is_tree and (found := self._forbidden(facts, "write", whole=True, includes=write.includes)):
                self._ask_for(found, f"files in {facts.given} may change")
            if (
                write.is_mount
                and self.allow_scope is None
                and self._lookup.why_tree_protected(facts, self._state.tree_search)
            ):
                self.check_unknown(f"files in {facts.given}")
            if write.whole and (too_much := self._lookup.why_too_much(facts)):
                self._doubt(f"{facts.given} is changed with everything in it: {too_much}")
            self.findings.append(self._writing(facts, whole=write.whole, allowed_by=self._allowance(facts)))

    def _check_sweep(self, write: Write, directory: str | None) -> None:
        """Judge a pathspec whose files are restored, removed or cleaned: may protected ones be among them?"""
        place = self._look(".", directory)
        if write.reach is None or place is None or not is_known(write.path):
            return
        repository = next(iter(repository_roots(place.resolved)), place.resolved)
        top, pattern = swept_top(write.path, place.resolved, repository)
        is_current = not self._state.has_changed
        if hit := hit_by_git(top, pattern, repository, write.reach, is_index_current=is_current):
            self._doubt(f"it may change or remove {hit}, which is protected")
        facts = self._look(top, None) if self.allow_scope and not self._covers and pattern == "*" else None
        if facts and (too_much := self._lookup.why_too_much(facts)):
            self._doubt(f"{_shown(write.path)} is changed with everything in it: {too_much}")

    def _note_target(self, facts: PathFacts) -> None:
        if not facts.is_device:
            self.targets.append(facts.resolved)
            self._state.writes_outside |= not facts.is_inside

    def _allowance(self, facts: PathFacts) -> Finding | None:
        """Return the finding that allows a change: `allow bash(cp:*)` is not meant for targets anywhere."""
        covers = self.allow_scope is None or self._covers or facts.is_inside
        return self._by_words if covers else None

    def _writing(self, facts: PathFacts, *, whole: bool = False, allowed_by: Finding | None = None) -> Finding:
        state = self._state
        return state.judge.writing(
            *(None, facts, state.mode, state.trace),
            whole=whole,
            allowed_by=allowed_by,
            is_spelled=self._is_spelled_out and self._by_words.source == "rule",
            tree_search=state.tree_search,
        )

    def _unknown_write(self, path: str, directory: str | None, what: str, allowed_by: Finding | None) -> None:
        """Judge a write whose target only the running shell knows. Its known components may still be protected."""
        known = [name for name in path.split("/") if UNKNOWN not in name]
        around = self._look(".", directory) if not path.startswith("/") else None
        if why := protected_name("/".join(known)):
            self._doubt(f"{_shown(path)} is protected: {why}")
        elif why := self._lookup.may_be_private(known) or (around and self._lookup.why_protected(around)):
            self._state.is_confined |= self._state.unknown_targets == "sandbox"
            self._ask(f"{_shown(path)} may be protected: {why}")
        else:
            self._unknown_targets(what, allowed_by)

    def check_unknown(self, what: str) -> None:
        """Judge changes of files that only the running shell knows, or by commands that only it knows."""
        self._unknown_targets(what, self._by_words)

    def _unknown_targets(self, what: str, allowed_by: Finding | None) -> None:
        """Judge a change of files that only the running shell knows.

        Args:
            what: the files, for the user.
            allowed_by: the finding that would allow the change of any file of the workspace; None for the mode's.
        """
        by_mode = finding_for_mode(self._state.mode, "effect", f"changing {what}, wherever that is,")
        found = allowed_by or by_mode
        # A rule for a command does not spell out the target of its redirection.
        if self._is_spelled_out and allowed_by is not None:
            # A grant answers a question that promised the sandbox.
            by_grant = self.allow_scope is not None and self.allow_scope.finding.source == "grant"
            self._state.is_confined_by_grant |= by_grant and self._state.unknown_targets == "sandbox"
            self.findings.append(found)
        elif self._denies_changes:
            # An approval, too, lets the command run only in the sandbox: a deny rule must not widen what it can do.
            self._state.is_confined |= self._state.unknown_targets == "sandbox"
            reason = f"{what} is known only when the command runs, and rules deny some changes"
            self.findings += [Finding("ask", "floor", reason), by_mode]
        elif self._state.unknown_targets == "sandbox":
            self._state.trace.append(f"unknown targets: {what}: only in the sandbox")
            self._state.is_confined = True
            self.findings.append(found)
        elif self._state.unknown_targets == "allow" or found.decision != "allow":
            self.findings.append(found if self._covers else by_mode)
        else:
            reason = f"tui-agent cannot determine which files it changes ({what}), and it would not run in the sandbox"
            self.findings += [Finding("ask", "floor", reason), *([] if self._covers else [by_mode])]

    # --- possible effects ---------------------------------------------------------------------------------------------

    def _may_change(self, write: Write, directory: str | None, *, is_looked_up: bool = True) -> None:
        """Judge a path that a command changes or only reads: is it protected?"""
        facts = self._look(write.path, directory) if is_looked_up and not self._is_spelled_out else None
        if facts is None:
            why = protected_name(write.path.replace(UNKNOWN, ""))
        else:
            why = self._lookup.why_protected(facts) or (
                write.whole and self._lookup.why_tree_protected(facts, self._state.tree_search)
            )
        if why:
            self._doubt(f"{_shown(write.path)} may be changed: {why}")

    def _may_change_denied(self, path: str, directory: str | None, what: str = "{} may be changed") -> None:
        """Judge a path that perhaps changes: does a rule deny that?"""
        facts = self._look(path, directory) if self._denies_changes and not self._is_spelled_out else None
        found = self._forbidden(facts, "write") if facts else None
        if found and found.decision == "deny":
            self._ask_for(found, what.format(_shown(path)))

    def _may_read(self, text: str, directory: str | None) -> None:
        """Judge a text that may be the path of a read that a rule forbids.

        A bare word counts as a path only if a file of that name exists.
        """
        facts = self._look(text, directory) if len(text) <= MAX_LENGTH else None
        is_path = facts and (not _BARE.match(text) or os.path.lexists(facts.resolved))
        if facts and is_path and (found := self._forbidden(facts, "read")):
            self.findings.append(found)

    def _perhaps_private(self, path: str, directory: str | None) -> None:
        if not self._is_spelled_out and (why := self._lookup.why_maybe_private(path, directory)):
            self._ask(f"{_shown(path)} may be private: {why}")

    def _work_in(self, path: str, directory: str | None) -> None:
        """Judge a directory that a command works in: a rule such as `allow bash(make:*)` is meant for the workspace."""
        facts = self._look(path, directory) if self.allow_scope and not self._covers else None
        if facts and not facts.is_inside and not facts.is_device:
            self._by_mode("effect", f"changing {_shown(path)}, outside the workspace,")

    def _code(self, code: str) -> None:
        """Judge a program in another language that names a protected path."""
        writes = CODE_WRITES.search(code) is not None
        decoded = pieces_of(unquote(code)) if "file:" in code and "%" in code else ()
        for piece in dict.fromkeys((*pieces_of(code), *decoded)):
            facts = self._look(piece, self._lookup.workspace) if "/" in piece else None
            why = protected_name(piece) or ("it is private" if facts and facts.private else None)
            if why:
                self._doubt(f"code that {'may change' if writes else 'names'} {piece}: {why}")
            elif not is_known(piece) and any(map(may_mean_protected, re.sub(_MARK, "*", piece).split("/"))):
                self._doubt(f"code that may name {_shown(piece)}")
            elif writes and names_project_definition(piece):
                self._doubt(f"code that may change {piece}: agents take hooks, skills and commands from there")
            elif writes:
                self._may_change_denied(piece, self._lookup.workspace, "code that may change {}")

    def _patterns_in(self, code: str) -> None:
        """Judge patterns and escapes in the commands of an editor or a client, which expands them in file names."""
        writes = CODE_WRITES.search(code) is not None
        for word in _BETWEEN_NAMES.split(code.translate(_WITHOUT_QUOTES)):
            pattern = _EXPANDED.sub("*", word)
            if writes and any(map(may_mean_protected, pattern.split("/"))):
                self._doubt(f"code that may name a protected path as {_shown(word)}")
            elif writes and (why := protected_name(pattern)):
                self._doubt(f"code that names {pattern}: {why}")
            elif not _EXPANDED.search(word) or not pattern.strip("*/") or not ("/" in word or "." in word):
                continue
            elif writes and self._denies_changes:
                self.check_unknown(f"the files that {_shown(word)} matches")
            elif self._rules.forbids_reading:
                self._unknown_read(UNKNOWN, None, is_allowed=True)

    def check_fed(self, codes: Iterable[str]) -> None:
        """Judge programs that other commands print: a rule may deny to change what they name."""
        pieces = (piece for code in codes for piece in pieces_of(code)) if self._denies_changes else ()
        for piece in dict.fromkeys(pieces):
            self._may_change_denied(piece, self._lookup.workspace, "code that may change {}")

    def check_places(self, words: Sequence[str], directory: str | None) -> None:
        """Judge what a rule for a command's first words is not meant for: places and addresses outside the workspace.

        Args:
            words: the command's own name and arguments. The name may be one that a runner gets, such as `uv run ../x`.
            directory: the directory in which it runs.
        """
        name, scope = canonical_name(words[0]) if words else "", self.allow_scope
        spelled, starts = (scope.spelled, tuple(scope.starts)) if scope else (frozenset[str](), ())
        is_judged = name not in group("other_places") | group("takes_strings")
        for before, word in pairwise(("", *words) if is_judged else ()):
            if word in spelled or before in group("read_messages") or (not before and word.startswith(starts)):
                continue
            address = _ADDRESS.match(word)
            takes_any = name in group("web_clients") | group("downloaders") or not _TAKES_ADDRESS.isdisjoint(words)
            is_value = word.startswith("-") or before.startswith("-")
            if address and not takes_any and not is_value and not _OF_THIS_MACHINE.match(word):
                self._by_mode("effect", f"the address {_shown(word)}")
            for path in () if address else _PLACE.findall(word):
                self._read(path.lstrip(",:=@"), directory, "read", is_allowed=not is_known(path))

    # --- findings -----------------------------------------------------------------------------------------------------

    def _forbidden(
        self, facts: PathFacts, intent: Intent, *, whole: bool = False, includes: FileFilter | None = None
    ) -> Finding | None:
        """Return the finding of a rule that denies an access or asks about it, or None."""
        found = self._rules.judge_path(None, facts, intent, self._state.trace, whole=whole, includes=includes)
        return found if found and found.decision != "allow" else None

    def _ask(self, reason: str) -> None:
        self.findings.append(Finding("ask", "floor", reason))

    def _doubt(self, reason: str) -> None:
        """Ask about something possible, unless a rule spells the command out."""
        if not self._is_spelled_out:
            self._ask(reason)

    def _ask_for(self, found: Finding, what: str) -> None:
        """Add a finding that would refuse something certain, as a question about something possible."""
        self.findings.append(replace(found, decision="ask", reason=f"{what}: {found.reason}"))

    def _by_mode(self, access_kind: AccessKind, what: str) -> None:
        self.findings.append(finding_for_mode(self._state.mode, access_kind, what))

    def _look(self, path: str, directory: str | None) -> PathFacts | None:
        """Return the facts of a path, or None if the path is not certain."""
        if not is_known(path) or not path or (directory is None and not path.startswith(("/", "~"))):
            return None
        self._state.lookups_left -= 1
        if self._state.lookups_left < 0:
            if self._state.lookups_left == -1:
                self._ask(f"it names more than {MAX_LOOKUPS} paths")
            return None
        # Like `/dev/null`, a pipe to another command is not a file of its own; the other command is judged separately.
        return self._lookup.look("/dev/null" if path == PIPE else path, directory)

    def _may_pass_link(self, path: str, facts: PathFacts, directory: str | None, *, keeps_link: bool = False) -> bool:
        """True if a path may lead through a link that an earlier part copied.

        Args:
            path: as the command names it.
            facts: its facts.
            directory: directory that it is relative to.
            keeps_link: the command does not follow a link of this name.
        """
        if not self._state.filled:
            return False
        whole = path if path.startswith(("/", "~")) else f"{directory}/{path}"
        # `..` after a link leads above the link's target.
        passed = [self._lookup.look(whole[: up.start()] or "/").resolved for up in _UP.finditer(whole)]
        is_kept = keeps_link and not path.endswith("/")
        passed.append(os.path.dirname(facts.resolved) if is_kept else facts.resolved)
        return any(map(self._state.may_pass_link, passed))


def _below(directory: str | None, path: str) -> str | None:
    if not is_known(path):
        return None
    if path.startswith("/"):
        return path
    return None if directory is None else f"{directory}/{path}"


def _shown(path: str) -> str:
    return "".join(letter if letter.isprintable() else "…" for letter in path)


def _patterns(word: Word) -> Iterator[str]:
    """Yield the components of a word that contain an unquoted pattern."""
    start = 0
    for component in word.value.split("/") if has_glob(word) else ():
        end = start + len(component)
        if any(start <= at < end and word.value[at] in "*?[" for at in word.live):
            yield component
        start = end + 1
