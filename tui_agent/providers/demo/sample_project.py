"""The sample project of the guided tour: a shop with one failing test, copied to a separate directory.

The package stores its files with the suffix `.txt`, so that no tool takes them for code of this package.
"""

import importlib.util
import shlex
import shutil
import sys
from pathlib import Path

_SOURCE = Path(__file__).parent / "sample"
_SUFFIX = ".txt"

SAMPLE_FILES = frozenset({"README.md", "cart.py", "prices.py", "pyproject.toml", "test_cart.py"})
"""Names of its files."""


def copy_sample_project(target: Path) -> None:
    """Copy the project into `target`, which is created if missing, over files of an earlier copy. Blocks.

    Raises:
        OSError: a file cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(SAMPLE_FILES):
        (target / name).write_bytes((_SOURCE / f"{name}{_SUFFIX}").read_bytes())


def sample_test_command(directory: Path) -> str:
    """Return a command that runs the tests of a copy from any working directory, with pytest if it is installed.

    One simple command, so that a permission rule can name it exactly.
    """
    found = shutil.which("python3")
    same = found is not None and Path(found).parent == Path(sys.executable).parent
    python = "python3" if found else shlex.quote(sys.executable)
    where = shlex.quote(str(directory))
    if (same or not found) and importlib.util.find_spec("pytest") is not None:
        return f"{python} -m pytest -q {where}"
    return f"{python} -m unittest discover -v -s {where}"
