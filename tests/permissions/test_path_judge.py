"""Decisions on reading and writing a path."""

from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions import PermissionPolicy, Rule
from tui_agent.permissions.path_judge import PathJudge, PathLookup
from tui_agent.permissions.rules import patterns
from tui_agent.permissions.rules.path_resolution import WorkspaceRoots
from tui_agent.permissions.rules.rule_set import RuleSet
from tui_agent.protocol.permissions import PermissionMode


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


def test_a_rule_without_a_pattern_means_the_workspace(desk: Desk) -> None:
    home, mail = "~/.bashrc", "~/mail.txt"
    found = [
        (tool, path, rules, decision.reason)
        for tool, path, rules, expected in (
            *(("write", path, ("allow write",), "ask") for path in ("/etc/x", home, mail, "../x", "links/out/x")),
            *(("write", path, ("allow *", "allow edit"), "ask") for path in ("/etc/x", home, mail)),
            *(("edit", path, ("allow edit",), "ask") for path in ("/etc/x", home)),
            *(("read", path, ("allow read", "allow *"), "ask") for path in ("/etc/x", home, "links/secret")),
            *(("write", path, ("allow write(//etc/**)",), "allow") for path in ("/etc/x",)),
            ("write", mail, ("allow write(~/mail.txt)",), "allow"),
            ("read", "/etc/x", ("allow read(//etc/**)",), "allow"),
            ("write", "src/x", ("allow write",), "allow"),
            ("write", "/etc/x", ("deny write",), "deny"),
            ("write", "/etc/x", ("ask write",), "ask"),
        )
        if (decision := desk.file(tool, path, *rules)).decision != expected
    ]

    assert found == []
    assert desk.bash("touch /etc/x", "allow edit", mode="ask").decision == "ask"


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
