"""The sample project of the tour: exactly one of its tests fails, with any runner."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.providers.demo.guided_tour import copy_sample_project, sample_test_command


def run(command: str, where: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SAMPLE_TEST_SECONDS": "0"}
    return subprocess.run(
        ["bash", "-c", command], cwd=where, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["-m pytest -q", "-m unittest discover -v -s"])
def test_one_test_fails_whatever_runs_it_and_wherever(tmp_path: Path, runner: str) -> None:
    target, elsewhere = tmp_path / "a place", tmp_path / "elsewhere"
    copy_sample_project(target)
    elsewhere.mkdir()

    done = run(f"{sys.executable} {runner} '{target}'", elsewhere)

    assert done.returncode == 1
    assert "1 failed, 7 passed" in done.stdout or "FAILED (failures=1)" in done.stderr
    assert "test_ten_pieces_get_the_discount" in done.stdout + done.stderr


def test_a_python_of_the_system_runs_the_tests_without_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/somewhere/else/python3")

    assert sample_test_command(Path("/tmp/x y")) == "python3 -m unittest discover -v -s '/tmp/x y'"
