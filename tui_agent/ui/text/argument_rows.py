"""The exact arguments of a call, and the decision about it, as rows. Pure.

The approval dialog and the detail page share them, so that both show the same call in the same way.
"""

import json
from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import DecisionPart, Verdict

from .code_highlighter import colour_lines
from .line import NARROWEST, Line, Run
from .sanitiser import WRAP_SIGN, foreign_scripts, one_line, visible
from .styled_lines import folded, prefixed_lines, text_of_runs, width_of_runs, wrapped

VERDICT_SIGNS: dict[Verdict, tuple[str, str]] = {
    "allow": ("✔", "success"),
    "ask": ("▲", "warning"),
    "deny": ("✖", "error"),
}
"""Sign of each verdict, and its style."""

_EMPTY = "(empty)"
_VALUE_BEGINS = tuple("-0123456789tfn[{NI")
_LONGEST_HIGHLIGHTED = 4_000
"""Longest text in characters that is highlighted: a dialog opens at once."""
_LONGEST_READ = 20_000
"""Longest text in characters that is checked for looking like JSON."""


def argument_texts(args: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield name and text of each argument; the name marks a text that looks like another JSON value."""
    for name, value in args.items():
        if not isinstance(value, str):
            yield name, json.dumps(value, ensure_ascii=False, indent=2, default=str)
        else:
            yield f"{name} (text)" if _passes_for_a_value(value) else name, value


def argument_rows(name: str, value: str, width: int) -> list[Line]:
    """Return one argument: in one row if it fits, else under its name."""
    whole_name = visible(name)
    label: Run = (f"{one_line(whole_name, width // 2)}  ", "muted")
    # A name that is cut or changed by `one_line` is shown in full above its value.
    names = [Line((label,))] if f"{whole_name}  " == label[0] else _marked([(whole_name, "muted")], width)
    if not value:
        return [*names[1:], Line((label, (_EMPTY, "muted")))]
    text = visible(value)
    row = Line((label, (text, "exact")))
    # Counting the cells of a long text takes long, and it never fits a row.
    fits = len(text) <= 8 * width and "\n" not in text and width_of_runs(row.runs) <= width
    if len(names) == 1 and text != _EMPTY and fits:
        return [row, *script_rows(value, width)]
    return [*names, *_ground_rows(text, width), *script_rows(value, width)]


def exact_rows(text: str, width: int, language: str = "") -> list[Line]:
    """Return a text in which every character is visible: broken anywhere, with all blanks.

    A row that continues the one above begins with a sign, so that it does not look like a line of the text.

    Args:
        text: the text.
        width: cells of a row.
        language: its language, to highlight it; empty for plain text.
    """
    return _ground_rows(visible(text), width, language)


def _ground_rows(text: str, width: int, language: str = "") -> list[Line]:
    """Return the rows of a text that is already visible."""
    ground: list[Run] = [(text, "code-ground exact")]
    if language and len(text) <= _LONGEST_HIGHLIGHTED:
        coloured: list[Run] = []
        for runs in colour_lines(language, text.split("\n")):
            coloured += [*runs, ("\n", "")]
        # A lexer may drop or change characters; what is approved is shown exactly.
        if text_of_runs(coloured[:-1]) == text:
            ground = [(piece, f"code-ground exact {style}".strip()) for piece, style in coloured[:-1]]
    signs: dict[bool, Run] = {True: (" ", "code-ground"), False: (WRAP_SIGN, "code-ground muted")}
    return [
        Line((signs[row.joint is None], *row.runs), row.joint, 1, "code-ground") for row in folded(ground, width - 2)
    ]


def script_rows(text: str, width: int) -> list[Line]:
    """Return a warning about scripts with letters that look like Latin ones."""
    scripts = foreign_scripts(text)
    if not scripts or "\n" in text.strip():
        return []
    return wrapped([(f"! has letters that are not Latin: {', '.join(scripts)}", "warning")], width)


def labelled_rows(label: str, values: Sequence[str], width: int) -> list[Line]:
    """Return exact values under each other beside a label."""

    def rows(room: int) -> list[Line]:
        # A line feed would make one value look like two.
        texts = [visible(value).replace("\n", "\\x0a") for value in values]
        return [row for text in texts for row in _marked([(text, "exact")], room)]

    return beside(label, rows, width) if values else []


def beside(label: str, rows: Callable[[int], list[Line]], width: int, least: int = 0) -> list[Line]:
    """Return rows to the right of a label, or under it if there is no room.

    Args:
        label: the label.
        rows: makes the rows for the remaining cells.
        width: cells of a row.
        least: least cells of the label, so that several labels form a column.
    """
    margin = one_line(visible(label), width // 2).ljust(least) + "  "
    if width - cell_len(margin) < 2 * NARROWEST:
        return [Line(((margin, "muted"),)), *rows(width)]
    return prefixed_lines(rows(width - cell_len(margin)), ((margin, "muted"),), ((" " * cell_len(margin), ""),))


def verdict_rows(part: DecisionPart, width: int) -> list[Line]:
    """Return one part of the decision: sign and text, and below it the rule or the reason."""
    sign, style = VERDICT_SIGNS[part.decision]
    rows = prefixed_lines(marked_rows(part.text, width - 2), ((f"{sign} ", style),), (("  ", ""),))
    reason = " · ".join(filter(None, (part.rule, part.reason)))
    if reason:
        rows.extend(row.prefixed(("    ", "")) for row in wrapped([(visible(reason), "muted")], width - 4))
    return rows


def marked_rows(text: str, width: int) -> list[Line]:
    """Return an exact text without a ground; a row that continues the one above begins with a sign."""
    return _marked([(visible(text), "exact")], width)


def _marked(runs: Sequence[Run], width: int) -> list[Line]:
    """Break runs anywhere; a row that continues the one above begins with a sign."""
    rows = folded(runs, width)
    if all(row.joint is None for row in rows):
        return rows
    return [row if row.joint is None else row.prefixed((WRAP_SIGN, "muted")) for row in folded(runs, width - 1)]


def _passes_for_a_value(text: str) -> bool:
    """Return True if a text looks exactly like a JSON number, word, list or object."""
    if text[:1] not in _VALUE_BEGINS or len(text) > _LONGEST_READ:
        return False
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2) == text
    except (ValueError, RecursionError):
        return False
