"""State of a repository in a layer: in words, kept as a whole with its files, and as git itself would have left it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tui_agent.protocol.trial import REPOSITORY, KeepSelection

from .layers import RealLayer, everything, outside, tree_of

START = (
    "git init -q -b main; git config user.name A; git config user.email a@b; mkdir d; echo 1 > a; echo 2 > d/b; "
    "printf 'build/\\n*.log\\n' > .gitignore; git add .; git commit -qm First; git branch side; echo 3 > c; git add c; "
    "git commit -qm Second; git tag v1"
)

CASES: dict[str, tuple[str, ...]] = {
    "git status; git diff; git log; git fsck": (),
    "touch a; git status": (),
    "echo 2 >> a; git hash-object -w a": (),
    "echo 2 >> a; git add -A": ("index: 1 file staged",),
    "echo 2 >> a; git commit -qam 'Fix add'": ("1 commit on main: Fix add",),
    "git checkout -qb x": ("HEAD: main → x", "branch x created"),
    "git checkout -qb x/y; echo 1 > n; git add n; git commit -qm N": (
        "HEAD: main → x/y",
        "branch x/y created",
        "1 commit on x/y: N",
    ),
    "git checkout -q side": ("HEAD: main → side",),
    "git branch -D side; git branch side/way": ("branch side deleted", "branch side/way created"),
    "git pack-refs --all; git branch -D side; git tag -d v1": ("branch side deleted", "tag v1 deleted"),
    "echo 2 >> a; git stash": ("stash: 1 entry added",),
    "git mv a z": ("index: 1 file staged",),
    "git reset -q --hard side": ("main moved back by 1 commit",),
    "git commit -q --amend -m Other": ("1 commit on main, 1 replaced: Other",),
    "git checkout -q side; echo 4 > c; git add c; git commit -qm Mine; git merge main": (
        "HEAD: main → side",
        "1 commit on side: Mine",
        "merge begun",
        "index: 1 file staged",
    ),
    "git rm -rq d; git commit -qm Gone": ("1 commit on main: Gone",),
    "git tag -f v1 side": ("tag v1 moved",),
    "git rm -q --cached c": ("index: 1 file staged",),
    "git branch -f side main": ("1 commit on side: Second",),
    "git checkout -q --orphan new; git rm -rqf .; echo 1 > n; git add n": (
        "HEAD: main → new",
        "index: 1 file staged",
    ),
    "git reset -q --soft side; rm a": ("main moved back by 1 commit",),
}


def git(place: Path, *arguments: str) -> str:
    """Return the output of git."""
    done = subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def state_of(place: Path) -> tuple[object, ...]:
    """Return everything that git shows of a repository, and its files; the stat data of the index may differ."""
    shown = (
        ("status", "--porcelain"),
        ("for-each-ref",),
        ("reflog", "--all"),
        ("stash", "list"),
        ("fsck", "--strict", "--no-dangling"),
    )
    files = {path: what for path, what in tree_of(place).items() if not path.startswith(".git/")}
    return (*(git(place, *words) for words in shown), git(place, "ls-files", "-s"), files)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits and two branches."""
    place = tmp_path / "repository"
    place.mkdir()
    outside(place, START)
    return place


@pytest.mark.parametrize("command", CASES)
def test_state_is_kept_as_git_would_have_left_it(repository: Path, tmp_path: Path, command: str) -> None:
    """A change is named in words; a repository that only looks different is not changed."""
    other = tmp_path / "other"
    shutil.copytree(repository, other, symlinks=True)
    start = tree_of(repository)
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run(command)
    changes = layer.changes()
    assert changes.problem == ""
    assert changes.repository == CASES[command]
    assert tree_of(repository) == start
    report = layer.keep(everything(changes), changes)
    assert report.problems == {}
    assert report.repository == bool(CASES[command])
    outside(other, command)
    assert state_of(repository) == state_of(other)
    if not CASES[command]:
        assert {path for path in tree_of(repository) if path.startswith(".git")} == {
            path for path in start if path.startswith(".git")
        }


def test_files_of_a_checkout_go_with_the_repository(repository: Path, tmp_path: Path) -> None:
    """Neither is kept without the other; an unrelated file is."""
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run("git checkout -q side; echo 1 > new; mkdir build; echo 1 > build/x; echo 1 > x.log")
    changes = layer.changes()
    facts = {change.path: (change.sort, change.tree, change.with_repository) for change in changes.changes}
    assert facts == {
        "c": ("workspace", "", True),
        "new": ("workspace", "", False),
        "build/x": ("ignored", "build/", False),
        "x.log": ("ignored", "", False),
    }
    start = git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    report = layer.keep(KeepSelection(paths=("c", "new", "build/")), changes)
    assert set(report.problems) == {"c"}
    assert git(repository, "rev-parse", "--abbrev-ref", "HEAD") == start
    assert (repository / "build/x").exists()
    second = RealLayer.over(tmp_path / "layer2", repository)
    second.run("git checkout -q side")
    assert second.keep(KeepSelection(paths=(REPOSITORY,))).repository
    assert not (repository / "c").exists()
    assert git(repository, "status", "--porcelain", "-uno") == ""


MEANWHILE = {
    "another commit": "echo 9 > z; git add z; git commit -qm Z",
    "another branch": "git checkout -q side",
    "another index": "echo 9 > z; git add z",
    "a lock": "touch .git/index.lock",
    "a lock of the branch": "touch .git/refs/heads/main.lock",
}


@pytest.mark.parametrize("case", MEANWHILE)
@pytest.mark.parametrize("is_before", [True, False])
def test_a_repository_that_changed_meanwhile_is_not_touched(
    repository: Path, tmp_path: Path, case: str, *, is_before: bool
) -> None:
    """HEAD, the index, refs and git's locks are compared; the files of the commit stay out, too."""
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run("echo 5 > a; git commit -qam Five")
    if is_before:
        outside(repository, MEANWHILE[case])
    changes = layer.changes()
    if not is_before:
        outside(repository, MEANWHILE[case])
    start = tree_of(repository)
    report = layer.keep(everything(changes), changes)
    assert REPOSITORY in report.problems
    assert not report.repository
    assert tree_of(repository) == start


def test_a_file_of_a_commit_that_changed_meanwhile_keeps_all_of_it_out(repository: Path, tmp_path: Path) -> None:
    """The other files of the commit are reported as not kept, too."""
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run("echo 5 > a; echo 6 > d/b; echo 7 > n; git add a d; git commit -qm Five")
    (repository / "d/b").write_text("user")
    report = layer.keep_all()
    assert set(report.problems) == {"a", "d/b", REPOSITORY}
    assert not report.repository
    assert [file.path for file in report.files] == ["n"]
    assert (repository / "a").read_text() == "1\n"
    assert git(repository, "log", "-1", "--format=%s") == "Second\n"


PROTECTED = {
    "echo x > .git/hooks/pre-commit": ".git/hooks/pre-commit",
    "git config core.fsmonitor x": ".git/config",
    "mkdir -p .git/info; echo x > .git/info/attributes": ".git/info/attributes",
    "echo /etc > .git/objects/info/alternates": ".git/objects/info/alternates",
    "mkdir sub; echo 'gitdir: /x' > sub/.git": "sub/.git",
    "git init -q sub; rm -r sub/.git/*[^D]": "sub/.git/HEAD",
    "mkdir .vscode; echo 1 > .vscode/tasks.json": ".vscode/tasks.json",
    "mkdir -p node_modules/a; echo 1 > node_modules/a/b": "node_modules/a/b",
}


@pytest.mark.parametrize("command", PROTECTED)
def test_what_programs_run_later_is_protected(repository: Path, tmp_path: Path, command: str) -> None:
    """Each is a change of its own, not part of the repository's state."""
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run(command)
    changes = layer.changes()
    assert {change.path: change.sort for change in changes.changes} == {PROTECTED[command]: "protected"}
    assert changes.repository == ()


def test_a_lock_that_was_left_behind_can_be_removed(repository: Path, tmp_path: Path) -> None:
    """Its deletion is a protected change, which a yes keeps."""
    (repository / ".git/index.lock").touch()
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run("rm .git/index.lock")
    assert layer.keep_all().problems == {}
    assert not (repository / ".git/index.lock").exists()


def test_settings_of_the_layer_are_not_used(repository: Path, tmp_path: Path) -> None:
    """Reading runs no program that the layer's repository names, and a link in it is never kept."""
    trace = tmp_path / "trace"
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run(
        f"git config core.fsmonitor 'touch {trace}'; git config core.pager 'touch {trace}'; echo 1 >> a; "
        f"git config core.hooksPath /; git commit -qam X; rm .git/refs/tags/v1; ln -s /etc/passwd .git/refs/tags/v1"
    )
    changes = layer.changes()
    assert "1 commit on main: X" in changes.repository
    report = layer.keep(KeepSelection(paths=(REPOSITORY,)), changes)
    assert REPOSITORY in report.problems
    assert git(repository, "log", "-1", "--format=%s") == "Second\n"
    assert not trace.exists()


@pytest.mark.parametrize("kind", ["worktree", "subdirectory"])
def test_a_repository_outside_of_the_workspace_is_a_second_root(repository: Path, tmp_path: Path, kind: str) -> None:
    """A commit in a linked work tree, or below the top of the repository."""
    if kind == "worktree":
        workspace = tmp_path / "linked"
        git(repository, "worktree", "add", "-q", str(workspace), "side")
    else:
        workspace = repository / "d"
    layer = RealLayer.over(tmp_path / "layer", workspace, repository / ".git")
    done = layer.run("echo 7 > seven; git add seven; git commit -qm Seven")
    changes = layer.changes()
    branch = "side" if kind == "worktree" else "main"
    assert changes.repository == (f"1 commit on {branch}: Seven",), done
    assert [(change.path, change.with_repository) for change in changes.changes] == [("seven", True)]
    assert layer.keep(everything(changes), changes).problems == {}
    assert git(workspace, "log", "-1", "--format=%s") == "Seven\n"
    assert git(workspace, "status", "--porcelain") == ""


def test_reftable_and_sha256(tmp_path: Path) -> None:
    """A repository with the other hash is kept; refs in a table are refused."""
    place = tmp_path / "place"
    place.mkdir()
    outside(place, "git init -q -b main --object-format=sha256; " + START.partition(";")[2])
    layer = RealLayer.over(tmp_path / "layer", place)
    layer.run("echo 5 > a; git commit -qam Five")
    assert layer.changes().repository == ("1 commit on main: Five",)
    (place / ".git/reftable").mkdir()
    assert REPOSITORY in layer.keep_all().problems
    (place / ".git/reftable").rmdir()
    second = RealLayer.over(tmp_path / "layer2", place)
    second.run("echo 5 > a; git commit -qam Five")
    assert second.keep_all().repository


def test_objects_that_a_command_takes_from_elsewhere_are_not_read_for_the_words(
    repository: Path, tmp_path: Path
) -> None:
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run(f"echo {tmp_path} > .git/objects/info/alternates; echo 5 > a; git commit -qam Five 2> /dev/null")

    assert [re.sub("[0-9a-f]{10}", "X", words) for words in layer.changes().repository][:1] == ["main moved to X"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tui_agent.git.git_program._can_run", lambda *_: False),
        ("tui_agent.trial.repository_state.find_git", lambda _: None),
    ],
)
def test_git_does_not_read_a_layer_without_walls(
    name: str, value: object, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question then says in plain words that the repository changed, with the files that go with it."""
    layer = RealLayer.over(tmp_path / "layer", repository)
    layer.run("echo 5 > a; git commit -qam Five")
    monkeypatch.setattr(name, value)
    changes = layer.changes()
    assert changes.repository == ("the repository changed",)
    assert [(change.path, change.with_repository) for change in changes.changes] == [("a", True)]
    assert layer.keep(everything(changes), changes).problems == {}
    assert git(repository, "status", "--porcelain") + git(repository, "log", "-1", "--format=%s") == "Five\n"
