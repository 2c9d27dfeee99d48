"""Files that a rule denies are left out of searches, in the whole way from the rule to the result."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tui_agent.execution.entry_points import execute_tool_calls
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Tool
from tui_agent.tools.glob_tool import GlobTool
from tui_agent.tools.grep_tool import GrepTool
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace

ONE = "[1 file left out: a permission rule denies reading it]"
TWO = "[2 files left out: a permission rule denies reading them]"


@pytest.fixture
def tree(root: Path) -> Path:
    for name in ("a.txt", ".env", "secrets/key", "secrets/public", "src/.env"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("word\n")
    (root / "link").symlink_to("secrets")
    return root


async def search(tool: Tool, policy: PermissionPolicy, **arguments: object) -> str:
    call = ToolCall(id="1", name=tool.name, arguments=dict(arguments))
    done = await execute_tool_calls([tool], [call], bus=EventBus(), policy=policy)
    return done.tool_results[0].text


@pytest.mark.parametrize(
    ("rules", "path", "lines"),
    [
        ([], ".", [".env", "a.txt", "secrets/key", "secrets/public", "src/.env"]),
        (["deny read(.env)"], ".", ["a.txt", "secrets/key", "secrets/public", TWO]),
        (["deny read(secrets/**)"], ".", [".env", "a.txt", "src/.env", TWO]),
        (["deny read(key)"], "secrets", ["secrets/public", ONE]),
        (["deny read(/src/.env)"], "src", [ONE]),
        (["deny read(link/key)"], "link", ["secrets/public", ONE]),
        # the first rule that matches decides
        (["allow read(.env)", "deny read(src/**)", "deny read(/secrets/*)"], ".", [".env", "a.txt", "src/.env", TWO]),
        (["deny read(key)"], "a.txt", ["a.txt"]),
    ],
)  # fmt: skip
async def test_a_search_leaves_out_denied_files(
    workspace: Workspace, tree: Path, rules: list[str], path: str, lines: list[str]
) -> None:
    policy = PermissionPolicy(tree, rules=rules)

    found = await search(GrepTool(workspace), policy, pattern="word", path=path, output_mode="files_with_matches")

    assert [line for line in found.split("\n") if "nothing matches" not in line] == lines


async def test_a_listing_leaves_out_denied_files(workspace: Workspace, tree: Path) -> None:
    policy = PermissionPolicy(tree, rules=["deny read(.env)"])

    assert await search(GlobTool(workspace), policy, pattern="**/.env") == f"{TWO}\n[no files match **/.env]"
    policy.add_session_rule("deny", "read(secrets/**)")
    assert (
        await search(GlobTool(workspace), policy, pattern="*/*")
        == "[3 files left out: a permission rule denies reading them]\n[no files match */*]"
    )


async def test_everything_is_left_out_if_the_rules_cannot_be_read(
    workspace: Workspace, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: PermissionPolicy, tool: Tool, arguments: JsonObject) -> Callable[[str], bool]:
        raise OSError("broken")

    monkeypatch.setattr(PermissionPolicy, "denied_below", fail)

    found = await search(GrepTool(workspace), PermissionPolicy(tree), pattern="word")
    assert found.startswith("[5 files left out")


NAMES = {
    # name: existing name, name asked for, rule, words of the result
    "decomposed": ("cafe\u0301.txt", "caf\u00e9.txt", "allow read", "word"),
    "composed": ("caf\u00e9.txt", "cafe\u0301.txt", "allow read", "word"),
    "narrow no-break space": ("at 1.00\u202fPM.png", "at 1.00 PM.png", "allow read", "word"),
    "a directory": ("Ordner\u00a0é/a", "Ordner e\u0301/a", "allow read", "word"),
    "absolute": ("x\u00a0y", "ROOT/x y", "allow read", "word"),
    "denied by its own name": ("x\u00a0y", "x y", "deny read(x\u00a0y)", "denied"),
    "several": ("x\u00a0y|x\u202fy", "x y", "allow read", "names that look equal: x"),
    "an exact one beside it": ("x\u00a0y|x y", "x y", "deny read(x\u00a0y)", "word"),
}


async def test_the_only_name_that_looks_equal_is_opened_and_judged(workspace: Workspace, root: Path) -> None:
    wrong: list[str] = []
    for case, (names, asked, rule, words) in NAMES.items():
        for name in names.split("|"):
            (root / case / name).parent.mkdir(parents=True, exist_ok=True)
            (root / case / name).write_text("word\n")
        inner = Workspace(root / case, spool_dir=workspace.spool_dir)
        policy = PermissionPolicy(root / case, rules=[rule])
        text = await search(ReadTool(inner), policy, path=asked.replace("ROOT", str(root / case)))
        if words not in text:
            wrong.append(f"{case}: {text}")
    assert wrong == []
