"""`--processes` reports what happens in each forked process as one process would."""

import subprocess
import sys
from pathlib import Path

FILES = {
    "test_shared.py": """
import os
import pytest

@pytest.fixture(scope="module")
def shared():
    yield []
    open(__file__ + ".ended", "w").close()

def test_first(shared, tmp_path):
    shared.append(tmp_path)

def test_second(shared):
    os.write(1, b"written to the descriptor")
    assert not shared

@pytest.mark.skip(reason="on purpose")
def test_skipped():
    pass
""",
    "test_dying.py": """
import os

def test_dies():
    os._exit(3)

def test_behind():
    pass
""",
}


def test_failures_output_and_dead_processes_are_reported(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    options = ("-p", "tests.support.forked_tests", "--processes", "2", "-p", "no:cacheprovider", "--rootdir", tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *map(str, options), str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    shown = ended.stdout
    assert ended.returncode == 2, shown + ended.stderr
    assert "2 failed, 1 passed, 1 skipped" in shown
    assert "written to the descriptor" in shown
    assert (tmp_path / "test_shared.py.ended").exists()
    assert "the process of the test ended with exit code 3" in shown
    assert "2 tests did not run: test_dying.py::test_dies, test_dying.py::test_behind" in shown
