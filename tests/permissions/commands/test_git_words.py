"""git, with only some read-only subcommands and options."""

import pytest

from tui_agent.permissions.commands.version_control import git_reads, git_words
from tui_agent.permissions.shell.syntax import SimpleCommand


def reads(text: str) -> tuple[str, ...] | None:
    use = git_reads(text.split(" "), SimpleCommand("", ()))
    return None if use is None else use.paths


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("git --version", ()),
        ("git status", (".",)),
        ("git -C sub log x", ("sub", "sub/x")),
        ("git -C sub show HEAD:/a", ("sub", "/a")),
        ("git show HEAD:a/b", (".", "a/b")),
        ("git log main..x -- p", (".", "main..x", "p")),
        ("git --no-pager -P log", (".",)),
        ("git grep foo -- src", (".", "src")),
        ("git branch --list x", (".", "x")),
        ("git tag -l x", (".", "x")),
        ("git config --get user.name", (".",)),
        ("git symbolic-ref HEAD", (".", "HEAD")),
        ("git reflog show", (".", "show")),
        ("git remote get-url origin", (".", "get-url", "origin")),
    ],
)
def test_read_only_commands_with_their_reads(text: str, paths: tuple[str, ...]) -> None:
    assert reads(text) == paths


@pytest.mark.parametrize(
    "text",
    [
        "git", "git -C", "git -C a -C b log", "git -c a=b log", "git push", "git branch x", "git branch -d x",
        "git tag x", "git stash", "git stash drop", "git worktree add x", "git remote add x y", "git reflog expire",
        "git symbolic-ref HEAD x", "git config a b", "git config --get http.x.extraheader", "git config --get url.x.y",
        "git config --get remote.origin.url", "git config --global user.name", "git config --system user.name",
        "git log --output=x", "git log --format=%G?", "git log --pretty=%GK", "git for-each-ref --format=%(signature)",
        "git diff --ext-diff", "git count-objects x", "git --exec-path=x log", "git bisect log", "git notes add",
        "git config x.y", "git submodule update", "git submodule foreach ls", "git remote show origin", "git var x",
        "git diff --no-index a",
    ],
)  # fmt: skip
def test_other_commands_are_not_read_only(text: str) -> None:
    assert reads(text) is None


def test_commands_that_show_contents_read_the_whole_tree() -> None:
    def trees(text: str) -> tuple[str, ...]:
        use = git_reads(text.split(" "), SimpleCommand("", ()))
        assert use is not None
        return use.trees

    assert trees("git diff") == (".",)
    assert trees("git -C sub show") == ("sub",)
    assert trees("git log -p") == (".",)
    assert trees("git log") == ()


def test_global_options_are_removed() -> None:
    assert git_words(["git", "-C", "d", "-P", "log", "-1"]) == ("d", ("log", "-1"))
