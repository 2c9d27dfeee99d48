"""A workspace with a bit of everything, and a policy for it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.sample_tools import sample_tools
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule
from tui_agent.protocol.permissions import PermissionDecision
from tui_agent.protocol.trial import NO_TRIAL, TrialFacts

OVERLAY = TrialFacts(setting="auto", backend="overlay")
"""A trial that works."""

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
        trial: TrialFacts = NO_TRIAL,
    ) -> PermissionPolicy:
        """Return a policy with rules such as `deny bash(rm:*)`."""
        parsed = [Rule.parse(*rule.split(" ", 1)) for rule in rules]
        return PermissionPolicy(
            self.root,
            rules=parsed,
            mode=mode,
            private_paths=private,
            trial=trial,
        )

    def bash(
        self,
        command: str,
        *rules: str,
        mode: PermissionMode | str = PermissionMode.ASK,
        trial: TrialFacts = NO_TRIAL,
    ) -> PermissionDecision:
        """Return the decision on a command."""
        policy = self.policy(*rules, mode=mode, trial=trial)
        return policy.check(self.tools["bash"], {"command": command})

    def file(
        self, tool: str, path: str, *rules: str, mode: PermissionMode | str = PermissionMode.ASK
    ) -> PermissionDecision:
        """Return the decision on a call of a file tool."""
        return self.policy(*rules, mode=mode).check(self.tools[tool], {"path": path})


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
