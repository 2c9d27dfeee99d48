"""The programs of pages print the documented output, and those of `docs/library.md` pass the type checker."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.programs import DOCS, Block, printed_by, programs_of

PROGRAMS = [
    pytest.param(DOCS / name, *pair, id=pair[0].title)
    for name in ("library.md", "extending.md", "files.md")
    for pair in programs_of(DOCS / name)
]


@pytest.mark.parametrize(("page", "program", "output"), PROGRAMS)
def test_a_program_prints_the_output_below_it(
    page: Path,
    program: Block,
    output: Block,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    assert output.language == "text"
    assert printed_by(program, page, capsys, monkeypatch) == output.text


@pytest.mark.slow
def test_every_program_passes_the_strict_type_checker(tmp_path: Path) -> None:
    for number, (program, _) in enumerate(programs_of(DOCS / "library.md")):
        (tmp_path / f"program_{number}.py").write_text(f"# pyright: strict\n{program.text}", "utf-8")

    checker = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(tmp_path)]
    done = subprocess.run(checker, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stdout
