"""Part of the conversation with the files that a call changed: one file with its diff, several as a row."""

from dataclasses import replace

from tui_agent.ui.state.call_records import FileChange
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.diff_layout import layout_diff
from tui_agent.ui.text.diff_parser import diff_counts, read_diff
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.ui.text.styled_lines import Line, Run, clipped

from .transcript_model import Part
from .transcript_parts import BODY

MAX_DIFF_ROWS = 24
"""Most rows shown of one file's diff; the call's detail page shows all."""
MAX_FILES = 100
"""Most files listed; others are counted."""
MAX_FILES_WITH_DIFF = 12
"""Most files whose diff is shown in an opened part; others have only their counts."""

MAX_DIFF_CHARACTERS = 20_000
"""Most characters of a diff that are parsed for its first rows."""

_LONGEST_TEXT = 200_000
_NAMES_IN_A_ROW = 20


class ChangedFilesPart(Part):
    """Files that a call changed. Several are one row until the user opens the part."""

    def __init__(self, call_id: str, tool: str) -> None:
        super().__init__(gap=True)
        self.opened = False
        """True if the diffs of several files are shown."""
        self._call_id = call_id
        self._tool = tool
        self._files: list[FileChange] = []
        self._count = self._added = self._removed = 0
        self._size = 0

    @property
    def text(self) -> str:
        """Paths and diffs."""
        return "\n".join(f"{file.path}\n{file.diff}" for file in self._files)

    @property
    def call_ids(self) -> tuple[str, ...]:
        """Id of the call that made the changes."""
        return (self._call_id,) if self._call_id else ()

    def add(self, file: FileChange) -> None:
        """Add a file."""
        self._count += 1
        self._added += file.added
        self._removed += file.removed
        if len(self._files) < MAX_FILES:
            is_kept = self._size + len(file.diff) <= _LONGEST_TEXT
            self._size += len(file.diff) if is_kept else 0
            self._files.append(file if is_kept else replace(file, diff=file.diff[:MAX_DIFF_CHARACTERS]))
        self.changed()

    def toggle(self) -> bool:
        """Open or close the list of several files; a single one is always shown."""
        if self._count < 2:
            return False
        self.opened = not self.opened
        self.changed()
        return True

    def estimate(self, width: int) -> int:
        """Return about how many rows the part has."""
        if self._count > 1 and not self.opened:
            return 1
        shown = self._files[:MAX_FILES_WITH_DIFF]
        return len(self._files) + sum(min(file.diff.count("\n"), MAX_DIFF_ROWS + 1) for file in shown)

    def layout(self, width: int) -> list[Line]:
        """Return one file with its first rows, or a row for several files and, if opened, each with its first rows."""
        if self._count < 2:
            return [row for file in self._files for row in self._file_rows(file, width, one_line(self._tool, 24))]
        head: list[Run] = [(f"{BODY}{'▾' if self.opened else '▸'} ", "calls"), (one_line(self._tool, 24), "strong")]
        head.extend((("  changed ", ""), (count_text(self._count, "file"), "strong"), *self._counts()))
        if not self.opened:
            names = [one_line(file.words, width) for file in self._files[:_NAMES_IN_A_ROW]]
            return [Line(clipped((*head, (f"  {' · '.join(names)}", "muted")), width))]
        rows = [Line(clipped(head, width))]
        for number, file in enumerate(self._files):
            rows.extend(self._file_rows(file, width, "", with_diff=number < MAX_FILES_WITH_DIFF))
        if (left := self._count - len(self._files)) > 0:
            rows.append(Line(clipped(((f"{BODY}  … {count_text(left, 'more file')}", "muted"),), width)))
        return rows

    def _counts(self) -> list[Run]:
        if not self._added and not self._removed:
            return []
        return [(f"  +{self._added}", "success"), (f" −{self._removed}", "error")]

    def _file_rows(self, file: FileChange, width: int, tool: str, *, with_diff: bool = True) -> list[Line]:
        """Return what happened to a file, and its first changed rows."""
        head: list[Run] = [(BODY, ""), *(((tool, "strong"), ("  ", "")) if tool else (("  ", ""),))]
        lines = read_diff(file.diff[:MAX_DIFF_CHARACTERS]) if file.diff and with_diff else []
        is_whole = len(file.diff) < MAX_DIFF_CHARACTERS
        added, removed = diff_counts(lines) if tool and lines and is_whole else (file.added, file.removed)
        head.append((one_line(file.path, max(12, width - len(BODY) - 24)), ""))
        if file.diff or added or removed:
            head.extend(((f"  +{added}", "success"), (f" −{removed}", "error")))
        if file.what:
            head.append((f"  {file.what}", "muted"))
        rows = [Line(clipped(head, width))]
        body = layout_diff(lines, width - len(BODY) - 1) if lines else []
        shown = body if len(body) <= MAX_DIFF_ROWS + 1 else body[:MAX_DIFF_ROWS]
        rows.extend(row.prefixed((BODY, "")) for row in shown)
        if len(shown) < len(body):
            more = f"… {count_text(len(body) - len(shown), 'more row')}"
            rows.append(Line(clipped(((f"{BODY}{more}", "muted"),), width)))
        return rows
