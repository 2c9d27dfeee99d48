"""Patterns of path rules."""

import os
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions.rules import patterns as module
from tui_agent.permissions.rules.patterns import path_pattern


@table(
    ("pattern", "path", "expected"),
    [
        ("src/**", "src/lib.py", True),
        ("src/**", "src", False),
        ("src/**", "sub/src/lib.py", False),
        ("*.py", "src/app/main.py", True),
        ("/*.py", "src/app/main.py", False),
        ("./src/lib.py", "src/lib.py", True),
        ("src", "src/lib.py", True),
        ("src/", "src/lib.py", True),
        ("**/deep/**", "sub/deep/file.txt", True),
        ("!src", "src/lib.py", False),
        ("#src", "src", False),
        ("README.?d", "README.md", True),
        ("[!R]*", "README.md", False),
        ("SRC/**", "src/lib.py", False),
    ],
)
def test_patterns_are_those_of_gitignore(desk: Desk, pattern: str, path: str, expected: bool) -> None:
    root = str(desk.root)

    assert path_pattern(pattern, (root,)).matches(f"{root}/{path}") is expected


def test_patterns_start_at_their_anchor(desk: Desk, clean_environment: Path) -> None:
    root, home = str(desk.root), os.path.realpath(clean_environment)

    assert path_pattern("~/.ssh/**", (root,)).matches(f"{home}/.ssh/id")
    assert path_pattern("~", (root,)).matches(f"{home}/x")
    assert path_pattern("//etc/**", (root,)).matches("/etc/passwd")
    assert not path_pattern("etc/**", (root,)).matches("/etc/passwd")
    assert path_pattern("src/**", (root, "/alias")).matches("/alias/src/x")


def test_patterns_that_may_match_something_below(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(desk.root)

    def may_match(pattern: str, directory: str) -> bool:
        return path_pattern(pattern, (root,)).may_match_below(f"{root}/{directory}".rstrip("/"))

    assert may_match("*.pem", "secrets")
    assert may_match("secrets/*.pem", "")
    assert may_match("secrets/**", "secrets")
    assert may_match("/sub/deep/*.txt", "sub")
    assert may_match("/sub/deep/*.txt", "sub/deep")
    assert may_match("src", "src")
    assert not may_match("*.zip", "secrets")
    assert not may_match("secrets/*.zip", "src")
    assert not may_match("/nowhere/*.txt", "")
    assert not may_match("*.zip", "nowhere")
    monkeypatch.setattr(module, "MAX_ENTRIES", 3)
    monkeypatch.setattr(module, "MAX_NAMES", 3)
    assert may_match("*.zip", ""), "a search that would take too long says yes"
