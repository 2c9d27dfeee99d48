"""Patterns of file names, and the `.gitignore` files that apply to a search, and those that do not."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, pinned_directory
from tui_agent.tools.search.path_patterns import GlobPattern, IgnoreRules, SearchScope

FITS = [
    ("*.py", "src/a.py", False),
    ("**/*.py", "a.py", True),
    ("**/*.py", "src/deep/a.py", True),
    ("src/**", "src/deep/a.py", True),
    ("src/**", "src", False),
    ("a/**/b/**/c", "a/x/b/y/z/c", True),
    ("{a,b/{c,d}}/x", "b/d/x", True),
    ("{a}", "{a}", True),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("[ab]c", "bc", True),
    ("[!ab]c", "bc", False),
    ("[", "[", True),
    ("app/[slug]/page.tsx", "app/s/page.tsx", True),
    ("**/[...all]/**", "app/[...all]/a/b.ts", True),
    ("[[...opt]]/a", "[[...opt]]/a", True),
    ("[[]id].js", "[id].js", True),
    ("caf\u00e9*.txt", "cafe\u0301 1.txt", True),
]


@table(("pattern", "path", "fits"), FITS)
def test_patterns_match_paths(pattern: str, path: str, fits: bool) -> None:
    assert GlobPattern.parse(pattern).matches(path) is fits


def test_a_pattern_takes_no_time_and_too_many_alternatives_are_refused() -> None:
    started = time.process_time()
    assert not GlobPattern.parse("**/" * 30 + "*a" * 30 + "b").matches("a/" * 60 + "a" * 200)
    assert time.process_time() - started < 1
    with pytest.raises(ToolError, match="more than 256 alternatives"):
        GlobPattern.parse("{a,b}" * 40)


@given(st.text("*?[]{},/ab.!-\\", max_size=20), st.text("ab/.", min_size=1, max_size=20))
def test_any_pattern_is_parsed_or_refused(pattern: str, path: str) -> None:
    try:
        compiled = GlobPattern.parse(pattern)
    except ToolError:
        return
    compiled.matches(path)


def inside(directory: Path, outer: IgnoreRules | None = None) -> IgnoreRules:
    """Return the rules that apply in a directory."""
    with pinned_directory(directory) as held:
        return (outer or IgnoreRules()).inside(held, str(directory))


def test_unreadable_rule_files_are_skipped(root: Path) -> None:
    (root / "a").mkdir()
    (root / "a" / ".gitignore").mkdir()
    (root / "b").mkdir()
    os.mkfifo(root / "b" / ".gitignore")
    (root / "c").mkdir()
    with (root / "c" / ".gitignore").open("wb") as file:
        file.truncate(2 * 1024 * 1024)

    (root / "d").mkdir()
    (root / "d" / ".gitignore").symlink_to("/proc/self/mem")

    for name in "abcd":
        assert inside(root / name).files == ()


def test_no_rules_are_read_behind_a_link_above_the_search(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside" / "sub").mkdir(parents=True)
    (tmp_path / "outside" / ".gitignore").write_text("*\n")
    (root / "d").symlink_to(tmp_path / "outside")

    with pytest.raises(NotADirectoryError):
        SearchScope.of(ResolvedPath(root / "d" / "sub"), root)


@table(
    ("pattern", "name"),
    [
        ("*a" * 30 + "b", "a" * 250),
        ("a*" * 40 + "b", "a" * 250),
        ("*[a]*[a]" * 15 + "b", "a" * 250),
        ("*?a" * 20 + "b", "a" * 250),
        ("**/a/" * 20 + "b", "a/" * 900 + "c"),
        ("a/**/" * 20 + "b", "a/" * 900 + "c"),
    ],
)
def test_no_pattern_takes_long_whatever_the_name(root: Path, pattern: str, name: str) -> None:
    (root / ".gitignore").write_text(f"{pattern}\n*.log\n")
    rules = inside(root)

    for _ in range(200):
        assert not rules.leaves_out(f"{root}/{name}", is_directory=False)
    assert rules.leaves_out(f"{root}/x.log", is_directory=False)


@table("pattern", ["*a*b*c", "x*[ab]*?*d", "*.*.*", "/s*b/*a*b", "*\\**b*", "*a*/b*c*d", "a*?*b", "*a**b*"])
def test_stars_match_as_in_git(root: Path, pattern: str) -> None:
    names = [
        "aXbXc",
        "abc",
        "ab",
        "xad",
        "xzbqd",
        "x.y.z",
        "x.y",
        "sub/xaab",
        "s*b",
        "zaz/bcd",
        "azb",
        "ab",
        "aab",
        "caab",
    ]
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    (root / ".gitignore").write_text(f"{pattern}\n")
    rules = inside(root)

    for name in names:
        said = subprocess.run(["git", "check-ignore", "-q", "--no-index", name], cwd=root, check=False).returncode == 0
        above = name.rpartition("/")[0]
        found = rules.leaves_out(f"{root}/{name}", is_directory=False)
        found = found or (bool(above) and rules.leaves_out(f"{root}/{above}", is_directory=True))
        assert found == said, (pattern, name)
