"""The rule that an answer would store, the file it would go to, and the requests it would have answered. Pure.

The rule is shown word for word before it is stored. It is one of those offered, or a typed one that the policy accepts.
"""

from typing import TYPE_CHECKING

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalRequest, GrantScope
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.argument_rows import beside, exact_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible
from tui_agent.ui.text.styled_lines import clipped, folded, wrapped

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.configuration.permission_rules import RuleImpact

MAX_LISTED_CALLS = 3
"""Calls of this session that are listed; the others are only counted."""


class RuleOffer:
    """The rules that one request offers, one of them chosen."""

    def __init__(self, request: ApprovalRequest, facts: "RuleImpact | None") -> None:
        self._request = request
        self._facts = facts
        self._past: dict[str, tuple[str, ...]] = {}
        self._typed: str | None = None
        proposed = request.session_rule
        self._rules = request.rules if proposed in request.rules else (proposed,) if proposed is not None else ()
        self._chosen = self._rules.index(proposed) if proposed is not None else 0
        self.lasting = False
        """True if the rule is to outlive the session."""

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def rule(self) -> str:
        """The chosen rule; a set of rules has one on each line."""
        return self._rules[self._chosen] if self._typed is None else self._typed

    @property
    def scopes(self) -> tuple[GrantScope, ...]:
        """Scopes in which a lasting rule can be stored."""
        lasting: tuple[GrantScope, ...] = ("project", "user")
        return tuple(scope for scope in lasting if self._file_of(scope) is not None)

    def _file_of(self, scope: GrantScope) -> str | None:
        """Return the file that keeps rules of a scope; None: none does."""
        return self._facts.file_of(scope) if self._facts is not None else None

    @property
    def can_change(self) -> tuple[bool, bool]:
        """True for a narrower rule, and true for a wider one, if there is one."""
        if self._typed is not None:
            return True, True
        return self._chosen > 0, self._chosen < len(self._rules) - 1

    def change(self, by: int) -> bool:
        """Choose a wider (+1) or narrower (-1) rule, after a typed one a proposed one; return False if none exists."""
        if self._typed is not None:
            self._typed = None
            return True
        place = self._chosen + by
        if not 0 <= place < len(self._rules):
            return False
        self._chosen = place
        return True

    def refusal(self, text: str) -> str:
        """Return why a typed rule may not be stored, in words; empty if it may."""
        tool, args = self._request.tool, self._request.args
        if (changes := self._request.changes) is not None:
            # A rule on paths keeps changes, whatever the command.
            paths = [*(file.path for file in changes.files), *(tree.path for tree in changes.trees)]
            tool, args = "edit", {"path": paths[0] if paths else ""}
        if text in self._rules:
            return ""
        if self._facts is None:
            return "Rules can only be taken as proposed here."
        return self._facts.refusal(text, tool, args)

    def type(self, text: str) -> None:
        """Choose a rule that was typed and not refused."""
        if text in self._rules:
            self._typed, self._chosen = None, self._rules.index(text)
        else:
            self._typed = text

    def typed_rows(self, text: str, width: int, *, with_past: bool) -> list[Line]:
        """Return what a text means while it is typed: why it is refused, or what it would have answered.

        Args:
            text: the rule, one on each line.
            width: cells of a row.
            with_past: False to leave out earlier requests, which take a moment to find.
        """
        if refusal := self.refusal(text):
            return wrapped([(visible(refusal), "error")], width)
        return self._past_rows(text, width) if with_past else [Line((("This rule can be stored.", "muted"),))]

    def rows(self, width: int, *, fixed: bool = False) -> list[Line]:
        """Return the rule, its lifetime and file, how to remove it, and the requests it would have answered.

        Args:
            width: cells of a row.
            fixed: True to leave out the keys that change the rule.
        """
        what = "kept without a question:" if self._request.changes is not None else "also allowed:"
        rows = wrapped([(f"{'From now on' if self.lasting else 'For this session'} {what}", "warning")], width)
        for rule in self.rule.split("\n"):
            rows.extend(exact_rows(rule, width))
        if not fixed:
            rows.extend(self._choice_rows(width))
        if self.lasting:
            rows.append(Line())
            rows.extend(self._file_rows(width))
            rows.extend(wrapped([("To undo this, delete the rule there.", "muted")], width))
        return [*rows, Line(), *self._past_rows(self.rule, width)]

    def _choice_rows(self, width: int) -> list[Line]:
        """Return the key that edits the rule, and those to the other proposals."""
        edit = command("approval.edit_input").key_text
        runs: list[Run] = [(edit, "key"), (" edit the rule   ", "")]
        if len(self._rules) < 2 and self._typed is None:
            return [Line(clipped(runs, width))]
        for name, there in zip(("narrower", "wider"), self.can_change, strict=True):
            entry = command(f"approval.{name}")
            runs += [(entry.key_text, "key" if there else "muted"), (f" {entry.text}   ", "" if there else "muted")]
        place = f"{self._chosen + 1} of {len(self._rules)}" if self._typed is None else "yours"
        runs.append((place, "muted"))
        return [Line(clipped(runs, width))]

    def _file_rows(self, width: int) -> list[Line]:
        words = {"project": ("approval.approve_always", "this project"), "user": ("approval.for_user", "every project")}
        rows: list[Line] = []
        for scope in self.scopes:
            name, text = words[scope]
            file = visible(self._file_of(scope) or "")
            label = f"{command(name).key_text}  {text}"
            rows.extend(beside(label, lambda room, file=file: folded([(file, "exact")], room), width, least=16))
        return rows

    def _past_rows(self, rule: str, width: int) -> list[Line]:
        if rule not in self._past:
            facts = self._facts
            self._past[rule] = () if facts is None else tuple(facts.answered(rule, self._request.call_id))
        calls = self._past[rule]
        if not calls:
            return wrapped([("It would have answered no other question of this session.", "muted")], width)
        count = count_text(len(calls), "more question")
        rows = wrapped([(f"It would have answered {count} of this session:", "muted")], width)
        rows.extend(
            Line((("  ", ""), (one_line(joined_lines(call), width - 2), "muted"))) for call in calls[-MAX_LISTED_CALLS:]
        )
        return rows
