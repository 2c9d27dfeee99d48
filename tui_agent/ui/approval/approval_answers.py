"""The answers to an approval request at each step of its dialog, and the rows that show them. Pure."""

from collections.abc import Iterable, Sequence
from typing import Literal

from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.base.commands import command
from tui_agent.ui.text.styled_lines import Line, Run, wrapped

from .rule_offer import RuleOffer

AnswerStep = Literal["asking", "confirming", "explaining", "editing"]
"""The dialog's content: the request, the rule to store, a line for the reason, or the input editor."""

MAX_ANSWER_ROWS = 2
"""Rows for the answers; if they need more, only their keys are shown."""

_ANSWERS = (
    "approve_once",
    "approve_session",
    "approve_always",
    "edit_input",
    "deny",
    "deny_with_reason",
    "skip",
    "list_all",
    "not_now",
    "why",
)
_TIED = "\u00a0"
"""Replaces a blank at which a row must not break."""


def offered_answers(request: ApprovalRequest, offer: RuleOffer, total: int) -> tuple[str, ...]:
    """Return the actions that answer one of `total` requests, in the order of the table of commands."""
    approves, denies = "approve" in request.options, "deny" in request.options
    offered = {
        "approve_once": approves,
        "approve_session": approves and bool(offer),
        "approve_always": approves and bool(offer) and bool(offer.scopes),
        "edit_input": approves,
        "deny": denies,
        "deny_with_reason": denies,
        "skip": "skip" in request.options,
        "list_all": total > 1,
    }
    return tuple(action for action in _ANSWERS if offered.get(action, True))


def answer_choices(step: AnswerStep, offer: RuleOffer, offered: Iterable[str], total: int) -> list[tuple[str, str]]:
    """Return key and text of each answer at a step."""
    back = (command("approval.not_now").key_text, "back")
    if step == "explaining":
        return [("enter", "no, for this reason"), back]
    if step == "editing":
        return [_choice("run_edited"), back]
    if step == "confirming" and not offer.lasting:
        return [_choice("approve_session", "yes, with this rule"), back]
    if step == "confirming":
        keys = {
            "project": _choice("approve_always", "yes, in this project"),
            "user": _choice("for_user", "yes, in every project"),
        }
        return [*(keys[scope] for scope in offer.scopes), back]
    texts = {"list_all": f"all {total}"}
    return [_choice(action, texts.get(action, "")) for action in offered]


def answer_rows(choices: Sequence[tuple[str, str]], width: int, most: int, *, counts: bool) -> list[Line]:
    """Return the answers in at most `most` rows, without their texts if these need more.

    Args:
        choices: key and text of each answer.
        width: cells of a row.
        most: number of rows.
        counts: True if an answer given now counts; otherwise they are dim.
    """
    rows = wrapped(_runs(choices, counts=counts, texts=True), width)
    if len(rows) > most:
        rows = wrapped(_runs(choices, counts=counts, texts=False), width)[:most]
    return [Line(tuple((text.replace(_TIED, " "), style) for text, style in row.runs)) for row in rows]


def _runs(choices: Sequence[tuple[str, str]], *, counts: bool, texts: bool) -> list[Run]:
    runs: list[Run] = []
    for key, text in choices:
        runs.append((key, "key" if counts else "muted"))
        if texts:
            runs.append((f" {text}".replace(" ", _TIED), "" if counts else "muted"))
        runs.append(("   " if texts else " ", ""))
    return runs


def _choice(action: str, text: str = "") -> tuple[str, str]:
    entry = command(f"approval.{action}")
    return entry.key_text, text or entry.text
