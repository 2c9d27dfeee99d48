"""The built wheel works in a fresh environment and another directory, without the checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.support.server_process import ROOT
from tui_agent import __version__


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel without network: the build tool is part of the development environment."""
    target = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "-w", str(target), "-q"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", str(ROOT), *options], check=True, capture_output=True)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment with the wheel and the dependencies of this environment, without its package."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, with_pip=False)
    options = ["--python", str(root / "bin" / "python"), "install", "--no-deps", "--no-index", "-q", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *options], check=True, capture_output=True)
    packages = next((root / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", "utf-8")
    return root


def test_the_index_takes_the_wheel_and_renders_its_page(wheel: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(wheel)], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, "PASSED" in checked.stdout) == (0, True), checked.stdout


@pytest.mark.slow
def test_the_wheel_has_everything_that_it_needs_and_nothing_else(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names, base = archive.namelist(), f"tui_agent-{__version__}"

    metadata = Metadata.from_email(archive.read(f"{base}.dist-info/METADATA"), validate=True)

    assert metadata.description_content_type == "text/markdown"
    assert archive.read(f"{base}.data/data/share/man/man1/tui-agent.1") == (ROOT / "docs/tui-agent.1").read_bytes()
    assert {name.partition("/")[0] for name in names} == {"tui_agent", f"{base}.data", f"{base}.dist-info"}
    assert {"tui_agent/themes/dark.toml", "tui_agent/py.typed"} <= set(names)
    assert any(name.endswith(".tcss") for name in names)


@pytest.mark.slow
def test_a_headless_demo_run_reads_a_real_file(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the quick brown fox\n", "utf-8")
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    script = "import tui_agent; print(tui_agent.__file__)"
    command = [environment / "bin" / "tui-agent", "--demo", "-p", "show note.txt", "--output-format", "json"]

    used = subprocess.run([environment / "bin/python", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)

    assert used.stdout.startswith(str(environment)), "the checkout is not used"
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["is_error"], answer["tool_calls"]) == (False, 1)
    assert "quick brown fox" in answer["result"]
