"""The launcher for Landlock: what it says where it cannot build the walls."""

import json
import subprocess
import sys
from pathlib import Path

from tui_agent.walls import landlock_launcher


def test_a_launcher_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    """The line is shown as the reason why the walls do not work here."""
    (rules := tmp_path / "rules.json").write_text(json.dumps({"directory": str(tmp_path / "gone")}), "utf-8")
    argv = [sys.executable, "-I", "-S", "-B", landlock_launcher.__file__, str(rules), "2", "true"]

    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert done.stderr == f"[Errno 2] No such file or directory: '{tmp_path}/gone'\n"
