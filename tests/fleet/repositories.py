"""Git repositories of the tests."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(path: Path, files: Mapping[str, bytes]) -> Path:
    """Create a repository of Ada's with one commit of these files."""
    path.mkdir()
    git("init", "--quiet", "--initial-branch=main", cwd=path)
    git("config", "user.name", "Ada", cwd=path)
    git("config", "user.email", "ada@example.org", cwd=path)
    for name, content in files.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
    git("add", "--all", cwd=path)
    git("commit", "--quiet", "-m", "Begin", cwd=path)
    return path
