"""The programs of `docs/library.md` print the documented output and pass the type checker."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.programs import DOCS, Block, printed_by, programs_of

PAGE = DOCS / "library.md"


@pytest.mark.parametrize(("program", "output"), [pytest.param(*pair, id=pair[0].title) for pair in programs_of(PAGE)])
def test_a_program_prints_the_output_below_it(
    program: Block, output: Block, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert output.language == "text"
    assert printed_by(program, PAGE, capsys, monkeypatch) == output.text


@pytest.mark.slow
def test_every_program_passes_the_strict_type_checker(tmp_path: Path) -> None:
    for number, (program, _) in enumerate(programs_of(PAGE)):
        (tmp_path / f"program_{number}.py").write_text(f"# pyright: strict\n{program.text}", "utf-8")

    checker = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(tmp_path)]
    done = subprocess.run(checker, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stdout
