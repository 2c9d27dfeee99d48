"""Rows that the user decides about: the exact arguments of a call, and the changes of a command in a trial. Pure.

The approval dialog and the detail page share them, so that both show the same call in the same way.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from tui_agent.protocol.amounts import bytes_text, count_text
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import DecisionPart, Verdict
from tui_agent.protocol.trial import ChangeKind, ProposedChanges, ProposedFile, ProposedTree

from .code_highlighter import colour_lines
from .diff_rows import diff_rows
from .line import NARROWEST, Line, Run
from .sanitiser import WRAP_SIGN, foreign_scripts, one_line, visible
from .styled_lines import hard_wrapped, prefixed_lines, text_of_runs, width_of_runs, wrapped

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
    """Yield name and text of each argument: a string as it is, any other value as JSON.

    The name of a string that looks like another JSON value ends in `(text)`.
    """
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
        Line((signs[row.joint is None], *row.runs), row.joint, 1, "code-ground")
        for row in hard_wrapped(ground, width - 2)
    ]


def script_rows(text: str, width: int) -> list[Line]:
    """Return a warning that names the scripts of non-Latin letters; empty without any, and for several lines."""
    scripts = foreign_scripts(text)
    if not scripts or "\n" in text.strip():
        return []
    return wrapped([(f"! has letters that are not Latin: {', '.join(scripts)}", "warning")], width)


def labelled_rows(label: str, values: Sequence[str], width: int) -> list[Line]:
    """Return exact values under each other beside a label; empty without values."""

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
    rows = hard_wrapped(runs, width)
    if all(row.joint is None for row in rows):
        return rows
    return [row if row.joint is None else row.prefixed((WRAP_SIGN, "muted")) for row in hard_wrapped(runs, width - 1)]


def _passes_for_a_value(text: str) -> bool:
    """Return True if a text looks exactly like a JSON number, word, list or object."""
    if text[:1] not in _VALUE_BEGINS or len(text) > _LONGEST_READ:
        return False
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2) == text
    except (ValueError, RecursionError):
        return False


PROTECTED = "protected: {}, so no rule or mode keeps it"
RUN_LATER = "something may run or obey it later"
CUT = "The rest of the diff is not shown here: keep or discard the whole file."
NO_DIFF = "Its diff is too long to be shown here: keep or discard the whole file."
CONFLICT = "kept only if you choose it"
VERSIONS = "− the workspace's version now   + the command's version"
"""Legend of the diff of a file in conflict, which shows both versions."""
_KINDS: dict[ChangeKind, tuple[str, str]] = {
    "added": ("new", "success"),
    "changed": ("", ""),
    "deleted": ("deleted", "error"),
    "mode": ("", ""),
}
_MARGIN = 2


def change_blocks(changes: ProposedChanges, width: int) -> Iterator[list[Line]]:
    """Yield the rows of changes in blocks, some of them empty.

    First why nothing can be kept, then the repository, protected files, other files as proposed, directories with
    many files, and last the files that are never kept.
    """
    if changes.problem:
        yield wrapped([(f"cannot be kept: {visible(changes.problem)}", "error strong")], width)
    yield _repository_rows(changes, width)
    refused = [file for file in changes.files if file.sort == "refused"]
    with_repository = set(changes.repository_files)
    shown = [file for file in changes.files if file.sort != "refused" and file.path not in with_repository]
    rows_of = [file_rows(file, width) for file in sorted(shown, key=lambda file: file.sort != "protected")]
    for has_diff, group in groupby(rows_of, key=lambda rows: len(rows) > 1):
        blocks = list(group)
        # Files without a diff are one block: a list without empty rows between its names.
        yield from blocks if has_diff else [[row for rows in blocks for row in rows]]
    yield [row for tree in changes.trees for row in wrapped(tree_runs(tree), width)]
    if refused:
        rows = [Line((("never kept", "muted"),))]
        yield [*rows, *(row for file in refused for row in wrapped(_refused_runs(file), width))]


def file_rows(file: ProposedFile, width: int) -> list[Line]:
    """Return one file: its name and facts, then its diff."""
    rows = wrapped(file_runs(file), width)
    margin = ((" " * _MARGIN, ""),)
    if file.sort == "protected":
        words = PROTECTED.format(visible(file.runs_later or RUN_LATER))
        rows += prefixed_lines(wrapped([(f"! {words}", "error")], width - _MARGIN), margin, margin)
    if file.conflict:
        words = f"! {visible(file.conflict)}; {CONFLICT}"
        rows += prefixed_lines(wrapped([(words, "warning")], width - _MARGIN), margin, margin)
        legend = [(VERSIONS, "muted")] if file.diff else []
        rows += prefixed_lines(wrapped(legend, width - _MARGIN), margin, margin) if legend else []
    # The user decides about it, so every character is visible.
    rows += diff_rows(file.diff.files, width, clean=visible, named=False)
    if file.has_more:
        rows += prefixed_lines(wrapped([(CUT if file.diff else NO_DIFF, "muted")], width - _MARGIN), margin, margin)
    return rows


def file_runs(file: ProposedFile) -> list[Run]:
    """Return name and facts of a file for one row."""
    is_protected = file.sort == "protected"
    runs: list[Run] = [("▲ ", "error strong")] if is_protected else []
    runs.append((visible(file.path), "error strong" if is_protected else "strong"))
    return [*runs, *file_facts(file)]


def file_facts(file: ProposedFile) -> list[Run]:
    """Return what to show behind the name of a file: kind, numbers of changed lines, and note; empty without any."""
    word, style = _KINDS[file.kind]
    runs: list[Run] = [(f"  {word}", style)] if word else []
    if file.added or file.removed:
        runs += [("  ", ""), (f"+{file.added}" if file.added or file.kind == "changed" else "", "success")]
        runs.append((f"{' ' if file.added else ''}−{file.removed}" if file.kind != "added" else "", "error"))
    return [*runs, *([(f"  {visible(file.note)}", "muted")] if file.note else [])]


def tree_runs(tree: ProposedTree) -> list[Run]:
    """Return many files below one directory as one row."""
    size = f", {bytes_text(tree.size)}" if tree.size else ""
    why = {"ignored": "  git ignores them", "packages": "  installed packages"}.get(tree.sort, "")
    runs: list[Run] = [("▲ ", "error strong")] if tree.sort == "protected" else []
    why = f"  {visible(tree.runs_later or RUN_LATER)}" if tree.sort == "protected" else why
    return [*runs, (visible(tree.path), "strong"), (f": {count_text(tree.files, 'file')}{size}", ""), (why, "muted")]


def _repository_rows(changes: ProposedChanges, width: int) -> list[Line]:
    """Return the changes of the repository in words, and the files that belong to them with their diffs."""
    if not changes.repository:
        return []
    rows = [Line((("repository", "strong"), ("  kept as a whole or not at all", "muted")))]
    for words in changes.repository:
        rows += prefixed_lines(wrapped([(visible(words), "")], width - _MARGIN), (("  ", ""),), (("  ", ""),))
    belongs = set(changes.repository_files)
    files = [file for file in changes.files if file.path in belongs and file.sort != "refused"]
    names = [path for path in changes.repository_files if path not in {file.path for file in files}]
    if names:
        rows += wrapped([(f"  with {', '.join(map(visible, names))}", "muted")], width)
    return [*rows, *(row for file in files for row in file_rows(file, width))]


def _refused_runs(file: ProposedFile) -> list[Run]:
    return [(f"  {visible(file.path)}", ""), (f"  {visible(file.note)}" if file.note else "", "warning")]
