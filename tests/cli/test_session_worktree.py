"""`--worktree` with real git: a session works beside the repository, and its work is kept, merged or removed."""

import asyncio
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.table import table
from tests.workbench.configuration.test_live_settings import options_for
from tui_agent.cli.session_worktree import run_in_worktree
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.workbench.configuration.launch_options import LaunchOptions

pytestmark = pytest.mark.slow


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout.strip()


def repository_in(folder: Path) -> Path:
    root = folder / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "cart.py").write_text("one\n")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.com")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=one")
    return root


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return repository_in(tmp_path)


def use_worktree(options: LaunchOptions, name: str) -> LaunchOptions:
    """Return the options that the session in the worktree begins with."""
    begun: list[LaunchOptions] = []

    def run(inner: LaunchOptions) -> int:
        begun.append(inner)
        return 0

    assert run_in_worktree(options, name, run) == 0
    return begun[0]


def worktree_of(repository: Path, name: str = "try") -> LaunchOptions:
    return use_worktree(replace(options_for(repository), print_mode=False, cwd=repository / "src"), name)


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    lines: Iterator[str] = iter(answers)
    monkeypatch.setattr("tui_agent.cli.session_worktree.has_terminal", lambda: bool(answers))
    monkeypatch.setattr("tui_agent.cli.session_worktree.read_line", lambda: next(lines, None))


def end(options: LaunchOptions) -> None:
    async def finish() -> None:
        assert options.extras.at_end is not None
        await options.extras.at_end()

    asyncio.run(finish())


@table(
    ("answers", "main", "branches", "is_there"),
    [
        ((), "one", "main tui-agent/try", True),
        (("?", "k"), "one", "main tui-agent/try", True),
        (("m",), "two", "main", False),
        (("b",), "one", "main tui-agent/try", False),
        (("r", "no", "k"), "one", "main tui-agent/try", True),
        (("r", "yes"), "one", "main", False),
    ],
)
def test_the_user_says_what_becomes_of_the_changes(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    answers: tuple[str, ...],
    main: str,
    branches: str,
    is_there: bool,
) -> None:
    repository = repository_in(tmp_path_factory.mktemp("row"))
    answering(monkeypatch, *answers)
    options = worktree_of(repository)
    assert options.cwd == repository.with_name("shop.worktrees") / "try" / "src"
    (options.cwd / "cart.py").write_text("two\n")
    (options.cwd / "new.py").write_text("new\n")
    end(options)

    assert (repository / "src" / "cart.py").read_text().strip() == main
    assert git(repository, "branch", "--format=%(refname:short)").split() == branches.split()
    assert (options.cwd / "new.py").exists() is is_there
    if "b" in answers:
        assert git(repository, "show", "tui-agent/try:src/new.py") == "new"
        assert git(repository, "log", "-1", "--format=%an", "tui-agent/try") == "Ada"


def test_without_changes_it_is_removed_and_with_the_same_name_it_continues(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch)
    end(worktree_of(repository))
    assert not repository.with_name("shop.worktrees").exists()
    assert git(repository, "branch", "--format=%(refname:short)") == "main"

    first = worktree_of(repository)
    (first.cwd / "cart.py").write_text("two\n")
    end(first)
    assert (worktree_of(repository).cwd / "cart.py").read_text() == "two\n"


def test_what_git_ignores_is_not_lost_without_a_word(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch)
    (repository / ".git" / "info" / "exclude").write_text("*.env\n__pycache__/\n")
    for made in ("__pycache__/cart.pyc", "local.env"):
        options = worktree_of(repository)
        (options.cwd / made).parent.mkdir(exist_ok=True)
        (options.cwd / made).write_text("x")
        end(options)
        assert (options.cwd / made).exists() is made.endswith(".env")
    assert "has 1 ignored file. Only k keeps what git ignores." in capsys.readouterr().err


def test_a_merge_with_conflicts_leaves_the_repository_as_it_was(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, "m")
    options = worktree_of(repository)
    (options.cwd / "cart.py").write_text("two\n")
    (repository / "src" / "cart.py").write_text("three\n")
    git(repository, "commit", "--quiet", "--all", "--message=three")
    end(options)

    assert (repository / "src" / "cart.py").read_text() == "three\n"
    assert git(repository, "status", "--porcelain") == ""
    assert (options.cwd / "cart.py").read_text() == "two\n"
    assert "It is kept: `tui-agent --worktree try --continue`" in capsys.readouterr().err


@table(("left", "kept"), [("--detach", "HEAD~1"), ("-c", "other")])
def test_commits_stay_when_the_session_has_left_the_branch(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left: str, kept: str
) -> None:
    answering(monkeypatch, "m")
    options = worktree_of(repository)
    (options.cwd / "cart.py").write_text("two\n")
    git(options.cwd, "commit", "--quiet", "--all", "--message=two")
    git(options.cwd, "switch", "--quiet", left, kept)
    end(options)

    assert git(repository, "show", "tui-agent/try:src/cart.py") == "two"
    assert "not on its branch tui-agent/try any more. It is kept" in capsys.readouterr().err


def test_a_session_that_cannot_start_leaves_only_a_worktree_with_changes(repository: Path) -> None:
    def fail(inside: LaunchOptions) -> int:
        raise SessionError(f"{inside.cwd} has no session to continue")

    with pytest.raises(SessionError):
        run_in_worktree(options_for(repository), "try", fail)
    assert not repository.with_name("shop.worktrees").exists()
    options = worktree_of(repository)
    (options.cwd / "cart.py").write_text("two\n")
    with pytest.raises(SessionError):
        run_in_worktree(options_for(repository), "try", fail)
    assert (options.cwd / "cart.py").read_text() == "two\n"


def test_without_a_repository_a_commit_or_a_valid_name_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    with pytest.raises(ConfigurationError, match="is in no git repository"):
        use_worktree(options_for(tmp_path / "shop"), "x")
    git(tmp_path / "shop", "init", "--quiet")
    with pytest.raises(ConfigurationError, match="has no commit yet"):
        use_worktree(options_for(tmp_path / "shop"), "x")
    git(tmp_path / "shop", "commit", "--quiet", "--allow-empty", "--message=one")
    for name in ("../x", "-x", "a b"):
        with pytest.raises(ConfigurationError, match="a branch cannot be named"):
            use_worktree(options_for(tmp_path / "shop"), name)
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]
