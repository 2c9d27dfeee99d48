"""What `xargs` and `find -exec` may be given."""

from pathlib import Path

import pytest

from tui_agent.permissions.read_only_feeding import MAX_NAMES, fed_words, found_words
from tui_agent.permissions.shell_syntax import UNKNOWN, SimpleCommand, Word

from .conftest import Desk

XARGS = SimpleCommand("xargs", (Word("xargs"),))


def fed(inner: str, feeder: str, root: Path, outer: str = "xargs") -> list[str] | None:
    command = SimpleCommand(outer, tuple(Word(word) for word in outer.split(" ")))
    return fed_words([*inner.split(" "), UNKNOWN], command, feeder.split(" ") if feeder else (), str(root))


@pytest.mark.parametrize(
    ("inner", "feeder"),
    [
        ("cat", "find . -type f"),
        ("grep -n x", "find . -type f -name *.py -print0"),
        ("head -3", "rg -l x"),
        ("wc -l", "rg --files"),
        ("cat", "grep -rl x ."),
        ("wc -l", "git ls-files"),
        ("stat", "git ls-files"),
    ],
)
def test_files_that_a_harmless_command_lists(inner: str, feeder: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()

    assert fed(inner, feeder, tmp_path) == inner.split(" ")


@pytest.mark.parametrize(
    ("inner", "feeder"),
    [
        ("cat", "find . -exec echo /etc/passwd ;"),
        ("cat", "find . -type f -printf x"),
        ("cat", "find . -type f -delete"),
        ("cat", "git ls-files"),
        ("cat", "echo /etc/passwd"),
        ("cat", "rg x"),
        ("cat", "cat names"),
        ("rm", "find . -type f"),
        ("rg x", "find . -type f"),
        ("sort", "find . -type f"),
        ("cat", ""),
    ],
)
def test_anything_else(inner: str, feeder: str, tmp_path: Path) -> None:
    assert fed(inner, feeder, tmp_path) is None


@pytest.mark.parametrize("name", ["a b", "-rf", "it's", 'q"', "back\\slash", "line\nend"])
def test_names_that_could_be_read_as_something_else(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / name).touch()

    assert fed("cat", "find . -type f", tmp_path) is None
    assert fed("cat", "find nowhere -type f", tmp_path) == ["cat"]


def test_a_list_of_arguments_from_a_file(tmp_path: Path) -> None:
    assert fed("cat", "find . -type f", tmp_path, "xargs -a names") is None
    assert fed("cat", "find . -type f", tmp_path, "xargs --arg-file=names") is None


def test_too_many_names_to_look_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.permissions.read_only_feeding.MAX_NAMES", 2)
    for name in "abc":
        (tmp_path / name).touch()

    assert fed("cat", "find . -type f", tmp_path) is None
    assert MAX_NAMES == 5_000


def test_a_found_file_stands_for_its_directory() -> None:
    assert found_words(["grep", "x", f"src/{UNKNOWN}", UNKNOWN, f"a{UNKNOWN}"]) == [
        "grep",
        "x",
        "src/",
        UNKNOWN,
        f"a{UNKNOWN}",
    ]


@pytest.mark.parametrize(
    ("target", "decision"), [("lib.py", "allow"), ("/etc/hostname", "ask"), ("../README.md", "ask")]
)
def test_links_may_be_among_what_is_read_as_long_as_none_leads_out(desk: Desk, target: str, decision: str) -> None:
    (desk.root / "src" / "link.py").symlink_to(target)

    assert desk.bash("find src -name '*.py' | xargs cat").decision == decision
    assert desk.bash("find src -type f -name '*.py' | xargs cat").decision == "allow"


def test_a_place_that_is_reached_by_a_link_is_not_believed(desk: Desk) -> None:
    (desk.root / "short").symlink_to("src")

    assert desk.bash("find short -name '*.py' | xargs cat").decision == "ask"
