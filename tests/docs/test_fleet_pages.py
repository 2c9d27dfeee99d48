"""The example of a fleet works as it is, without a key or a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2].joinpath("docs", "fleet.md").read_text("utf-8")


@pytest.mark.slow
def test_the_example_changes_each_repository_and_makes_a_branch_of_the_first_result(tmp_path: Path) -> None:
    section = PAGE.partition("\n## Try it\n")[2].partition("\n## ")[0]
    [example] = re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    program, work = tmp_path / "bin" / "tui-agent", tmp_path / "work"
    program.parent.mkdir()
    work.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui_agent "$@"\n', "utf-8")
    program.chmod(0o755)
    identity = {f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = os.pathsep.join((str(program.parent), os.environ.get("PATH", os.defpath)))

    done = subprocess.run(
        ["bash", "-e", "-c", example], cwd=work, env={**os.environ, **identity, "PATH": path}, capture_output=True
    )

    shown = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert "3 units: 3 done" in shown
    assert shown.endswith("-import httpx\n+import httpx2\n")
    assert shown.count("+import httpx2") == 1
