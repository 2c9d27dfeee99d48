"""The two search engines: ripgrep if it is installed, else Python. Both are programs with the same output format."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tui_agent.protocol.programs import find_program

SearchMode = Literal["content", "files_with_matches", "count"]

_WORKER = Path(__file__).with_name("search_worker.py")

_SAME_EVERYWHERE = ("--no-config", "--color=never", "--no-messages", "--null")
"""Options that ignore the user's ripgrep settings, which could even name a program to run, and end names with NUL."""

_MODES: dict[SearchMode, tuple[str, ...]] = {
    "content": ("--line-number", "--column", "--max-columns=1"),
    "files_with_matches": ("--files-with-matches",),
    "count": ("--count",),
}
"""`--max-columns=1` keeps the text of lines out of the output: only their positions are needed."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for a pattern."""

    pattern: str
    mode: SearchMode
    ignore_case: bool
    limit: int
    """Most matching lines shown in mode `content`, else files."""

    @property
    def max_matches_per_file(self) -> int:
        """Most matching lines to find in one file: one more than the limit, to know if there are more."""
        return self.limit + 1


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """ripgrep, which is fast and handles any pattern in linear time."""

    program: Path

    def search_command(self, request: SearchRequest, files: Sequence[str]) -> tuple[str, ...]:
        """Return the command that searches `files`.

        Depending on the mode it writes `NAME NUL LINE:COLUMN:…`, `NAME NUL` or `NAME NUL COUNT`.
        """
        case = "--ignore-case" if request.ignore_case else "--case-sensitive"
        # Both engines must agree on what is binary, so ripgrep does not decide it; a mapped file that shrinks would
        # kill it.
        how = ("--text", "--crlf", "--no-mmap", "--no-heading", "--with-filename", "--no-ignore", case)
        most = (f"--max-count={request.max_matches_per_file}",) if request.mode == "content" else ()
        what = ("-e", request.pattern, "--", *files)
        return (str(self.program), *_SAME_EVERYWHERE, *how, *_MODES[request.mode], *most, *what)

    def list_command(self, *, ignore: bool) -> tuple[str, ...]:
        """Return the command that lists the files below the current directory, each name ended by NUL.

        `.gitignore` files count only in repositories, and never those above the current directory: versions of ripgrep
        differ in how they apply the others.

        Args:
            ignore: apply `.gitignore` files.
        """
        only_gitignore = ("--no-ignore-dot", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-parent")
        rules = only_gitignore if ignore else ("--no-ignore",)
        return (str(self.program), *_SAME_EVERYWHERE, "--files", "--hidden", "--glob=!.git", *rules)


@dataclass(frozen=True, slots=True)
class PythonSearch:
    """Python's regular expressions, in a separate process."""

    def search_command(self, request: SearchRequest, files: Sequence[str]) -> tuple[str, ...]:
        """Return the command that searches `files`, with the output of `Ripgrep`."""
        options = json.dumps(
            {
                "pattern": request.pattern,
                "mode": request.mode,
                "ignore_case": request.ignore_case,
                "limit": request.max_matches_per_file,
            }
        )
        return (sys.executable, "-I", "-S", "-B", "-W", "ignore", str(_WORKER), options, *files)


SearchEngine: TypeAlias = Ripgrep | PythonSearch
"""A program that finds a pattern in files."""


def find_ripgrep(workspace: Path) -> Ripgrep | None:
    """Return ripgrep if it is on PATH outside `workspace`, else None."""
    program = find_program("rg", workspace)
    return None if program is None else Ripgrep(program)
