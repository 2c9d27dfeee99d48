"""The answers to an approval request at each step of its dialog, the rule that an answer would store, and their rows.

Pure. The rule is shown word for word before it is stored, with its file and the requests it would have answered. It is
one of those offered, or a typed one that the policy accepts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalRequest, GrantScope
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.decision_rows import beside, exact_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible
from tui_agent.ui.text.styled_lines import choice_runs, clipped, hard_wrapped, wrapped

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.configuration.permission_rules import RuleImpact

# --- rules ------------------------------------------------------------------------------------------------------------

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
        """Return why a typed text is refused, or what it would have answered; `with_past` takes a moment."""
        if refusal := self.refusal(text):
            return wrapped([(visible(refusal), "error")], width)
        return self._past_rows(text, width) if with_past else [Line((("This rule can be stored.", "muted"),))]

    def rows(self, width: int, *, fixed: bool = False) -> list[Line]:
        """Return the rule, its lifetime, file and removal, and what it would have answered; `fixed` hides its keys."""
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
            rows.extend(beside(label, lambda room, file=file: hard_wrapped([(file, "exact")], room), width, least=16))
        return rows

    def _past_rows(self, rule: str, width: int) -> list[Line]:
        # Comparing all calls of the session takes a moment, and each redraw asks again.
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


# --- answers ----------------------------------------------------------------------------------------------------------

AnswerStep = Literal["asking", "confirming", "typing", "explaining", "adding", "editing"]
"""The dialog's content: the request, the rule to store or its editor, a line for a reason or a remark, or the editor of
the input."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer in the row of keys."""

    action: str
    """Its action; empty for an answer by a key of a text field."""
    key: str
    """Label of its key."""
    text: str
    """A word or two behind the key."""
    counts: bool = True
    """True if the answer would count now; otherwise it is dim."""
    is_at_cursor: bool = False
    """True if enter gives this answer."""

    @property
    def cells(self) -> int:
        """Width of key and text."""
        return cell_len(" ".join(filter(None, (self.key, self.text))))


MAX_ANSWER_ROWS = 4
"""Rows for all answers; if they need more, the last answers lose their texts."""

_FIRST = ("approve_once", "deny", "list_all", "deny_with_reason", "not_now")
"""The answers in the row of keys; the others are behind the key that shows all."""
_ANSWERS = (
    "approve_once",
    "deny",
    "list_all",
    "deny_with_reason",
    "approve_session",
    "approve_always",
    "edit_input",
    "choose_parts",
    "whole_diffs",
    "not_now",
    "why",
    "skip",
    "approve_with_note",
)
"""The answers, most used first."""
_GAP = "  "
"""Cells between two answers."""


def offered_answers(
    request: ApprovalRequest, offer: RuleOffer, total: int, *, has_parts: bool = False, has_text: bool = True
) -> tuple[str, ...]:
    """Return the actions that answer a request, most used first."""
    approves, denies = "approve" in request.options, "deny" in request.options
    is_plan = request.question is not None and request.question.kind == "plan"
    offered = {
        "approve_once": approves,
        "approve_session": approves and (bool(offer) or is_plan),
        "approve_always": approves and bool(offer) and bool(offer.scopes),
        # A tool server receives no words with an answer.
        "approve_with_note": approves and request.question is None,
        "edit_input": approves and (request.question is None or is_plan) and has_text,
        "choose_parts": approves and has_parts,
        "whole_diffs": request.changes is not None and any(file.has_more for file in request.changes.files),
        "deny": denies,
        "deny_with_reason": denies and (request.question is None or is_plan),
        "skip": "skip" in request.options and not is_plan,
        # No rule decides about a plan.
        "why": not is_plan,
        "list_all": total > 1,
    }
    order = (*_PLAN_TEXTS, *_ANSWERS) if is_plan else _ANSWERS
    order = order if request.changes is None else (*_TRIAL_TEXTS, *_ANSWERS)
    return tuple(action for action in dict.fromkeys(order) if offered.get(action, True))


_TRIAL_TEXTS = {
    "approve_once": "keep",
    "deny": "discard",
    "list_all": "",
    "deny_with_reason": "discard, because",
    "choose_parts": "keep some",
    "whole_diffs": "whole diffs",
    "approve_session": "session",
    "approve_always": "always",
    "not_now": "",
    "edit_input": "edit a text",
    "approve_with_note": "keep, and …",
}
"""Texts of answers about changes, most used first; empty for those that all questions have."""


_PLAN_TEXTS = {
    "approve_once": "yes, ask about changes",
    "approve_session": "yes, accept edits",
    "deny_with_reason": "change …",
    "edit_input": "edit",
    "deny": "no",
    "not_now": "",
}
"""Texts of answers about a plan."""


def answer_choices(
    step: AnswerStep,
    offer: RuleOffer,
    offered: Iterable[str],
    total: int,
    *,
    is_trial: bool = False,
    is_plan: bool = False,
) -> list[Choice]:
    """Return the answers at a step."""
    yes, no = ("keep", "discard") if is_trial else ("yes", "no")
    back = _choice("not_now", "back")
    if is_plan and step == "explaining":
        return [Choice("", "enter", "change it so"), back]
    if is_plan and step == "editing":
        return [_choice("run_edited", "show the plan"), _choice("edit_outside"), back]
    if step == "explaining":
        return [Choice("", "enter", f"{no}, for this reason"), back]
    if step == "adding":
        return [Choice("", "enter", f"{yes}, with this remark"), back]
    if step == "typing":
        return [_choice("run_edited", "use this rule"), back]
    if step == "editing":
        return [_choice("run_edited", "keep this" if is_trial else ""), _choice("edit_outside"), back]
    if step == "confirming" and not offer.lasting:
        return [_choice("approve_session", f"{yes}, with this rule"), back]
    if step == "confirming":
        keys = {
            "project": _choice("approve_always", f"{yes}, in this project"),
            "user": _choice("for_user", f"{yes}, in every project"),
        }
        return [*(keys[scope] for scope in offer.scopes), back]
    texts = {"approve_once": "yes", "approve_session": "session", "list_all": f"all {total}", "not_now": "later"}
    others = _TRIAL_TEXTS if is_trial else _PLAN_TEXTS if is_plan else {}
    texts |= {action: text for action, text in others.items() if text}
    return [_choice(action, texts.get(action, "")) for action in offered]


def first_answers(choices: Sequence[Choice], width: int) -> list[Choice]:
    """Return the answers of the row of keys, and the key that shows all, as far as they fit."""
    shown = [choice for choice in choices if choice.action in _FIRST]
    fewer = [choice for choice in shown if choice.action != "deny_with_reason"]
    more = _choice("more")
    # The reason goes first: it is one key behind `more`.
    rows = ([*shown, more], [*fewer, more], [*fewer, replace(more, text="")], fewer)
    return next((row for row in rows if _columns(row, 1, width) is not None), fewer)


def answer_rows(choices: Sequence[Choice], width: int, most: int) -> list[Line]:
    """Return the answers with their texts in one row if they fit it, else in as few rows as hold them, in columns.

    If `most` rows do not hold them, the last answers lose their texts first.
    """
    for rows in range(1, most + 1):
        if (found := _columns(choices, rows, width)) is not None:
            return _lines(found)
    shown = list(choices)
    for place in range(len(shown) - 1, -1, -1):
        shown[place] = replace(shown[place], text="")
        if (found := _columns(shown, most, width)) is not None:
            return _lines(found)
    runs = [run for row in _lines([[(choice, 0) for choice in shown]]) for run in row.runs]
    return wrapped(runs, width)[:most]


def _columns(choices: Sequence[Choice], rows: int, width: int) -> list[list[tuple[Choice, int]]] | None:
    """Return the answers of each row with their cells; None if they do not fit."""
    across = -(-len(choices) // rows)
    table = [choices[start : start + across] for start in range(0, len(choices), across)]
    cells = [max(row[column].cells for row in table if column < len(row)) for column in range(across)]
    if sum(cells) + len(_GAP) * (across - 1) > width:
        return None
    return [[(choice, cells[column]) for column, choice in enumerate(row)] for row in table]


def _lines(table: Sequence[Sequence[tuple[Choice, int]]]) -> list[Line]:
    lines: list[Line] = []
    for row in table:
        runs: list[Run] = []
        for choice, cells in row:
            gap = " " * max(0, cells - choice.cells) + _GAP
            runs += choice_runs(choice.key, choice.text, gap, counts=choice.counts, is_at_cursor=choice.is_at_cursor)
        lines.append(Line(tuple(runs)))
    return lines


def _choice(action: str, text: str = "") -> Choice:
    entry = command(f"approval.{action}")
    return Choice(action, entry.key_text, text or entry.text)
