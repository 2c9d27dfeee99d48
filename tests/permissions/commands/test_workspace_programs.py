"""A command's name is trusted only if it means a program of the system."""

from pathlib import Path

import pytest

from tests.permissions.conftest import Desk

COMMANDS = (
    "ls",
    "git status",
    "rg x",
    "python3 --version",
    "timeout 5 ls",
    "ls | head",
    "find src -type f -exec ls {} +",
    "cd sub && ls",
)


def bring(directory: Path) -> Path:
    """Add programs under the names of read-only commands; they may do anything."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("ls", "git", "rg", "python3", "timeout"):
        program = directory / name
        program.write_text("#!/bin/sh\ntouch /tmp/ran\n", "utf-8")
        program.chmod(0o755)
    return directory


def prepend(monkeypatch: pytest.MonkeyPatch, *entries: str) -> None:
    monkeypatch.setenv("PATH", ":".join((*entries, "/usr/local/bin:/usr/bin:/bin")))


@pytest.mark.parametrize("command", COMMANDS)
def test_programs_of_the_workspace_need_an_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    assert desk.bash(command).decision == "allow"
    prepend(monkeypatch, str(bring(desk.root / "venv" / "bin")))

    decision = desk.bash(command)

    assert (decision.decision, decision.source) == ("ask", "mode")
    assert any("would come from the workspace" in line for line in decision.trace)


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin", "LINK", "PROGRAMS", "../work/bin", "OUTER/../work/bin"])
def test_any_path_entry_into_the_workspace_needs_an_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    brought = bring(desk.root if entry in (".", "") else desk.root / "bin")
    outer = desk.root.parent / "outer"
    outer.mkdir()
    (outer / "link").symlink_to(brought)
    (outer / "ls").symlink_to(brought / "ls")
    named = {"LINK": str(outer / "link"), "PROGRAMS": str(outer)}.get(entry, entry)
    prepend(monkeypatch, named.replace("OUTER", str(outer)))

    assert desk.bash("ls").decision == "ask"


def test_a_relative_entry_counts_if_the_directory_is_unknown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    prepend(monkeypatch, "bin")

    assert desk.bash("ls").decision == "allow"
    assert desk.bash("cd $X; ls /etc/..", "allow bash(cd:*)", "allow read").decision == "ask"


@pytest.mark.parametrize(
    "command", ["echo x", "cd sub", "pwd", "test -f x", "[ -f x ]", "[[ -f x ]]", "printf x", "true"]
)
def test_built_ins_are_not_looked_up(desk: Desk, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    for name in ("echo", "cd", "pwd", "test", "[", "[[", "printf", "true"):
        (bring(desk.root / "bin") / name).symlink_to("ls")
    prepend(monkeypatch, str(desk.root / "bin"))

    assert desk.bash(command).decision == "allow"


def test_other_files_and_later_entries_are_skipped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.root / "bin" / "ls").mkdir(parents=True)
    bring(desk.root / "later")
    monkeypatch.setenv("PATH", f"{desk.root / 'bin'}:/usr/bin:/bin:{desk.root / 'later'}")

    assert desk.bash("ls").decision == "allow"


def test_a_rule_still_allows_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    prepend(monkeypatch, str(bring(desk.root / "bin")))

    assert desk.bash("ls", "allow bash(ls:*)").decision == "allow"
    assert desk.bash("ls", mode="plan").decision == "deny"
