"""Names that commands print, compared with their real output."""

import subprocess
from pathlib import Path

import pytest

from tui_agent.permissions.evaluator.listings import Listing, listed_names
from tui_agent.permissions.shell.expansion import Expander
from tui_agent.permissions.shell.parser import read_script


def listed(text: str, place: Path) -> Listing | None:
    return listed_names(read_script(text), Expander(), (str(place),), {})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.py", "sub/c.py", "sub/.hidden/d.py", ".e"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n", "utf-8")
    (tmp_path / "link").symlink_to("a.txt")
    subprocess.run(("git", "init", "-q"), cwd=tmp_path, check=True)
    subprocess.run(("git", "add", "a.txt", "sub"), cwd=tmp_path, check=True)
    (tmp_path / "sub" / "c.py").unlink()
    return tmp_path


@pytest.mark.parametrize(
    "text",
    ["ls", "ls -a", "ls sub", "ls -1 a.txt b.py", "ls -d sub", "find .", "find sub -type f", "find . -name '*.py'",
     "find . -type f -name '*.py'", "find . -type l", "find sub/ -type d", "grep -rl x .", "grep -l x a.txt b.py",
     "git ls-files", "echo a.txt sub/c.py", "printf '%s\\n' a b", "seq 3", "seq 2 5", "seq 5 -2 1",
     "git ls-files | head -1", "git ls-files '*.py'", "git ls-files sub", "git ls-files -- ./sub a.txt",
     "git ls-files .",
     "git diff --name-only", "git diff --name-only --diff-filter=M", "find . | sort -u | grep -v py", "ls 2>/dev/null",
     "git diff --name-only --cached --diff-filter=d"],
)  # fmt: skip
def test_everything_printed_was_listed(text: str, place: Path) -> None:
    listing = listed(text, place)
    printed = subprocess.run(("bash", "-c", text), cwd=place, capture_output=True, text=True, check=True).stdout

    assert listing is not None
    assert set(printed.split()) <= set(listing.names)
    assert (listing.separator == " ") == text.startswith("echo")


def test_names_in_the_index_are_those_below_the_directory(place: Path) -> None:
    found = listed("git ls-files", place / "sub")

    assert found is not None
    assert sorted(found.names) == [".hidden/d.py", "c.py"]


@pytest.mark.parametrize("text", ["find . -print0", "git ls-files -z"])
def test_names_that_end_with_zeros(text: str, place: Path) -> None:
    found = listed(text, place)

    assert found is not None
    assert found.separator == "\0"
    assert listed(f"{text} | head", place) is None


@pytest.mark.parametrize(
    "text",
    [
        "cat a.txt",
        "ls -l",
        "ls . sub",
        "find . -printf x",
        "find . -print -print0",
        "find . -exec echo x ';'",
        "grep x a.txt",
        "grep -l x -",
        "git ls-files -s",
        "git -C sub ls-files",
        "git log",
        "git diff --name-only HEAD",
        "git diff --name-only main --diff-filter=d",
        "cd sub; git diff --name-only",
        "ls 2>&1",
        "ls | cut -c2",
        "ls | head -c3",
        "echo -e a",
        "echo 'a b'",
        "printf x",
        "seq 1 0 3",
        "ls; ls",
        "x=1 ls",
        "rm a.txt",
        "ls | grep -n x",
        "ls | sed p",
        "nope",
    ],
)
def test_other_output_has_no_listing(text: str, place: Path) -> None:
    assert listed(text, place) is None


@pytest.mark.parametrize("name", ["-x", "a b", "q'", "é"])
def test_ambiguous_names_have_no_listing(name: str, place: Path) -> None:
    (place / name).touch()

    assert listed("ls", place) is None
    assert listed("git ls-files", place) is not None


def test_an_unsupported_index_has_no_listing(place: Path) -> None:
    subprocess.run(("git", "update-index", "--split-index"), cwd=place, check=True)

    assert listed("git ls-files", place) is None


def test_a_directory_between_two_repositories_has_no_listing(place: Path) -> None:
    (place / "sub" / ".git").mkdir()

    assert listed("git ls-files", place / "sub") is None


def test_a_pathspec_leaves_the_other_names_out(place: Path) -> None:
    python = {"sub/c.py", "sub/.hidden/d.py"}
    for text, names in (("'*.txt'", {"a.txt"}), ("sub", python), ("'sub/*.py'", python)):
        found = listed(f"git ls-files {text}", place)
        assert found is not None
        assert set(found.names) == names
