"""Output of grep."""

from pathlib import Path

from tui_agent.tools.grep_tool import SHOWN_CHARACTERS, SHOWN_WIDTH, matching_lines
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.search.content_search import FileHits
from tui_agent.tools.workspace import Workspace


def shown(workspace: Workspace, hits: dict[str, dict[int, int]], context: int = 0) -> list[str]:
    found = [FileHits(name, columns) for name, columns in hits.items()]
    return matching_lines(ResolvedPath(workspace.root), found, context, workspace, lambda: False)


def test_context_lines_are_marked_and_groups_separated(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("".join(f"{number}\n" for number in range(1, 21)))
    (root / "b").write_text("x\n")

    assert shown(workspace, {"a": {2: 1, 4: 1, 10: 1}, "b": {1: 1}}, context=1) == [
        *("a-1-1", "a:2:2", "a-3-3", "a:4:4", "a-5-5"),
        *("--", "a-9-9", "a:10:10", "a-11-11"),
        *("--", "b:1:x"),
    ]


def test_a_long_line_is_shown_around_its_match(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("ä" * 5000 + "foo" + "y" * 5000 + "\n", "utf-8")

    (line,) = shown(workspace, {"a": {1: 10_001}})

    assert line.startswith("a:1:[4,900 characters …] ää")
    assert "äfooy" in line
    assert line.endswith("y [… 4,703 characters]")
    assert len(line) < SHOWN_WIDTH + 100


def test_a_long_result_is_cut(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text(("x" * 300 + "\n") * 1000)

    lines = shown(workspace, {"a": dict.fromkeys(range(1, 1001), 1)})

    assert sum(map(len, lines)) < SHOWN_CHARACTERS + 100
    assert lines[-1] == f"[cut after {SHOWN_CHARACTERS:,} characters; narrow the search to see the rest]"


def test_a_deleted_file_is_reported(workspace: Workspace) -> None:
    (line,) = shown(workspace, {"a": {1: 1}})

    assert line.startswith("[a has matches, but could not be read: ")
