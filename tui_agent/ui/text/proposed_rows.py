"""Rows of what a command changed in a trial: everything that is decided, with diffs, and what is never kept. Pure."""

from collections.abc import Iterator
from itertools import groupby

from tui_agent.protocol.amounts import bytes_text, count_text
from tui_agent.protocol.trial import ChangeKind, ProposedChanges, ProposedFile, ProposedTree

from .diff_rows import diff_rows
from .line import Line, Run
from .sanitiser import visible
from .styled_lines import prefixed_lines, wrapped

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
    """Yield the rows of changes, block by block: protected files first, then as proposed; what is never kept last."""
    if changes.problem:
        yield wrapped([(f"cannot be kept: {visible(changes.problem)}", "error strong")], width)
    yield _repository_rows(changes, width)
    refused = [file for file in changes.files if file.sort == "refused"]
    with_repository = set(changes.repository_files)
    shown = [file for file in changes.files if file.sort != "refused" and file.path not in with_repository]
    rows_of = [file_rows(file, width) for file in sorted(shown, key=lambda file: file.sort != "protected")]
    for has_diff, group in groupby(rows_of, key=lambda rows: len(rows) > 1):
        blocks = list(group)
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
    """Return its kind, the numbers of its lines, and what no diff shows of a file."""
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
