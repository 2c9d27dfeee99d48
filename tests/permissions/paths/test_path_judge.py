"""Decisions on reading and writing a path."""

from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tui_agent.permissions import Rule
from tui_agent.permissions.paths.path_judge import PathJudge, PathLookup
from tui_agent.permissions.rules.rule_set import RuleSet
from tui_agent.permissions.verdicts import Finding
from tui_agent.protocol.permissions import PermissionMode


def judge(desk: Desk, *rules: str, private: tuple[Path, ...] = ()) -> PathJudge:
    parsed = [Rule.parse(*rule.split(" ", 1)) for rule in rules]
    return PathJudge(PathLookup(desk.root, private), RuleSet([parsed], str(desk.root), str(desk.root)))


def reading(one: PathJudge, path: str, mode: str = "ask", *, relaxed: bool = True) -> tuple[str, str]:
    found = one.reading("read", one.path_lookup.look(path), "read", PermissionMode(mode), [], relaxed=relaxed)
    return found.decision, found.source


def writing(
    one: PathJudge,
    path: str,
    mode: str = "ask",
    *,
    tool: str | None = "write",
    whole: bool = False,
    allowed_by: Finding | None = None,
) -> tuple[str, str]:
    facts = one.path_lookup.look(path)
    found = one.writing(tool, facts, PermissionMode(mode), [], whole=whole, allowed_by=allowed_by)
    return found.decision, found.source


@pytest.mark.parametrize(
    ("path", "mode", "expected"),
    [
        ("README.md", "ask", ("allow", "read_only")),
        ("README.md", "deny", ("allow", "read_only")),
        ("README.md", "plan", ("allow", "read_only")),
        ("/etc/hostname", "ask", ("ask", "mode")),
        ("/etc/hostname", "allow", ("allow", "mode")),
        ("/etc/hostname", "deny", ("deny", "mode")),
        ("/etc/hostname", "plan", ("ask", "mode")),
        ("/etc/hostname", "accept_edits", ("ask", "mode")),
        ("/proc/self/environ", "ask", ("ask", "floor")),
        ("/proc/self/environ", "allow", ("ask", "floor")),
        ("/proc/self/environ", "deny", ("deny", "mode")),
    ],
)
def test_reading_by_path_and_mode(desk: Desk, path: str, mode: str, expected: tuple[str, str]) -> None:
    assert reading(judge(desk), path, mode) == expected


def test_reading_by_rules(desk: Desk) -> None:
    assert reading(judge(desk, "deny read(README.md)"), "README.md", "allow") == ("deny", "rule")
    assert reading(judge(desk, "ask read(README.md)"), "README.md") == ("ask", "rule")
    assert reading(judge(desk, "allow read(//etc/**)"), "/etc/hostname") == ("allow", "rule")
    assert reading(judge(desk), "README.md", relaxed=False) == ("ask", "mode")


def test_only_a_rule_that_names_a_private_path_opens_it(desk: Desk) -> None:
    state = desk.root.parent / "state"
    named = f"allow read(/{state}/**)"

    assert reading(judge(desk, "allow read", private=(state,)), f"{state}/x", "allow") == ("ask", "floor")
    assert reading(judge(desk, named, private=(state,)), f"{state}/x") == ("allow", "rule")
    assert reading(judge(desk, f"deny read(/{state}/**)", private=(state,)), f"{state}/x") == ("deny", "rule")


@pytest.mark.parametrize(
    ("path", "mode", "expected"),
    [
        ("a.py", "ask", ("ask", "mode")),
        ("a.py", "accept_edits", ("allow", "mode")),
        ("../a.py", "accept_edits", ("ask", "mode")),
        ("links/out/a.py", "accept_edits", ("ask", "mode")),
        ("a.py", "plan", ("deny", "floor")),
        ("a.py", "deny", ("deny", "mode")),
        (".git/config", "allow", ("deny", "floor")),
        ("links/git/config", "allow", ("deny", "floor")),
        ("/dev/null", "plan", ("allow", "read_only")),
    ],
)
def test_writing_by_path_and_mode(desk: Desk, path: str, mode: str, expected: tuple[str, str]) -> None:
    assert writing(judge(desk, "allow bash"), path, mode) == expected


def test_writing_by_rules(desk: Desk) -> None:
    assert writing(judge(desk, "deny edit(src/**)"), "src/x", "allow") == ("deny", "rule")
    assert writing(judge(desk, "allow edit(src/**)"), "src/x") == ("allow", "rule")
    assert writing(judge(desk, "allow edit(src/**)"), "src/x", "plan") == ("deny", "floor")
    assert writing(judge(desk, "allow edit(**)"), "node_modules/x") == ("deny", "floor")
    assert writing(judge(desk, "ask edit(src/**)"), "src/x", "accept_edits") == ("ask", "rule")


def test_changing_a_directory_with_protected_files_needs_an_answer(desk: Desk) -> None:
    assert writing(judge(desk), ".", "allow", whole=True) == ("ask", "floor")
    assert writing(judge(desk, "allow edit"), ".", "allow", whole=True) == ("ask", "floor")
    assert writing(judge(desk, "deny edit"), ".", "allow", whole=True) == ("deny", "rule")
    assert writing(judge(desk), "src", "allow", whole=True) == ("allow", "mode")


def test_a_permission_for_the_command_covers_its_changes(desk: Desk) -> None:
    spoken = Finding("allow", "rule", "x")

    assert writing(judge(desk), "x", tool=None, allowed_by=spoken) == ("allow", "rule")
    assert writing(judge(desk), "x", "accept_edits", tool=None) == ("ask", "mode")
    assert writing(judge(desk, "ask edit"), "x", tool=None, allowed_by=spoken) == ("ask", "rule")
