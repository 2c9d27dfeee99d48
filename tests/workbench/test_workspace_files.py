"""Completion of file names: which match, in which order, and that a query can be cancelled."""

import time
from pathlib import Path

from tests.support.table import table
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.workbench.workspace_completion import WorkspaceFiles, best_matches, with_directories

NAMES = ("docs/price.md", "src/price.py", "src/pricing/table.py", "src/rice.py", "tests/test_price.py", "a/p/r/i/c/e")


@table(
    ("text", "expected"),
    [
        ("price.py", ("src/price.py", "tests/test_price.py")),
        ("PRICE", ("src/price.py", "docs/price.md", "tests/test_price.py", "a/p/r/i/c/e")),
        ("s/pr", ("docs/price.md", "src/price.py")),
        ("table", ("src/pricing/table.py",)),
        ("[x", ()),
        ("^", ()),
    ],
)
def test_the_file_name_counts_before_its_directories(text: str, expected: tuple[str, ...]) -> None:
    assert best_matches(NAMES, text, CancellationToken())[: len(expected) or None] == expected


def test_a_text_that_almost_matches_takes_no_longer() -> None:
    names = ("a" * 4_000,)

    started = time.process_time()
    assert best_matches(names, "a" * 60 + "z", CancellationToken()) == ()
    assert time.process_time() - started < 1


async def test_ignored_files_are_left_out_and_a_missing_root_has_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "price.log").write_text("")
    (tmp_path / "price.py").write_text("")

    assert await WorkspaceFiles(tmp_path).find("price") == ("price.py",)
    assert await WorkspaceFiles(tmp_path / "gone").find("price") == ()


def test_directories_end_in_a_slash_and_their_name_counts() -> None:
    names = with_directories(NAMES)

    assert names[:3] == ("a/", "a/p/", "a/p/r/")
    assert best_matches(names, "pricing", CancellationToken())[0] == "src/pricing/"
    assert best_matches(names, "src/", CancellationToken())[0] == "src/"


async def test_files_of_an_added_folder_are_found_by_their_absolute_path(tmp_path: Path) -> None:
    root, added = tmp_path / "root", tmp_path / "added"
    root.mkdir()
    added.mkdir()
    (added / "price.py").touch()
    (root / "price.py").touch()
    files = WorkspaceFiles(root, lambda: (added,))

    assert await files.find("price") == ("price.py",)
    assert await files.find(f"{tmp_path}/ad") == (f"{added}/",)
    assert await files.find(f"{added}/pri") == (f"{added}/price.py",)
    assert await files.find(f"{added}/nothing") == ()
