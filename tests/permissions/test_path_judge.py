"""Decisions on reading and writing a path."""

import os
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule, is_read_only_command
from tui_agent.permissions.path_judge import PathJudge, PathLookup
from tui_agent.permissions.rules import patterns
from tui_agent.permissions.rules.path_resolution import WorkspaceRoots
from tui_agent.permissions.rules.rule_set import RuleSet


def judge(desk: Desk, *rules: str, private: tuple[Path, ...] = ()) -> PathJudge:
    parsed = [Rule.parse(*rule.split(" ", 1)) for rule in rules]
    return PathJudge(PathLookup(WorkspaceRoots(desk.root), private), RuleSet([parsed], WorkspaceRoots(desk.root)))


def reading(one: PathJudge, path: str, mode: str = "ask", *, relaxed: bool = True) -> tuple[str, str]:
    found = one.reading("read", one.path_lookup.look(path), "read", PermissionMode(mode), [], relaxed=relaxed)
    return found.decision, found.source


def writing(
    one: PathJudge,
    path: str,
    mode: str = "ask",
    *,
    tool: str = "write",
) -> tuple[str, str]:
    facts = one.path_lookup.look(path)
    found = one.writing(tool, facts, PermissionMode(mode), [])
    return found.decision, found.source


@table(
    ("path", "mode", "expected"),
    [
        ("README.md", "ask", ("allow", "read_only")),
        ("README.md", "deny", ("allow", "read_only")),
        ("README.md", "plan", ("allow", "read_only")),
        ("/etc/hostname", "ask", ("ask", "mode")),
        ("/etc/hostname", "allow", ("allow", "mode")),
        ("/etc/hostname", "deny", ("deny", "mode")),
        ("/etc/hostname", "plan", ("ask", "mode")),
        ("/etc/hostname", "accept_edits", ("ask", "mode")),
        ("/proc/self/environ", "ask", ("ask", "floor")),
        ("/proc/self/environ", "allow", ("ask", "floor")),
        ("/proc/self/environ", "deny", ("deny", "mode")),
    ],
)
def test_reading_by_path_and_mode(desk: Desk, path: str, mode: str, expected: tuple[str, str]) -> None:
    assert reading(judge(desk), path, mode) == expected


def test_reading_by_rules(desk: Desk) -> None:
    assert reading(judge(desk, "deny read(README.md)"), "README.md", "allow") == ("deny", "rule")
    assert reading(judge(desk, "ask read(README.md)"), "README.md") == ("ask", "rule")
    assert reading(judge(desk, "allow read(//etc/**)"), "/etc/hostname") == ("allow", "rule")
    assert reading(judge(desk), "README.md", relaxed=False) == ("ask", "mode")


def test_only_a_rule_that_names_a_private_path_opens_it(desk: Desk) -> None:
    state = desk.root.parent / "state"
    named = f"allow read(/{state}/**)"

    assert reading(judge(desk, "allow read", private=(state,)), f"{state}/x", "allow") == ("ask", "floor")
    assert reading(judge(desk, named, private=(state,)), f"{state}/x") == ("allow", "rule")
    assert reading(judge(desk, f"deny read(/{state}/**)", private=(state,)), f"{state}/x") == ("deny", "rule")


@table(
    ("path", "mode", "expected"),
    [
        ("a.py", "ask", ("ask", "mode")),
        ("a.py", "accept_edits", ("allow", "mode")),
        ("../a.py", "accept_edits", ("ask", "mode")),
        ("links/out/a.py", "accept_edits", ("ask", "mode")),
        ("a.py", "plan", ("deny", "floor")),
        ("a.py", "deny", ("deny", "mode")),
        (".git/config", "allow", ("deny", "floor")),
        ("links/git/config", "allow", ("deny", "floor")),
        ("/dev/null", "plan", ("allow", "read_only")),
    ],
)
def test_writing_by_path_and_mode(desk: Desk, path: str, mode: str, expected: tuple[str, str]) -> None:
    assert writing(judge(desk, "allow bash"), path, mode) == expected


def test_writing_by_rules(desk: Desk) -> None:
    assert writing(judge(desk, "deny edit(src/**)"), "src/x", "allow") == ("deny", "rule")
    assert writing(judge(desk, "allow edit(src/**)"), "src/x") == ("allow", "rule")
    assert writing(judge(desk, "allow edit(src/**)"), "src/x", "plan") == ("deny", "floor")
    assert writing(judge(desk, "allow edit(**)"), "node_modules/x") == ("deny", "floor")
    assert writing(judge(desk, "ask edit(src/**)"), "src/x", "accept_edits") == ("ask", "rule")


def test_what_other_programs_run_or_obey_is_written_only_by_a_rule_that_names_it(desk: Desk) -> None:
    obeyed = (
        *(".vscode/tasks.json", ".vscode/settings.json", ".idea/x", ".envrc", "sub/.envrc", ".github/workflows/x.yml"),
        *(".cursor/mcp.json", ".codex/config.toml", ".devcontainer/devcontainer.json", ".pre-commit-config.yaml"),
        *(".gitattributes", "sub/.gitattributes", ".gitmodules", ".gitlab-ci.yml", ".VSCode/tasks.json", ".npmrc"),
        *(".zed/tasks.json", ".vscode./tasks.json", ".claude/x.md", "AGENTS.md", "sub/CLAUDE.md", "Jenkinsfile"),
        *(
            ".venv/lib/python3.11/site-packages/x.pth",
            "sitecustomize.py",
            ".mise.toml",
            ".env",
            ".bashrc",
            ".cursorrules",
        ),
        *("work.code-workspace", ".circleci/config.yml", ".windsurf/rules", ".exrc", ".direnv/x", ".yarnrc.yml"),
        *("AGENT.md", "sub/QWEN.md", "WARP.md", "opencode.json", "opencode.jsonc", "lefthook-local.yml"),
        *("mise.toml", "sub/mise.local.toml", "buildspec.yml"),
    )
    ordinary = (
        *("src/lib.py", ".gitignore", "docs/.gitignore", ".editorconfig", ".env.example", "package.json", "Makefile"),
        *("README.md", "src/agents.py", "github/workflows/x.yml", "vscode/x", "src/..x/../y.py", "tests/conftest.py"),
    )
    found: list[tuple[str, ...]] = []
    for name in obeyed:
        exact = f"allow write({name})"
        for mode, rules, expected in (
            ("accept_edits", (), "ask"),
            ("ask", ("allow write", "allow edit", "allow *"), "ask"),
            ("accept_edits", ("allow write(**)", "allow edit(/**)"), "ask"),
            ("deny", ("allow write",), "deny"),
            ("plan", ("allow write",), "deny"),
            ("accept_edits", (exact,), "allow"),
            ("ask", (exact,), "allow"),
            ("accept_edits", (f"deny write({name})",), "deny"),
        ):
            decision = desk.file("write", name, *rules, mode=mode)
            found += [(name, mode, *rules, decision.reason)] if decision.decision != expected else []
    for name in ordinary:
        decision = desk.file("write", name, mode="accept_edits")
        found += [(name, decision.reason)] if decision.decision != "allow" else []

    assert found == []


def test_a_file_with_secrets_is_read_only_with_an_answer_or_by_a_rule(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".env", "sub/.env.local", "deep/id_rsa", ".env.example", ".envx", "a.env"):
        (desk.root / name).parent.mkdir(exist_ok=True)
        (desk.root / name).write_text("KEY=x\n", "utf-8")
    asking = (
        *("cat .env", "head -1 ./.env", "grep KEY .env", "grep KEY < .env", "cat sub/.env.local", "cat deep/id_rsa"),
        *("cat .e*", "cp .env x", "cat src/lib.py .env", "tar cf x.tar .env", "cd sub && cat .env.local"),
    )
    plain = ("cat .env.example", "cat .envx a.env", "ls -a", "git status", "grep -r KEY src", "rg KEY")
    found: list[tuple[str, ...]] = []
    for command, expected in (*((one, "ask") for one in asking), *((one, "allow") for one in plain)):
        found += [(command, desk.bash(command).reason)] if desk.bash(command).decision != expected else []
    for tool, path, rules, mode, expected in (
        ("read", ".env", (), "ask", "ask"),
        ("read", ".env", (), "accept_edits", "ask"),
        ("read", ".env", (), "allow", "allow"),
        ("read", ".env", ("allow read(.env)",), "ask", "allow"),
        ("read", ".env", ("deny read(.env)",), "allow", "deny"),
        ("read", ".env.example", (), "ask", "allow"),
        ("glob", ".", (), "ask", "allow"),
        ("grep", ".", (), "ask", "allow"),
        ("grep", ".env", (), "ask", "ask"),
    ):
        decision = desk.file(tool, path, *rules, mode=mode)
        found += [(tool, path, *rules, mode, decision.reason)] if decision.decision != expected else []

    assert found == []
    with monkeypatch.context() as patched:
        # A rule about secrets counts for what is named: no directory is looked through for it.
        patched.delattr(patterns, "entries_below")
        assert desk.file("grep", ".").decision == "allow"
    without = PermissionPolicy(desk.root, secret_files=())
    assert without.check(desk.tools["read"], {"path": ".env"}).decision == "allow"


def test_reading_inside_the_workspace_is_read_only(desk: Desk) -> None:
    assert is_read_only_command("git status && ls -la | head", desk.root)
    assert is_read_only_command("", desk.root)
    assert not is_read_only_command("cat /etc/hostname", desk.root)
    assert not is_read_only_command("make", desk.root)
    assert not is_read_only_command("ls \x00", desk.root)
    assert not is_read_only_command("echo \ud800", desk.root)


ASK, EDITS = PermissionMode.ASK, PermissionMode.ACCEPT_EDITS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder beside the workspace, with a repository, a secret, and a link that leads out of it."""
    folder = Path(os.path.realpath(tmp_path)) / "library"
    for name in ("src/a.py", ".git/config", ".env", "secrets/key.pem"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n", "utf-8")
    (folder.parent / "beside.txt").write_text("x\n", "utf-8")
    (folder / "out").symlink_to(folder.parent)
    return folder


def policy_of(desk: Desk, folder: Path, *rules: str, mode: PermissionMode = ASK) -> PermissionPolicy:
    parsed = [Rule.parse(*rule.split(" ", 1)) for rule in rules]
    return PermissionPolicy(desk.root, rules=parsed, mode=mode, folders=[folder])


@table(
    ("mode", "rule", "tool", "path", "decision"),
    [
        (ASK, "", "read", "src/a.py", "allow"),
        (ASK, "", "read", ".env", "ask"),
        (ASK, "", "read", "out/beside.txt", "ask"),
        (ASK, "", "read", "../beside.txt", "ask"),
        (ASK, "", "write", "src/a.py", "ask"),
        (ASK, "allow edit(src/**)", "write", "src/a.py", "allow"),
        (EDITS, "", "write", "src/a.py", "allow"),
        (EDITS, "", "write", "out/beside.txt", "ask"),
        (EDITS, "", "write", ".git/config", "deny"),
        (EDITS, "", "write", ".envrc", "ask"),
        (EDITS, "deny edit(secrets/**)", "write", "secrets/key.pem", "deny"),
    ],
)
def test_files_of_an_added_folder_follow_the_rules_of_the_workspace(
    desk: Desk, folder: Path, mode: PermissionMode, rule: str, tool: str, path: str, decision: str
) -> None:
    policy = policy_of(desk, folder, *filter(None, [rule]), mode=mode)

    assert policy.check(desk.tools[tool], {"path": str(folder / path)}).decision == decision


def test_a_folder_counts_from_the_moment_it_is_added(desk: Desk, folder: Path) -> None:
    policy, call = desk.policy(mode=EDITS), {"path": str(folder / "src/a.py")}
    before = policy.check(desk.tools["write"], call)

    policy.add_folder(folder)

    assert (before.decision, policy.check(desk.tools["write"], call).decision) == ("ask", "allow")
    assert "outside the workspace" in before.reason
    assert policy.folders == (folder,)
