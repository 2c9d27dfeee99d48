"""Settings of a repository that make git start a program while it only reads."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.sample_tools import sample_tools
from tui_agent.git.repository_safety import find_program_setting
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule, is_read_only_command


def git(directory: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(("git", *who, *words), cwd=directory, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "a.txt").write_text("x\n", "utf-8")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    return root


def configure(repository: Path, text: str) -> None:
    with (repository / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("[diff]\n\texternal = evil\n", "diff.external"),
        ('[diff "evil"]\n\tcommand = evil\n', "diff.evil.command"),
        ('[diff "evil"]\n\ttextconv = evil\n', "diff.evil.textconv"),
        ("[diff.evil]\n\ttextconv = evil\n", "diff.evil.textconv"),
        ('[DIFF "evil"] TextConv = evil\n', "diff.evil.textconv"),
        ('[filter "evil"]\n\tclean = evil\n', "filter.evil.clean"),
        ('[filter "evil"]\n\tprocess = evil\n', "filter.evil.process"),
        ('[filter "lfs"]\n\tclean = evil\n', "filter.lfs.clean"),
        ('[merge "evil"]\n\tdriver = evil\n[log]\n\tdiffMerges = remerge\n', "log.diffmerges"),
        ('[lfs "extension.evil"]\n\tclean = evil\n', "lfs.extension.evil.clean"),
        ("[lfs]\n\tstandalonetransferagent = evil\n", "lfs.standalonetransferagent"),
        ("[include]\n\tpath = ../evil\n", "include.path"),
        ('[includeIf "gitdir:/"]\n\tpath = ../evil\n', "includeif.gitdir:/.path"),
        ("[core]\n\tworktree = /\n", "core.worktree"),
        ('[diff "evil"]\n\tcommand = \\\nevil\n', "diff.evil.command"),
        ("[core]\n\tattributesFile = ../secret.txt\n", "core.attributesfile"),
        ("[blame]\n\tignoreRevsFile = ../secret.txt\n", "blame.ignorerevsfile"),
        ("[blame]\n\tignoreRevsFile = ~/secret.txt\n", "blame.ignorerevsfile"),
    ],
)
def test_a_setting_that_starts_a_program_is_found(repository: Path, text: str, setting: str) -> None:
    configure(repository, text)

    assert find_program_setting(str(repository)) == setting
    assert not is_read_only_command("git diff", repository)
    assert not is_read_only_command("git status --short && ls", repository)
    assert is_read_only_command("ls", repository)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[remote "origin"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
        '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n',
        "[user]\n\tname = Ada # a comment\n; another\n\n[pull]\n\trebase\n",
        '[filter "lfs"]\n\trequired = true\n\tclean = git-lfs clean -- %f\n\tprocess = "git-lfs filter-process"\n',
        '[diff "python"]\n\txfuncname = "^def"\n[diff]\n\talgorithm = histogram\n',
        "[core]\n\tfsmonitor = evil\n\tpager = evil\n\thooksPath = evil\n",
        "[vscode]\n\twhatever = 1\n",
        "[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n",
        '[merge "ours"]\n\tdriver = true\n[log]\n\tdiffMerges = separate\n',
        '[user]\n\tsigningKey = ~/.ssh/id.pub\n[gpg "ssh"]\n\tallowedSignersFile = ~/.config/signers\n',
    ],
)
def test_harmless_and_disabled_settings_are_ignored(repository: Path, text: str) -> None:
    configure(repository, text)

    assert find_program_setting(str(repository)) is None
    assert is_read_only_command("git diff", repository)


def test_settings_that_git_cannot_read_are_unknown(repository: Path) -> None:
    configure(repository, "what is this?\n")

    assert find_program_setting(str(repository)) == f"{repository}/.git/config, which git cannot read"
    assert not is_read_only_command("git diff", repository)


def test_a_merge_driver_counts_only_where_a_merge_runs(repository: Path) -> None:
    configure(repository, '[merge "ours"]\n\tdriver = true\n')

    reading = ("git status", "git diff", "git log -1", "git log -m -p", "git show HEAD")
    assert [command for command in reading if not is_read_only_command(command, repository)] == []
    merging = ("git log --remerge-diff", "git show --diff-merges=remerge", "git log --diff-merges r", "git merge x")
    assert [command for command in merging if is_read_only_command(command, repository)] == []


def test_a_file_that_git_shows_may_not_be_a_link_to_elsewhere(repository: Path) -> None:
    configure(repository, "[blame]\n\tignoreRevsFile = revs\n")
    (repository / "revs").symlink_to(repository.parent / "secret.txt")

    assert find_program_setting(str(repository)) == "blame.ignorerevsfile"


def test_the_repository_of_the_commands_directory_counts(repository: Path) -> None:
    (repository / "sub").mkdir()
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    configure(inner, "[diff]\nexternal = evil\n")

    assert is_read_only_command("git diff && cd sub && git log", repository)
    assert not is_read_only_command("cd inner && git diff", repository)
    assert not is_read_only_command("git -C inner diff", repository)
    assert find_program_setting("/nowhere/at/all") is None


def test_a_git_directory_that_git_skips_hides_nothing(repository: Path) -> None:
    configure(repository, "[diff]\n\texternal = evil\n")
    (repository / "sub" / ".git").mkdir(parents=True)

    assert find_program_setting(str(repository / "sub")) == "diff.external"
    assert not is_read_only_command("cd sub && git diff", repository)
    assert not is_read_only_command("git -C sub diff", repository)


def test_nested_repositories_count_because_git_reads_them(repository: Path) -> None:
    git(repository, "clone", "-q", ".", "module")
    git(repository, "add", "module")

    assert find_program_setting(str(repository)) is None
    configure(repository / "module", '[filter "evil"]\nclean = evil\n')
    assert find_program_setting(str(repository)) == "filter.evil.clean"


def test_a_linked_work_tree_uses_the_shared_settings(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../linked")
    linked = repository.parent / "linked"

    assert find_program_setting(str(linked)) is None
    (repository / ".git" / "worktrees" / "linked" / "config.worktree").write_text("[diff]\nexternal = x\n", "utf-8")
    assert find_program_setting(str(linked)) == "diff.external"
    (repository / ".git" / "worktrees" / "linked" / "config.worktree").write_text(
        "[core]\nworktree = ../../..\n", "utf-8"
    )
    assert find_program_setting(str(linked)) == "core.worktree", "the files of another work tree"
    (repository / ".git" / "worktrees" / "linked" / "config.worktree").write_text(
        "[core]\nworktree = ../../../../linked\n", "utf-8"
    )
    assert find_program_setting(str(linked)) is None
    configure(repository, "[diff]\nexternal = y\n")
    assert find_program_setting(str(linked)) == "diff.external"


def test_unreadable_settings_are_not_trusted(repository: Path) -> None:
    (repository / ".git" / "sharedindex.0123").touch()
    assert find_program_setting(str(repository)) == "an index in an unknown format"
    (repository / ".git" / "sharedindex.0123").unlink()

    index = repository / ".git" / "index"
    index.write_bytes(b"DIRC\x00\x00\x00\x04" + bytes(30) + b"\x00\x00\xe0\x00" + bytes(50))
    assert find_program_setting(str(repository)) == "an index in an unknown format"
    index.unlink()
    assert find_program_setting(str(repository)) is None

    (repository / ".git" / "config").unlink()
    assert find_program_setting(str(repository)) is None
    (repository / ".git" / "config").symlink_to("config")
    assert find_program_setting(str(repository)) == f"{repository}/.git/config, which cannot be read"


def test_too_many_nested_repositories_are_not_read(repository: Path) -> None:
    entries = (bytes(24) + b"\x00\x00\xe0\x00" + bytes(32) + b"\x00\x02" + b"r%d" % n for n in range(110))
    padded = b"".join(entry.ljust(len(entry) // 8 * 8 + 8, b"\x00") for entry in entries)
    (repository / ".git" / "index").write_bytes(b"DIRC" + (2).to_bytes(4) + (110).to_bytes(4) + padded)
    for number in range(110):
        (repository / f"r{number}" / ".git").mkdir(parents=True)

    assert find_program_setting(str(repository)) == "too many nested repositories"


@pytest.mark.parametrize(
    "text", ["[core]\n\tfsmonitor = evil\n", "[core]\n\thooksPath = evil\n", "[gpg]\n\tprogram = evil\n", "hook"]
)
def test_disabled_settings_count_beside_other_commands(repository: Path, text: str) -> None:
    if text == "hook":
        (repository / ".git" / "hooks" / "post-index-change").touch()
    else:
        configure(repository, text)

    def decide(command: str, mode: str = "ask") -> str:
        policy = PermissionPolicy(repository, rules=[Rule.parse("allow", "bash(make)")], mode=PermissionMode(mode))
        return policy.check(sample_tools(repository)["bash"], {"command": command}).decision

    assert decide("git status") == "allow"
    assert decide("make && git status") == "ask"
    assert decide("make && git status", "allow") == "allow"
    assert decide("make && ls") == "allow"


def test_an_ordinary_repository_is_harmless_there_too(repository: Path) -> None:
    configure(repository, "[core]\n\tfsmonitor = true\n[user]\n\tname = x\n")
    policy = PermissionPolicy(repository, rules=[Rule.parse("allow", "bash(make)")])

    assert policy.check(sample_tools(repository)["bash"], {"command": "make && git status"}).decision == "allow"
