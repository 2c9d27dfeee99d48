"""Protected files that a command changes are found after it, at any depth, reported and undoable (promise 10)."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.tools.calls import Recorded, call, details_of
from tui_agent.git import protected_tree
from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.workspace import Workspace


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def bash(root: Path, tmp_path: Path, warnings: list[str]) -> BashTool:
    for repository in (root, root / "repo"):
        (repository / ".git" / "hooks").mkdir(parents=True)
        (repository / ".git" / "config").write_text("[core]\n", "utf-8")
        (repository / ".git" / "hooks" / "pre-push.sample").write_text("x", "utf-8")
    workspace = Workspace(
        root,
        spool_dir=tmp_path / "spool",
        contents=ContentStore(tmp_path / "contents"),
        protected_files=ProtectedTree(root).files,
        warn_of_protected=warnings.append,
    )
    return BashTool(workspace, is_read_only_command=lambda command: command.startswith("cat"))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/post-checkout", "sub/.git/hooks/post-checkout created"),
        ("mv repo repo2; mkdir -p repo/.git/hooks; echo x > repo/.git/hooks/pre-push", "repo/.git was replaced"),
        ("cp -r repo/.git a; rm -r repo/.git; mv a repo/.git", "repo/.git was replaced"),
        ("rm -r repo", "repo/.git vanished"),
        ("echo evil >> .git/config", ".git/config modified"),
        ("printf evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", ".git/hooks/pre-commit created"),
        ("mkdir -p deep/er/node_modules/x", "deep/er/node_modules appeared"),
        ("mkdir deep; echo 'gitdir: /tmp/evil' > deep/.git", "deep/.git created"),
        ("mkdir deep; ln -s /tmp/evil deep/node_modules", "deep/node_modules created"),
        ("mkdir .husky; echo evil > .husky/pre-commit", ".husky/pre-commit created, .husky appeared"),
        ("mkdir .GIT; echo evil > .GIT/config", ".GIT/config created"),
        ("mkdir b b/objects b/refs; echo x > b/HEAD; echo y > b/config", "b/config created, b appeared"),
        ("mkdir -p .tui-agent; echo x > .tui-agent/config.toml", ".tui-agent/config.toml created"),
        ("rm -r .git/hooks; mkdir h; echo x > h/pre-commit; ln -s ../h .git/hooks", ".git/hooks created"),
        ("echo ../evil > .git/commondir", ".git/commondir created"),
        ("mkdir -p .git/modules/m; touch .git/modules/m/{HEAD,config}", ".git/modules/m/config created"),
        (
            "mkdir -p .git/modules/a/b/hooks; cd .git/modules/a/b; touch HEAD hooks/x",
            ".git/modules/a/b/hooks/x created",
        ),
        (
            "mkdir -p .git/modules/{m,m/modules/n}; touch .git/modules/{m/HEAD,m/modules/n/{HEAD,config}}",
            "n/config created",
        ),
        (
            "mkdir -p .git/worktrees/w; echo x > .git/worktrees/w/config.worktree",
            ".git/worktrees/w/config.worktree created",
        ),
        ("mkdir m; ln -s ../m .git/modules", ".git/modules created"),
        ("mkdir h .husky; ln -s ../h .husky/_", ".husky/_ created"),
    ],
)
async def test_a_changed_protected_file_is_reported_to_the_user_and_the_model(
    bash: BashTool, warnings: list[str], command: str, words: str
) -> None:
    result = await call(bash, command=command)

    assert words in details_of(result)["protected_changes"]
    assert "this command changed protected files: " in result.text
    assert str(details_of(result)["outcome"]).startswith("changed protected files: ")
    [warning] = warnings
    assert warning.startswith("A command changed protected files: ")


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/HEAD; echo x > .git/index; mkdir -p .git/objects/aa; echo x > .git/objects/aa/bb",
        "echo x > a; mkdir -p src/git; echo x > src/git/config; touch .github",
        "touch .git/hooks/commit-msg.sample; cat .git/config > copy",
        "cat a",
    ],
)
async def test_everyday_changes_are_not_reported(bash: BashTool, warnings: list[str], command: str) -> None:
    result = await call(bash, command=command)

    assert "protected" not in result.text
    assert "protected_changes" not in details_of(result)
    assert warnings == []


async def test_a_change_can_be_undone(bash: BashTool, root: Path, warnings: list[str]) -> None:
    recorded = Recorded()

    result = await call(
        bash, recorded, command="echo evil > .git/config; mkdir -p s/.git/hooks; echo x > s/.git/hooks/pre-commit"
    )

    changes = {data["path"]: data for kind, data in recorded.data if kind == "file.changed"}
    assert set(changes) == {str(root / ".git/config"), str(root / "s/.git/hooks/pre-commit")}
    changed = changes[str(root / ".git/config")]
    assert changed["change"] == "modified"
    assert changed["before"]["kept"] is True
    assert warnings[0].endswith("Press ctrl+u on its row to undo that.")
    assert "A warning shows this to the user, who can undo it]" in result.text


async def test_many_changes_are_counted_and_without_a_session_nothing_is_undone(
    bash: BashTool, root: Path, tmp_path: Path, warnings: list[str]
) -> None:
    await call(bash, command="for i in {1..9}; do mkdir d$i; echo x > d$i/.git; done")
    assert warnings[0].count(".git created") == 4
    assert "and 5 more changes" in warnings[0]

    files = ProtectedTree(root).files
    without = Workspace(root, spool_dir=tmp_path / "other", protected_files=files, warn_of_protected=warnings.append)
    recorded = Recorded()
    again = BashTool(without, is_read_only_command=lambda _: False)
    result = await call(again, recorded, command="mkdir s; echo x > s/.git")
    assert result.text == "[this command changed protected files: s/.git created. A warning shows this to the user]"
    assert warnings[1:] == ["A command changed protected files: s/.git created."]
    assert recorded.data == []


@pytest.mark.parametrize(
    ("before", "command", "words"),
    [
        ("mkdir h; rm -r .git/hooks; ln -s ../h .git/hooks", "echo evil > h/pre-commit", "h/pre-commit created"),
        ("mkdir shared; echo ../../shared > repo/.git/commondir", "echo evil > shared/config", "shared/config created"),
    ],
)
async def test_hooks_behind_a_link_and_shared_settings_are_watched(
    bash: BashTool, root: Path, warnings: list[str], before: str, command: str, words: str
) -> None:
    await asyncio.to_thread(subprocess.run, ["bash", "-c", before], cwd=root, check=True)

    await call(bash, command=command)

    assert warnings == [f"A command changed protected files: {words}. Press ctrl+u on its row to undo that."]


@pytest.mark.parametrize(
    "flood",
    [
        "mkdir -p sub/.git/hooks; touch sub/.git/hooks/h{1..30}",
        "mkdir -p s{1..30}/.git",
        "mkdir -p d{1..40}",
        "mkdir -p .git/modules/m{1..30}",
    ],
)
async def test_a_flood_of_names_hides_no_change(
    bash: BashTool, warnings: list[str], monkeypatch: pytest.MonkeyPatch, flood: str
) -> None:
    monkeypatch.setattr(protected_tree, "MAX_DIRECTORIES", 40)
    monkeypatch.setattr(protected_tree, "MAX_FILES", 25)
    monkeypatch.setattr(protected_tree, "MAX_FILES_OF_PLACE", 20)

    result = await call(bash, command=f"{flood}; echo evil > .git/hooks/a; echo evil > repo/.git/hooks/b")

    assert "so many protected files that others may have changed unnoticed" in result.text
    assert ".git/hooks/a created" in warnings[0]


async def test_a_workspace_too_large_to_watch_is_reported_once_and_watched_as_far_as_possible(
    bash: BashTool, root: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (root / f"d{number}" / ".git").mkdir(parents=True)
    monkeypatch.setattr(protected_tree, "MAX_DIRECTORIES", 6)

    for _ in range(3):
        await call(bash, command="true")
    await call(bash, command="echo evil > .git/config; mkdir .husky; echo x > .husky/x")

    assert [warning[:30] for warning in warnings] == [
        "This workspace has too many di",
        "A command changed protected fi",
    ]
    assert ".git/config modified, .husky/x created, .husky appeared" in warnings[1]


def test_a_known_tree_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / f"d{number}" / "e").mkdir(parents=True)
    listed: list[object] = []
    scan = os.scandir
    monkeypatch.setattr(protected_tree.os, "scandir", lambda path: (listed.append(path), scan(path))[1])
    past = time.time() - 60
    tree = ProtectedTree(tmp_path)
    # Directories that changed a moment ago are listed again: their times might not show the next change.
    monkeypatch.setattr(protected_tree, "_TICK_NS", -60_000_000_000)
    tree.files()
    assert len(listed) == 101
    listed.clear()
    tree.files()
    assert listed == []

    (tmp_path / "d7" / "e" / ".git").mkdir()
    os.utime(tmp_path / "d7" / "e", (past, past))
    assert "d7/e/.git" in tree.files()[0]
    assert listed == [str(tmp_path / "d7" / "e")]
