"""What a call is given, exactly, and what was decided about it, as rows. Pure.

Shared by the question whether a call may run and the page about it: both show the same thing the same way.
"""

from collections.abc import Sequence

from tui_agent.protocol.permissions import DecisionPart, Verdict

from .styled_lines import Line, Run, folded, prefixed_lines, width_of_runs, wrapped
from .text import foreign_scripts, one_line, visible

_VERDICTS: dict[Verdict, tuple[str, str]] = {"allow": ("✔", "success"), "ask": ("▲", "warning"), "deny": ("✖", "error")}


def argument_rows(name: str, value: str | None, width: int) -> list[Line]:
    """One argument (None: it is shown elsewhere): on one row where it fits, else under its name."""
    label: Run = (f"{one_line(visible(name), width // 2)}  ", "muted")
    if value is None:
        return [Line((label, ("as in the change below", "muted")))]
    if not value:
        return [Line((label, ("(empty)", "muted")))]
    text = visible(value)
    row = Line((label, (text, "exact")))
    if "\n" not in text and width_of_runs(row.runs) <= width:
        return [row, *script_rows(value, width)]
    return [Line((label,)), *exact_rows(value, width), *script_rows(value, width)]


def exact_rows(text: str, width: int) -> list[Line]:
    """A text on its own ground in which everything can be seen: broken anywhere, no blank swallowed."""
    ground: list[Run] = [(visible(text), "code-ground exact")]
    return [Line(((" ", "code-ground"), *row.runs), row.joint, 1, "code-ground") for row in folded(ground, width - 2)]


def script_rows(text: str, width: int) -> list[Line]:
    """Says of which scripts a text has letters that could pass for others."""
    scripts = foreign_scripts(text)
    if not scripts or "\n" in text.strip():
        return []
    return wrapped([(f"! has letters that are not Latin: {', '.join(scripts)}", "warning")], width)


def labelled_rows(label: str, values: Sequence[str], width: int) -> list[Line]:
    """Values under each other beside a label."""
    rows: list[Line] = []
    for number, value in enumerate(values):
        margin = f"{label}  " if number == 0 else " " * (len(label) + 2)
        lines = folded([(visible(value), "exact")], width - len(margin))
        rows.extend(prefixed_lines(lines, ((margin, "muted"),), ((" " * len(margin), ""),)))
    return rows


def verdict_rows(part: DecisionPart, width: int) -> list[Line]:
    """One part: sign, text, and below it which rule decided or why."""
    sign, style = _VERDICTS[part.decision]
    rows = prefixed_lines(folded([(visible(part.text), "exact")], width - 2), ((f"{sign} ", style),), (("  ", ""),))
    words = " · ".join(filter(None, (part.rule, part.reason)))
    if words:
        rows.extend(row.prefixed(("    ", "")) for row in wrapped([(visible(words), "muted")], width - 4))
    return rows
