"""A workspace with a bit of everything, and a policy for it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.support.sample_tools import sample_tools
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import Sequence as Statements
from tui_agent.permissions.shell.syntax import SimpleCommand
from tui_agent.protocol.permissions import NO_CONTAINMENT, Containment, PermissionDecision

SANDBOX = Containment(setting="auto", works=True)
"""A sandbox for commands whose targets are unknown."""

FILES = (
    "README.md",
    "notes.txt",
    "data.csv",
    "package.json",
    "src/lib.py",
    "src/app/main.py",
    "tests/test_lib.py",
    "sub/deep/file.txt",
    "secrets/key.pem",
    "node_modules/pkg/index.js",
    ".git/HEAD",
    ".git/objects/x",
    ".git/refs/x",
    ".git/hooks/pre-commit",
)


class Desk:
    """One workspace with its policy."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tools = sample_tools(root)

    def policy(
        self,
        *rules: str,
        mode: PermissionMode | str = PermissionMode.ASK,
        private: Sequence[Path] = (),
        unknown_targets: Literal["ask", "allow"] = "ask",
        containment: Containment = NO_CONTAINMENT,
    ) -> PermissionPolicy:
        """Return a policy with rules such as `deny bash(rm:*)`."""
        parsed = [Rule.parse(*rule.split(" ", 1)) for rule in rules]
        return PermissionPolicy(
            self.root,
            rules=parsed,
            mode=mode,
            private_paths=private,
            unknown_targets=unknown_targets,
            containment=containment,
        )

    def bash(
        self,
        command: str,
        *rules: str,
        mode: PermissionMode | str = PermissionMode.ASK,
        unknown_targets: Literal["ask", "allow"] = "ask",
        containment: Containment = NO_CONTAINMENT,
    ) -> PermissionDecision:
        """Return the decision on a command."""
        policy = self.policy(*rules, mode=mode, unknown_targets=unknown_targets, containment=containment)
        return policy.check(self.tools["bash"], {"command": command})

    def file(
        self, tool: str, path: str, *rules: str, mode: PermissionMode | str = PermissionMode.ASK
    ) -> PermissionDecision:
        """Return the decision on a call of a file tool."""
        return self.policy(*rules, mode=mode).check(self.tools[tool], {"path": path})


def parsed_command(text: str) -> SimpleCommand:
    """Return the only command of a script."""
    statement = read_script(text)
    assert isinstance(statement, Statements)
    (found,) = statement.parts
    assert isinstance(found, SimpleCommand)
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A workspace with files, a repository, packages, and a link that leads out of it."""
    root = Path(os.path.realpath(tmp_path)) / "work"
    for name in FILES:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("hello\n", "utf-8")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n", "utf-8")
    (root / "links").mkdir()
    (root / "links" / "out").symlink_to(outside)
    (root / "links" / "secret").symlink_to(outside / "secret.txt")
    (root / "links" / "git").symlink_to(root / ".git")
    return Desk(root)
