"""Listing of files: ripgrep and walking give the same result, and git agrees with both."""

import os
import random
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.file_modes import enforce_file_modes
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.search.content_search import search_contents
from tui_agent.tools.search.file_listing import list_files, walk_files
from tui_agent.tools.search.path_patterns import SearchScope
from tui_agent.tools.search.search_engine import Ripgrep, SearchRequest

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
    """Create the files of `PLACES`, and `.gitignore` files with the given lines."""
    for place in PLACES:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("text")
    for directory, lines in rules.items():
        (root / directory / ".gitignore").write_text("\n".join(lines) + "\n")


async def listed(root: Path, workspace: Path, engine: Ripgrep | None) -> tuple[str, ...]:
    listing = await list_files(ResolvedPath(root), workspace, engine, CancellationToken())
    assert listing.complete
    return listing.names


def git_listed(root: Path) -> set[str]:
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    output = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    return set(output.decode().split("\0")) - {""}


@pytest.mark.parametrize("seed", range(40))
async def test_ripgrep_and_walking_give_the_same(root: Path, ripgrep: Ripgrep, seed: int) -> None:
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

    walked = await listed(start, root, None)

    assert await listed(start, root, ripgrep) == walked
    assert list(walked) == sorted(walked)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=st.lists(st.sampled_from(RULES), max_size=5), deeper=st.lists(st.sampled_from(RULES), max_size=3))
def test_walking_and_git_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, rules: list[str], deeper: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    grow(root, {"": rules, "src": deeper})
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)

    assert set(walk_files(SearchScope.of(ResolvedPath(root), root), lambda: False, 30).names) == git_listed(root)


async def test_ignore_rules_without_a_repository_apply_from_the_workspace_down(
    root: Path, engine: Ripgrep | None
) -> None:
    grow(root, {"": ["*.log"]})
    (root.parent / ".gitignore").write_text("*\n")

    assert "b.log" not in await listed(root, root, engine)
    assert "a.py" in await listed(root, root, engine)
    (root / "keep" / "c.txt").touch()
    assert await listed(root / "keep", root, engine) == ("c.txt",)


async def test_without_a_working_ripgrep_the_tree_is_walked(root: Path, tmp_path: Path) -> None:
    (root / "a").touch()
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\necho unknown option >&2\nexit 2\n")
    broken.chmod(0o755)

    listing = await list_files(ResolvedPath(root), root, Ripgrep(broken), CancellationToken())

    assert listing.names == ("a",)


async def test_a_cancelled_listing_and_a_cancelled_search_stop(root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("a" * 60 + "b\n")
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    token = CancellationToken()
    token.cancel("no more")

    with pytest.raises(OperationCancelledError, match="no more"):
        await list_files(ResolvedPath(root), root, Ripgrep(slow), token)
    with pytest.raises(OperationCancelledError):
        await list_files(ResolvedPath(root), root, None, token)
    with pytest.raises(OperationCancelledError, match="no more"):
        await search_contents(ResolvedPath(root), ["a"], SearchRequest("(a+)+$", "content", False, 9), None, token)


@pytest.mark.parametrize("becomes", ["nothing", "file", "link", "pipe"])
def test_a_directory_that_becomes_something_else_during_a_walk_is_skipped(
    root: Path, tmp_path: Path, becomes: str
) -> None:
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "deep" / "secret").touch()
    (tmp_path / "outside" / "secret").touch()
    (root / "d" / "deep").mkdir(parents=True)
    (root / "d" / "deep" / "a").touch()
    (root / "b").touch()
    asked = iter(range(9))

    def stopped() -> bool:
        """Swap the directory when everything in it is listed except the content of `deep`."""
        if next(asked) == 2:
            (root / "d").rename(tmp_path / "aside")
            match becomes:
                case "file":
                    (root / "d").touch()
                case "link":
                    (root / "d").symlink_to(tmp_path / "outside")
                case "pipe":
                    os.mkfifo(root / "d")
        return False

    assert walk_files(SearchScope.of(ResolvedPath(root), root), stopped, 30).names == ("b",)
    assert (tmp_path / "aside" / "deep" / "a").exists(), "it was swapped"


async def test_a_deep_tree_is_listed_with_few_descriptors(root: Path, engine: Ripgrep | None) -> None:
    deep = root / "/".join(["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "a").touch()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(len(os.listdir("/proc/self/fd")) + 60, limits[0]), limits[1]))
    try:
        assert await listed(root, root, engine) == (f"{'d/' * 300}a",)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_rule_file_that_is_a_link_is_skipped_as_in_git(root: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a.py\nsrc\n")
    grow(root, {})
    (root / ".gitignore").symlink_to(tmp_path / "words")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)

    names = set(walk_files(SearchScope.of(ResolvedPath(root), root), lambda: False, 30, links=True).names)

    assert names == git_listed(root)
    assert {"a.py", "src/a.py", ".gitignore"} <= names


async def test_rules_end_where_another_repository_begins(root: Path, engine: Ripgrep | None) -> None:
    grow(root, {"": ["*.log", "deep/"], "src": ["*.o"]})
    (root / "src" / ".git").mkdir()

    for is_repository in (False, True):
        if is_repository:
            (root / ".git").mkdir()
        names = await listed(root, root, engine)

        assert {"src/b.log", "src/deep/c.txt"} <= set(names)
        assert not {"b.log", "keep/k.log", "src/build/y.o"} & set(names)
        assert await listed(root / "src", root, engine) == tuple(
            name.removeprefix("src/") for name in names if name.startswith("src/")
        )


@pytest.mark.parametrize("place", [".", "sub"])
async def test_a_pipe_named_like_a_rule_file_costs_little_time(root: Path, engine: Ripgrep | None, place: str) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("x")
    os.mkfifo(root / place / ".gitignore")

    assert await listed(root, root, engine) == ("sub/a.txt",)  # and it is complete: the time was enough


async def test_rules_of_a_repository_below_the_search_hold_only_there(root: Path, engine: Ripgrep | None) -> None:
    grow(root, {"src": ["*.log"], "src/deep": ["*.txt"]})
    (root / "src" / ".git").mkdir()

    names = set(await listed(root, root, engine))

    assert {"b.log", "keep/k.log", "src/a.py"} <= names
    assert not {"src/b.log", "src/deep/c.txt"} & names


def test_a_directory_that_may_not_be_listed_is_skipped(root: Path) -> None:
    (root / "closed").mkdir(mode=0)
    (root / "a").touch()

    with enforce_file_modes():
        assert walk_files(SearchScope.of(ResolvedPath(root), root), lambda: False, 30).names == ("a",)
