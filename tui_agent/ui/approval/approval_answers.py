"""The answers to an approval request at each step of its dialog, and the rows that show them. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import cell_len

from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.styled_lines import choice_runs, wrapped

from .rule_offer import RuleOffer

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
    """Return the actions that answer a request, most used first.

    Args:
        request: the request.
        offer: the rule that an answer may store.
        total: number of waiting requests.
        has_parts: True if the user can choose parts of the change.
        has_text: False if there is no text to edit.
    """
    approves, denies = "approve" in request.options, "deny" in request.options
    offered = {
        "approve_once": approves,
        "approve_session": approves and bool(offer),
        "approve_always": approves and bool(offer) and bool(offer.scopes),
        "approve_with_note": approves and request.question is None,
        "edit_input": approves and request.question is None and has_text,
        "choose_parts": approves and has_parts,
        "whole_diffs": request.changes is not None and any(file.has_more for file in request.changes.files),
        "deny": denies,
        "deny_with_reason": denies and request.question is None,
        "skip": "skip" in request.options,
        "list_all": total > 1,
    }
    order = _ANSWERS if request.changes is None else (*_TRIAL_TEXTS, *_ANSWERS)
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


def answer_choices(
    step: AnswerStep, offer: RuleOffer, offered: Iterable[str], total: int, *, is_trial: bool = False
) -> list[Choice]:
    """Return the answers at a step.

    Args:
        step: the step.
        offer: the rule that an answer may store.
        offered: the actions that answer the request.
        total: number of waiting requests.
        is_trial: True if the request is about the changes of a command.
    """
    yes, no = ("keep", "discard") if is_trial else ("yes", "no")
    back = _choice("not_now", "back")
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
    texts |= {action: text for action, text in _TRIAL_TEXTS.items() if text} if is_trial else {}
    return [_choice(action, texts.get(action, "")) for action in offered]


def first_answers(choices: Sequence[Choice], width: int) -> list[Choice]:
    """Return the answers of the row of keys, and the key that shows all, as far as they fit."""
    shown = [choice for choice in choices if choice.action in _FIRST]
    fewer = [choice for choice in shown if choice.action != "deny_with_reason"]
    more = _choice("more")
    rows = ([*shown, more], [*fewer, more], [*fewer, replace(more, text="")], fewer)
    return next((row for row in rows if _columns(row, 1, width) is not None), fewer)


def answer_rows(choices: Sequence[Choice], width: int, most: int) -> list[Line]:
    """Return the answers with their texts in one row if they fit it, else in as few rows as hold them, in columns.

    If `most` rows do not hold them, the last answers lose their texts first.

    Args:
        choices: the answers, most used first.
        width: cells of a row.
        most: number of rows.
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
