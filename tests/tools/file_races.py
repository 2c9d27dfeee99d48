"""File tools, run by the real executor, in a workspace that another process changes all the time."""

import hashlib
import os
import random
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.tools import file_vandal
from tui_agent.execution import ApprovalGate, execute_tool_calls
from tui_agent.permissions import PermissionMode, PermissionPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.tools import Workspace, default_tools

SECRET = "SECRET-0x5eed"
"""Content of every file outside the workspace, and part of a file's name there."""
PROTECTED = (".git", ".husky", "node_modules", ".tui-agent")
PATHS = (
    "f", "a/f", "a/b/f", "a/b/c/g", "b/../a/f", "./a//g", "a", "a/b", ".", "b/new/x", "c/f", "a/f/", "new", "g/../f",
)  # fmt: skip
AT_ONCE = 6
"""Calls of one message."""


class RaceGround:
    """A workspace, with files around it that must not change and must not be seen."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.work, self.outside, self.state = (directory / name for name in ("work", "outside", "state"))
        for place in (self.outside, self.outside / "b", self.outside / "c", self.state):
            place.mkdir(parents=True)
            for name in ("f", "g", f"name-of-{SECRET}"):
                (place / name).write_text(f"line one\n{SECRET}\n")
        for place in ("a/b/c", "b/c", "c", *PROTECTED, "node_modules/x"):
            (self.work / place).mkdir(parents=True, exist_ok=True)
            for name in ("f", "g", "config"):
                (self.work / place / name).write_text("line one\nline two\n")
        self.kept = (self.outside, self.state, *(self.work / name for name in PROTECTED))
        self.before = self.fingerprints()
        self.chance = random.Random(seed)
        self.seed = seed
        self.statuses: dict[str, int] = {}

    async def play(self, messages: int) -> list[str]:
        """Run that many messages of calls while the vandal works; return the faults, a line each."""
        faults: list[str] = []
        with self._vandal():
            for _ in range(messages):
                faults += await self._message()
        changed = [place for place, now in self.fingerprints().items() if now != self.before[place]]
        return [*faults, *(f"seed {self.seed}: changed: {place}" for place in changed)]

    def fingerprints(self) -> dict[str, str]:
        """Return a hash of names, kinds, modes and contents for each directory that must not change."""
        return {str(place): fingerprint(place) for place in self.kept}

    async def _message(self) -> list[str]:
        workspace = Workspace(self.work, spool_dir=self.state / "spool")
        mode = self.chance.choice((PermissionMode.ASK, PermissionMode.ACCEPT_EDITS))
        policy = PermissionPolicy(self.work, mode=mode, private_paths=[self.state])
        calls = [self._call(str(number)) for number in range(AT_ONCE)]
        result = await execute_tool_calls(
            default_tools(workspace, is_read_only_command=lambda command: False),
            calls,
            bus=EventBus(),
            policy=policy,
            gate=ApprovalGate(approver=self._answer),
        )
        for report in result.reports:
            key = f"{report.tool_name} {report.status}"
            self.statuses[key] = self.statuses.get(key, 0) + 1
        return [
            f"seed {self.seed}: shown by {call.name} {call.arguments} ({mode}): {message.text[:200]}"
            for call, message in zip(calls, result.tool_results, strict=True)
            if SECRET in message.text
        ]

    def _call(self, number: str) -> ToolCall:
        path, pattern = self.chance.choice(PATHS), self.chance.choice(("**", "*", "b/*", "**/f"))
        calls: tuple[tuple[str, JsonObject], ...] = (
            ("read", {"path": path}),
            ("write", {"path": path, "content": f"written {number}\nline one\n"}),
            ("edit", {"path": path, "old_string": "line one", "new_string": f"line {number}", "replace_all": True}),
            ("glob", {"pattern": pattern, "path": path}),
            ("grep", {"pattern": "S.CRET|line", "path": path, "context": 1}),
            ("grep", {"pattern": "S.CRET", "path": path, "output_mode": "files_with_matches"}),
        )
        name, arguments = self.chance.choice(calls)
        return ToolCall(id=number, name=name, arguments=arguments)

    def _answer(self, request: ApprovalRequest) -> ApprovalDecision:
        """Approve, as a user would, every call whose targets are in the workspace."""
        inside = all(Path(target).is_relative_to(self.work) for target in request.targets)
        return ApprovalDecision(decision="approve" if inside else "deny")

    @contextmanager
    def _vandal(self) -> Generator[None, None, None]:
        command = [sys.executable, "-I", "-S", str(Path(file_vandal.__file__)), str(self.work), str(self.seed)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as vandal:
            assert vandal.stdin is not None
            assert vandal.stdout is not None
            assert vandal.stdout.readline() == b"ready\n"
            try:
                yield
                assert vandal.poll() is None, "the vandal gave up"
            finally:
                vandal.stdin.close()
                vandal.wait()


def fingerprint(place: Path) -> str:
    """Return a hash of everything in a directory."""
    found = hashlib.sha256()
    for directory, names, files in sorted(os.walk(place)):
        for name in sorted([*names, *files]):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            found.update(f"{path} {status.st_mode:o} {status.st_ino}\n".encode())
            if stat.S_ISREG(status.st_mode):
                found.update(Path(path).read_bytes())
    return found.hexdigest()
