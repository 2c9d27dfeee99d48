"""Git repositories of the tests."""

import subprocess
from pathlib import Path


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()
