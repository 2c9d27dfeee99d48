"""Reach of a `find` that changes files, compared with the matches of the real one."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tui_agent.permissions.find_targets import replace_print_with_exec, why_find_unsafe
from tui_agent.permissions.path_facts import PathLookup


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a.py", "b.pyc", "sub/HEAD", "sub/deep/c.py", ".git/HEAD", ".git/refs/x", ".git/objects/y",
                 "pkg/node_modules/m/i.js", "pkg/a.js", "bare.store/HEAD", "bare.store/refs/r", "bare.store/objects/o",
                 "own/settings"):  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n", "utf-8")
    (tmp_path / "link").symlink_to(".git/HEAD")
    return tmp_path


def reached(tests: str, place: Path, root: str = ".") -> bool:
    words = shlex.split(f"find {root} {tests} -exec touch {{}} ;".replace(";", "';'"))
    return why_find_unsafe(words, str(place), PathLookup(place, [place / "own"])) is not None


@pytest.mark.parametrize(
    "tests",
    ["", "-name HEAD", "-name 'H*D'", "-name '[GH]EAD'", "-iname head", "-name '*.py'", "-name '*.py[co]'",
     "-type f -name x", "-type d -name refs", "-type l", "-type f,l -name 'l*'", "-path './sub/*'", "-path '*/.git/*'",
     "-ipath './SUB/*'", "-name a.js", "-name o", "-name settings", "-maxdepth 1 -name '*.py'",
     "-name i.js", "-maxdepth 2 -name i.js",
     "-maxdepth 1 -name .git", "-name .git -prune", "-name .git -prune -o -name x", "-path ./.git -prune -o -name y",
     "-depth -path ./.git -prune -o -name y", "-mindepth 2 -path ./.git -prune -o -name y", "! -name '*.py' -name y",
     "-not -path './.git/*' -name HEAD -not -path './bare*'", "-not -path './.git/*' -name y", "-false -o -name y",
     "( -name y -o -name z )", "-true -a -name z", "-name z , -name y", "-name y -false", "-name y -print -o -name z"],
)  # fmt: skip
def test_every_protected_match_of_the_real_find_is_reached(tests: str, place: Path) -> None:
    found = subprocess.run(
        ("find", ".", *shlex.split(tests), "-exec", "echo", "{}", ";"),
        cwd=place, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    found = [path for path in found if path.startswith("./") or path == "."]
    if "-print" in tests:
        found = []
    protected = ("./.git", "./pkg/node_modules", "./bare.store", "./own", "./link")
    is_protected = any(path == "." or path.startswith(protected) for path in found)

    assert reached(tests, place) == is_protected


@pytest.mark.parametrize(
    "tests", ["-newermt 2001-01-01", "-frobnicate", "( -name z", "-name '\\z'", "-size +1M", "-name é"]
)
def test_unknown_tests_count_as_a_match(tests: str, place: Path) -> None:
    assert reached(tests, place)


def test_roots_count_by_where_they_lead(place: Path) -> None:
    assert reached("-name y", place, ".git/objects")
    assert reached("-name HEAD", place, "sub/../.git/")
    assert not reached("-name y", place, "sub")
    assert not reached("-name c.py", place, "sub sub/deep a.py")
    assert reached("-name c.py -o -name settings", place, "sub own")


def test_too_many_files_count_as_reached(place: Path) -> None:
    words = ["find", ".", "-name", "z", "-delete"]

    assert why_find_unsafe(words, str(place), PathLookup(place)) is None
    assert why_find_unsafe(words, str(place), PathLookup(place), budget=5) is not None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("find .", "find . -exec rm {} ;"),
        ("find . -name a -o -name b", "find . ( -name a -o -name b ) -exec rm {} ;"),
        ("find -H a -name b -prune -o -print0", "find -H a -name b -prune -o -exec rm {} ;"),
    ],
)
def test_a_printing_find_becomes_one_that_changes(words: str, expected: str) -> None:
    assert replace_print_with_exec(words.split()) == tuple(expected.split())
