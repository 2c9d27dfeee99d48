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
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        str(ROOT),
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(target),
        "-q",
    ]
    subprocess.run(build, check=True, capture_output=True)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment with the wheel and the dependencies of this environment, without its package."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, with_pip=False)
    python = root / "bin" / "python"
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
        "-q",
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    packages = next((root / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", "utf-8")
    return root


def test_the_index_takes_the_wheel_and_renders_its_page(wheel: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(wheel)], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, "PASSED" in checked.stdout) == (0, True), checked.stdout


def run(environment: Path, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {"HOME": str(directory), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    program = str(environment / "bin" / "tui-agent")
    return subprocess.run(
        [program, *arguments], cwd=directory, env=variables, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.slow
def test_the_wheel_contains_themes_and_style_sheets(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert "tui_agent/themes/dark.toml" in names
    assert any(name.endswith(".tcss") for name in names)
    assert "tui_agent/py.typed" in names
    assert not any(name.startswith("tests/") for name in names)


def test_the_wheel_contains_the_manual_page_and_valid_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    base = f"tui_agent-{__version__}"

    metadata = Metadata.from_email(archive.read(f"{base}.dist-info/METADATA"), validate=True)

    assert metadata.description_content_type == "text/markdown"
    assert archive.read(f"{base}.data/data/share/man/man1/tui-agent.1") == (ROOT / "docs/tui-agent.1").read_bytes()
    assert {name.partition("/")[0] for name in archive.namelist()} == {
        "tui_agent",
        f"{base}.data",
        f"{base}.dist-info",
    }


@pytest.mark.slow
def test_it_knows_its_version(environment: Path, tmp_path: Path) -> None:
    assert run(environment, tmp_path, "--version").stdout == f"tui-agent {__version__}\n"


def test_it_runs_from_the_environment_and_not_from_the_checkout(environment: Path, tmp_path: Path) -> None:
    script = "import tui_agent; print(tui_agent.__file__)"
    done = subprocess.run(
        [environment / "bin" / "python", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith(str(environment))


@pytest.mark.slow
def test_the_doctor_reports_working_and_missing_parts(environment: Path, tmp_path: Path) -> None:
    done = run(environment, tmp_path, "doctor")

    assert done.returncode == 1
    assert "ANTHROPIC_API_KEY is not set" in done.stdout
    assert "--demo" in done.stdout


@pytest.mark.slow
def test_a_headless_demo_run_reads_a_real_file(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the quick brown fox\n", "utf-8")

    done = run(environment, tmp_path, "--demo", "-p", "show note.txt", "--output-format", "json")

    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert answer["is_error"] is False
    assert answer["tool_calls"] == 1
    assert "quick brown fox" in answer["result"]
