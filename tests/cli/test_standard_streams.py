"""Standard streams that are closed, full or without a reader: one sentence, and no output in other files."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.examples import only_long
from tests.support.forked_program import PROGRAM, ForkedProgram
from tests.support.table import table

pytestmark = pytest.mark.slow

DEMO = ("--demo", "-p", "--output-format")
FORMATS = ("text", "json", "stream-json")


def without(tmp_path: Path, closed: Sequence[int], *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the program with some of its standard streams closed."""

    def close() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, "-m", "tui_agent", *arguments]
    return subprocess.run(command, cwd=tmp_path, input=b"", capture_output=True, check=False, preexec_fn=close)


def run_with_output(output: int, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """Run the program with a descriptor as its output; return its exit code and standard error."""
    with (tmp_path / "errors").open("w+", encoding="utf-8") as errors, open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), output, errors.fileno())
        code = ForkedProgram([str(PROGRAM), *arguments], cwd=tmp_path, environment=os.environ, streams=streams).wait(60)
        errors.seek(0)
        return code, errors.read()


def journals(home: Path) -> list[bytes]:
    return [path.read_bytes() for path in (home / ".local/state/tui-agent/sessions").glob("*.jsonl")]


@pytest.mark.parametrize("form", ["text", *only_long("json", "stream-json")])
def test_a_run_whose_output_is_closed_fails_and_writes_into_no_other_file(
    tmp_path: Path, form: str, clean_environment: Path
) -> None:
    done = without(tmp_path, [0, 1], *DEMO, form, "list files")

    assert done.returncode == 1
    assert done.stderr == b"tui-agent: error: the output could not be written (Bad file descriptor)\n"
    [journal] = journals(clean_environment)
    assert all(line.startswith(b'{"v":') for line in journal.splitlines())


@table("form", FORMATS)
def test_a_run_with_a_full_output_fails(tmp_path: Path, form: str) -> None:
    with Path("/dev/full").open("wb") as full:
        code, errors = run_with_output(full.fileno(), tmp_path, *DEMO, form, "list files")

    assert code == 1
    assert errors == "tui-agent: error: the output could not be written (No space left on device)\n"


@table("form", FORMATS)
def test_a_closed_reader_causes_no_message(tmp_path: Path, form: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code, errors = run_with_output(writer, tmp_path, *DEMO, form, "list files")
    finally:
        os.close(writer)

    assert errors == ""
    assert code == (130 if form == "stream-json" else 0)


def test_a_run_without_error_output_and_input_works(tmp_path: Path, clean_environment: Path) -> None:
    done = without(tmp_path, [0, 2], *DEMO, "text", "list files")

    assert done.returncode == 0
    assert done.stdout
    assert all(line.startswith(b'{"v":') for line in journals(clean_environment)[0].splitlines())


def test_a_closed_input_is_empty(tmp_path: Path) -> None:
    done = without(tmp_path, [0], "-p", "--demo")

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"tui-agent: -p needs a prompt: as an argument, or on standard input.\n"
    assert without(tmp_path, [0], "permissions", "check").returncode == 0


@table("arguments", [("--help",), ("config", "show"), ("tools", "list")])
def test_a_command_with_closed_output_reports_that(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = without(tmp_path, [1], *arguments)

    assert done.returncode == 2
    assert done.stderr == b"tui-agent: the output cannot be written: Bad file descriptor\n"
