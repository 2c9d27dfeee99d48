"""Protected files that a command changes are found after it, at any depth, reported and undoable (promise 10)."""

import os
import time
from pathlib import Path

import pytest

from tests.tools.calls import Recorded, call, details_of
from tui_agent.permissions.paths import protected_tree
from tui_agent.permissions.paths.protected_tree import ProtectedTree
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.content_store import ContentStore
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
        ("mkdir .husky; echo evil > .husky/pre-commit", ".husky appeared, .husky/pre-commit created"),
        ("mkdir .GIT; echo evil > .GIT/config", ".GIT/config created"),
        ("mkdir b b/objects b/refs; echo x > b/HEAD; echo y > b/config", "b appeared, b/config created"),
        ("mkdir -p .tui-agent; echo x > .tui-agent/config.toml", ".tui-agent/config.toml created"),
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


async def test_a_placeholder_of_another_command_is_not_a_change(
    bash: BashTool, root: Path, warnings: list[str]
) -> None:
    await call(bash, command="mkdir -m 1755 .husky")

    assert warnings == []


async def test_a_change_can_be_undone(bash: BashTool, root: Path, warnings: list[str]) -> None:
    recorded = Recorded()

    await call(
        bash, recorded, command="echo evil > .git/config; mkdir -p s/.git/hooks; echo x > s/.git/hooks/pre-commit"
    )

    changes = {data["path"]: data for kind, data in recorded.data if kind == "file.changed"}
    assert set(changes) == {str(root / ".git/config"), str(root / "s/.git/hooks/pre-commit")}
    changed = changes[str(root / ".git/config")]
    assert changed["change"] == "modified"
    assert changed["before"]["kept"] is True
    assert warnings[0].endswith("Press ctrl+u on its row to undo that.")


async def test_without_a_session_a_change_is_reported_but_not_undone(
    root: Path, tmp_path: Path, warnings: list[str]
) -> None:
    workspace = Workspace(
        root,
        spool_dir=tmp_path / "spool",
        protected_files=ProtectedTree(root).files,
        warn_of_protected=warnings.append,
    )
    recorded = Recorded()

    await call(BashTool(workspace, is_read_only_command=lambda _: False), recorded, command="mkdir s; echo x > s/.git")

    assert warnings == ["A command changed protected files: s/.git created."]
    assert [kind for kind, _ in recorded.data] == []


async def test_many_changes_are_counted(bash: BashTool, warnings: list[str]) -> None:
    await call(bash, command="for i in {1..9}; do mkdir d$i; echo x > d$i/.git; done")

    assert warnings[0].count(".git created") == 4
    assert "and 5 more changes" in warnings[0]


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
    tree.places()
    assert len(listed) == 101
    listed.clear()
    tree.places()
    assert listed == []

    (tmp_path / "d7" / "e" / ".git").mkdir()
    os.utime(tmp_path / "d7" / "e", (past, past))
    assert tmp_path / "d7" / "e" / ".git" in tree.places()
    assert listed == [str(tmp_path / "d7" / "e")]
