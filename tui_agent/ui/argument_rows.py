"""What a call is given, exactly, and what was decided about it, as rows. Pure.

Shared by the question whether a call may run and the page about it: both show the same thing the same way.
"""

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from tui_agent.protocol.permissions import DecisionPart, Verdict

from .styled_lines import NARROWEST, Line, Run, folded, prefixed_lines, width_of_runs, wrapped
from .text import foreign_scripts, one_line, visible

_VERDICTS: dict[Verdict, tuple[str, str]] = {"allow": ("✔", "success"), "ask": ("▲", "warning"), "deny": ("✖", "error")}


def argument_rows(name: str, value: str, width: int) -> list[Line]:
    """One argument: on one row where it fits, else under its name."""
    label: Run = (f"{one_line(visible(name), width // 2)}  ", "muted")
    if not value:
        return [Line((label, ("(empty)", "muted")))]
    text = visible(value)
    row = Line((label, (text, "exact")))
    # The cells of a long text are not counted: that takes long, and it fits no row.
    if len(text) <= 8 * width and "\n" not in text and width_of_runs(row.runs) <= width:
        return [row, *script_rows(value, width)]
    return [Line((label,)), *_ground_rows(text, width), *script_rows(value, width)]


def exact_rows(text: str, width: int) -> list[Line]:
    """A text on its own ground in which everything can be seen: broken anywhere, no blank swallowed."""
    return _ground_rows(visible(text), width)


def _ground_rows(text: str, width: int) -> list[Line]:
    """The rows of a text that is visible already."""
    ground: list[Run] = [(text, "code-ground exact")]
    return [Line(((" ", "code-ground"), *row.runs), row.joint, 1, "code-ground") for row in folded(ground, width - 2)]


def script_rows(text: str, width: int) -> list[Line]:
    """Says of which scripts a text has letters that could pass for others."""
    scripts = foreign_scripts(text)
    if not scripts or "\n" in text.strip():
        return []
    return wrapped([(f"! has letters that are not Latin: {', '.join(scripts)}", "warning")], width)


def labelled_rows(label: str, values: Sequence[str], width: int) -> list[Line]:
    """Exact values under each other beside a label."""

    def rows(room: int) -> list[Line]:
        return [row for value in values for row in folded([(visible(value), "exact")], room)]

    return beside(label, rows, width) if values else []


def beside(label: str, rows: Callable[[int], list[Line]], width: int, least: int = 0) -> list[Line]:
    """Rows to the right of a label; under it where there is no room.

    Args:
        label: The label.
        rows: Makes the rows for the cells that are left.
        width: Cells of a row.
        least: Cells the label takes at least, so that several of them stand in a column.
    """
    margin = one_line(visible(label), width // 2).ljust(least) + "  "
    if width - cell_len(margin) < 2 * NARROWEST:
        return [Line(((margin, "muted"),)), *rows(width)]
    return prefixed_lines(rows(width - cell_len(margin)), ((margin, "muted"),), ((" " * cell_len(margin), ""),))


def verdict_rows(part: DecisionPart, width: int) -> list[Line]:
    """One part: sign, text, and below it which rule decided or why."""
    sign, style = _VERDICTS[part.decision]
    rows = prefixed_lines(folded([(visible(part.text), "exact")], width - 2), ((f"{sign} ", style),), (("  ", ""),))
    words = " · ".join(filter(None, (part.rule, part.reason)))
    if words:
        rows.extend(row.prefixed(("    ", "")) for row in wrapped([(visible(words), "muted")], width - 4))
    return rows
