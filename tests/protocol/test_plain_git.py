"""Command lines that do nothing but record changes with git."""

from tui_agent.protocol.plain_git import records_changes

PLAIN = (
    "git add -A && git commit -q -m 'Fix (all) #3; done'", 'git commit -m "a b"', "git stash", "git add . ; git tag a",
)  # fmt: skip
OTHERS = (
    "git commit -m $(x)", 'git commit -m "`x`"', "git status", "git log | cat", "git commit -m x\nrm -rf .git",
    "git -C x commit", "git commit -m x > .git/config", "git commit -m x & rm -rf .git", "git add . && make", "git", "",
    "GIT_DIR=x git commit", "git commit -m 'x", "(git commit)", "git commit && ", "git commit -m x;rm -rf .git",
    "git commit -m x&&rm y", "git com\\mit -m x", "git commit || x", "env git commit",
)  # fmt: skip


def test_only_lines_of_plain_git_commands_that_record_changes_are_recognised() -> None:
    assert [command for command in (*PLAIN, *OTHERS) if records_changes(command)] == [*PLAIN]
