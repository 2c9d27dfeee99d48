"""The answers to an approval request at each step of its dialog, and the rows that show them. Pure."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len

from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.styled_lines import wrapped

from .rule_offer import RuleOffer

AnswerStep = Literal["asking", "confirming", "typing", "explaining", "adding", "editing"]
"""The dialog's content: the request, the rule to store or its editor, a line for a reason or a remark, or the editor of
the input."""

MAX_ANSWER_ROWS = 4
"""Rows for all answers; if they need more, the last answers lose their texts."""

_ANSWERS = (
    "approve_once",
    "deny",
    "deny_with_reason",
    "approve_session",
    "approve_always",
    "edit_input",
    "list_all",
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
    "deny_with_reason": "discard, because",
    "choose_parts": "keep some",
    "whole_diffs": "whole diffs",
    "approve_session": "session",
    "approve_always": "always",
    "list_all": "",
    "not_now": "",
    "edit_input": "edit a text",
    "approve_with_note": "keep, and …",
}
"""Texts of answers about changes, most used first; empty for those that all questions have."""


def answer_choices(
    step: AnswerStep, offer: RuleOffer, offered: Iterable[str], total: int, *, is_trial: bool = False
) -> list[tuple[str, str]]:
    """Return key and text of each answer at a step.

    Args:
        step: the step.
        offer: the rule that an answer may store.
        offered: the actions that answer the request.
        total: number of waiting requests.
        is_trial: True if the request is about the changes of a command.
    """
    yes, no = ("keep", "discard") if is_trial else ("yes", "no")
    back = (command("approval.not_now").key_text, "back")
    if step == "explaining":
        return [("enter", f"{no}, for this reason"), back]
    if step == "adding":
        return [("enter", f"{yes}, with this remark"), back]
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


def answer_rows(choices: Sequence[tuple[str, str]], width: int, most: int, *, counts: bool) -> list[Line]:
    """Return the answers with their texts in one row if they fit it, else in as few rows as hold them, in columns.

    If `most` rows do not hold them, the last answers lose their texts first.

    Args:
        choices: key and text of each answer, most used first.
        width: cells of a row.
        most: number of rows.
        counts: True if an answer given now counts; otherwise they are dim.
    """
    for rows in range(1, most + 1):
        if (found := _columns(choices, rows, width)) is not None:
            return _lines(found, counts=counts)
    shown = list(choices)
    for place in range(len(shown) - 1, -1, -1):
        shown[place] = (shown[place][0], "")
        if (found := _columns(shown, most, width)) is not None:
            return _lines(found, counts=counts)
    runs = [run for row in _lines([[(key, "", 0) for key, _ in shown]], counts=counts) for run in row.runs]
    return wrapped(runs, width)[:most]


def most_used(choices: Sequence[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    """Return the answers that fit one row with their texts; behind them, if some do not, the key that shows all."""
    if _columns(choices, 1, width) is not None:
        return list(choices)
    more = _choice("more")
    shown = list(choices)
    while shown and _columns([*shown, more], 1, width) is None:
        shown.pop()
    return [*shown, more]


def _columns(choices: Sequence[tuple[str, str]], rows: int, width: int) -> list[list[tuple[str, str, int]]] | None:
    """Return key, text and cells of the answers of each row; None if they do not fit."""
    across = -(-len(choices) // rows)
    table = [choices[start : start + across] for start in range(0, len(choices), across)]
    cells = [max(_cells(row[column]) for row in table if column < len(row)) for column in range(across)]
    if sum(cells) + len(_GAP) * (across - 1) > width:
        return None
    return [[(key, text, cells[column]) for column, (key, text) in enumerate(row)] for row in table]


def _cells(choice: tuple[str, str]) -> int:
    return cell_len(" ".join(filter(None, choice)))


def _lines(table: Sequence[Sequence[tuple[str, str, int]]], *, counts: bool) -> list[Line]:
    lines: list[Line] = []
    for row in table:
        runs: list[Run] = []
        for key, text, cells in row:
            runs.append((key, "key" if counts else "muted"))
            rest = f" {text}" if text else ""
            runs.append((rest + " " * max(0, cells - cell_len(key + rest)) + _GAP, "" if counts else "muted"))
        lines.append(Line(tuple(runs)))
    return lines


def _choice(action: str, text: str = "") -> tuple[str, str]:
    entry = command(f"approval.{action}")
    return entry.key_text, text or entry.text
