"""Listing files: ripgrep and walking give the same, and git agrees with both."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.tools.file_listing import BoundedBytes, list_files, walk_files
from tui_agent.tools.held_directory import Place
from tui_agent.tools.ignore_rules import SearchScope
from tui_agent.tools.search_engine import Ripgrep

RG = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RG is None, reason="ripgrep is not installed")

PLACES = [
    "a.py",
    "b.log",
    "src/a.py",
    "src/b.log",
    "src/deep/c.txt",
    "build/x.o",
    "src/build/y.o",
    ".hidden/z",
    "keep/k.log",
]
RULES = [
    "*.log",
    "!keep/k.log",
    "build/",
    "/build",
    "src/*.py",
    "!src/a.py",
    "**/deep",
    "deep/**",
    "*",
    "!*/",
    "!*.py",
    "/*",
    "!/src",
    "# comment",
    "",
    "a.p?",
    "[ab].*",
    "*.o ",
    "src",
    "!src/deep/c.txt",
    "src/deep/**",
    "src/**",
    "/**",
    ".hidden",
    "\\!x",
    "/",
    "a[",
    "*/",
    "**/",
    "**",
    "!**/c.txt",
    "  a.py",
    "deep/",
    "src/deep",
    "!src/",
]


def grow(root: Path, rules: dict[str, list[str]]) -> None:
    """Makes the files of `PLACES`, and `.gitignore` files with the given lines."""
    for place in PLACES:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("text")
    for directory, lines in rules.items():
        (root / directory / ".gitignore").write_text("\n".join(lines) + "\n")


async def listed(root: Path, workspace: Path, *, ripgrep: bool) -> tuple[str, ...]:
    engine = Ripgrep(Path(RG)) if ripgrep and RG else None
    listing = await list_files(Place(root), workspace, engine, CancellationToken())
    assert listing.complete
    return listing.names


def git_listed(root: Path) -> set[str]:
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    output = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    return set(output.decode().split("\0")) - {""}


@pytest.mark.parametrize("seed", range(40))
@needs_ripgrep
async def test_ripgrep_and_walking_give_the_same(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    directories = ["", "src", "src/deep", "keep"]
    rules = {
        directory: chance.sample(RULES, chance.randint(1, 4))
        for directory in chance.sample(directories, chance.randint(1, 3))
    }
    grow(root, rules)
    repositories = chance.sample(["", "src", "src/deep"], chance.randint(0, 2))
    for directory in repositories:
        (root / directory / ".git").mkdir()
        (root / directory / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    start = root / chance.choice(["", "", "src", "src/deep", "build"])

    walked = await listed(start, root, ripgrep=False)

    assert await listed(start, root, ripgrep=True) == walked
    assert list(walked) == sorted(walked)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=st.lists(st.sampled_from(RULES), max_size=5), deeper=st.lists(st.sampled_from(RULES), max_size=3))
def test_walking_and_git_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, rules: list[str], deeper: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    grow(root, {"": rules, "src": deeper})
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)

    assert set(walk_files(SearchScope.of(root, root), lambda: False, 30).names) == git_listed(root)


@pytest.mark.parametrize("ripgrep", [False, pytest.param(True, marks=needs_ripgrep)])
async def test_rules_hold_without_a_repository_from_the_workspace_down(root: Path, ripgrep: bool) -> None:
    grow(root, {"": ["*.log"]})
    (root.parent / ".gitignore").write_text("*\n")

    assert "b.log" not in await listed(root, root, ripgrep=ripgrep)
    assert "a.py" in await listed(root, root, ripgrep=ripgrep)
    assert await listed(root / "keep", root, ripgrep=ripgrep) == ()


@pytest.mark.parametrize("ripgrep", [False, pytest.param(True, marks=needs_ripgrep)])
async def test_a_directory_that_is_left_out_is_listed_when_named(root: Path, ripgrep: bool) -> None:
    grow(root, {"": ["build/", "*.o"]})
    (root / ".git").mkdir()

    assert await listed(root / "build", root, ripgrep=ripgrep) == ("x.o",)
    assert "build/x.o" not in await listed(root, root, ripgrep=ripgrep)


@pytest.mark.parametrize("ripgrep", [False, pytest.param(True, marks=needs_ripgrep)])
async def test_only_regular_files_are_listed(root: Path, ripgrep: bool) -> None:
    (root / "a").touch()
    (root / "link").symlink_to("a")
    (root / "d").mkdir()
    (root / "up").symlink_to("..")
    (root / ".git").write_text("gitdir: elsewhere")
    os.mkfifo(root / "pipe")

    assert await listed(root, root, ripgrep=ripgrep) == ("a",)


@pytest.mark.parametrize("ripgrep", [False, pytest.param(True, marks=needs_ripgrep)])
async def test_odd_names_are_listed(root: Path, ripgrep: bool) -> None:
    for name in (b"-rf", b"new\nline", b"caf\xe9", b" "):
        os.close(os.open(os.fsencode(root) + b"/" + name, os.O_CREAT))

    assert await listed(root, root, ripgrep=ripgrep) == (" ", "-rf", "caf\udce9", "new\nline")


async def test_without_a_working_ripgrep_the_tree_is_walked(root: Path, tmp_path: Path) -> None:
    (root / "a").touch()
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\necho unknown option >&2\nexit 2\n")
    broken.chmod(0o755)

    listing = await list_files(Place(root), root, Ripgrep(broken), CancellationToken())

    assert listing.names == ("a",)


async def test_a_cancelled_listing_stops(root: Path, tmp_path: Path) -> None:
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    token = CancellationToken()
    token.cancel("no more")

    with pytest.raises(OperationCancelledError, match="no more"):
        await list_files(Place(root), root, Ripgrep(slow), token)
    with pytest.raises(OperationCancelledError):
        await list_files(Place(root), root, None, token)


def test_a_walk_that_takes_too_long_gives_what_it_has(root: Path) -> None:
    (root / "a").touch()
    listing = walk_files(SearchScope.of(root, root), lambda: False, -1)

    assert not listing.complete


def test_a_directory_that_vanishes_is_passed_over(root: Path) -> None:
    assert walk_files(SearchScope.of(root / "gone", root), lambda: False, 30).names == ()


def test_a_bounded_sink_keeps_what_it_can() -> None:
    sink = BoundedBytes(4)

    assert sink.feed(b"abc")
    assert not sink.feed(b"def")
    assert bytes(sink.data) == b"abcd"


@needs_ripgrep
@pytest.mark.parametrize("place", [".", "sub"])
async def test_a_pipe_called_like_a_file_of_rules_costs_little(root: Path, place: str) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("x")
    os.mkfifo(root / place / ".gitignore")

    assert await listed(root, root, ripgrep=True) == ("sub/a.txt",)  # and it is complete: the time was enough
