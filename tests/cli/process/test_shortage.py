"""Too few descriptors or too little memory: one sentence and exit code 1, wherever it happens."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.user_machine import PROGRAM, App, UserMachine
from tests.support.examples import sample
from tests.support.table import table
from tui_agent.cli.process.shortage import FAILED, NEEDED_MIB, OUT_OF_MEMORY, shortage_in

pytestmark = pytest.mark.slow

MEGABYTE = 1 << 20
LEAST = 5
"""Descriptors that Python itself needs to start, the three standard streams among them."""


def limited(tmp_path: Path, kind: int, limit: int, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the program under a limit of `ulimit`."""
    return subprocess.run(
        [sys.executable, "-m", "tui_agent", *arguments],
        cwd=tmp_path,
        input=b"",
        capture_output=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@table(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too many open files; the limit is "),
        (ImportError("libx.so: cannot open shared object file: Too many open files"), "too many open files; the limit"),
        (OSError(errno.ENFILE, "Too many open files in system"), "the system has too many open files"),
        (MemoryError(), "not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory"),
        (ImportError("x.so: failed to map segment from shared object"), "not enough memory"),
        (SystemError("error return without exception set"), "not enough memory"),
        (SystemError("<function f at 0x7f> returned NULL without setting an exception"), "not enough memory"),
        (RuntimeError("can't start new thread"), "cannot start another thread"),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), "cannot create a temporary file"),
        (caused(ValueError("x"), caused(KeyError("y"), MemoryError())), "not enough memory"),
        (BaseExceptionGroup("a", [KeyError(), ExceptionGroup("b", [MemoryError()])]), "not enough memory"),
    ],
)
def test_a_shortage_is_found_however_deep_it_is(error: BaseException, words: str) -> None:
    found = shortage_in(error)

    assert found is not None
    assert found.startswith(words)


@table(
    "error",
    [OSError(errno.ENOENT, "x"), ImportError("x"), RuntimeError("x"), SystemError("x"), KeyboardInterrupt(), OSError()],
)
def test_other_errors_are_not_shortages(error: BaseException) -> None:
    error.__context__ = ValueError()
    error.__context__.__context__ = error

    assert shortage_in(error) is None


@table("limit", sample([LEAST, 7, 11, 13, 64], 4))
def test_a_run_with_few_descriptors_ends_with_a_sentence(tmp_path: Path, limit: int) -> None:
    done = limited(tmp_path, resource.RLIMIT_NOFILE, limit, "--demo", "-p", "list files")

    assert b"Traceback" not in done.stderr
    assert b"ignored" not in done.stderr
    # A look at the settings may meet the shortage; it keeps them and warns.
    errors = [line for line in done.stderr.splitlines() if not line.startswith(b"tui-agent: warning: ")]
    assert done.returncode == (1 if errors else 0)
    if limit <= 8:
        assert done.stderr.startswith(b"tui-agent: ")
        assert done.stderr.count(b"\n") == 1
    if limit == 64:
        assert done.returncode == 0


@table(
    "arguments",
    sample(
        [
            ("config", "check"),
            ("doctor",),
            ("sessions", "list"),
            ("tools", "list"),
            ("permissions", "check"),
            ("hooks", "test", "before_tool", "bash", "{}"),
            ("--version",),
        ],
        3,
    ),
)
def test_a_command_with_few_descriptors_works_or_ends_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = limited(tmp_path, resource.RLIMIT_NOFILE, LEAST, *arguments)

    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert done.stderr.count(b"\n") == done.returncode


@table("arguments", [("config", "check"), ("--demo", "-p", "hello")])
@table("limit", sample([20, 39.375, 40], 2))
def test_with_little_memory_it_ends_with_a_sentence(tmp_path: Path, arguments: tuple[str, ...], limit: float) -> None:
    done = limited(tmp_path, resource.RLIMIT_AS, int(limit * MEGABYTE), *arguments)

    if b"Fatal Python error" in done.stderr or done.returncode < 0:
        return  # The interpreter itself could not start, or one of its libraries ended the process.
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("error", ["MemoryError()", "SystemError('error return without exception set')"])
def test_a_report_without_memory_is_a_sentence(error: str) -> None:
    program = (
        "import tui_agent.__main__ as program\n"
        f"def shortage_in(error): raise {error}\n"
        "program.shortage_in = shortage_in\n"
        "raise ValueError\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.stderr == f"tui-agent: {OUT_OF_MEMORY}\n".encode()
    assert done.returncode == FAILED


@table("arguments", [("--demo", "-p", "hello"), ("--demo",)])
@table("limit", sample([150, 256, 400, 511], 3))
def test_a_run_is_refused_where_the_memory_limit_is_below_its_needs(
    tmp_path: Path, arguments: tuple[str, ...], limit: int
) -> None:
    done = limited(tmp_path, resource.RLIMIT_AS, limit * MEGABYTE, *arguments)

    assert done.stderr.decode() == (
        f"tui-agent: not enough memory: the address limit is {limit} MiB, and a run needs {NEEDED_MIB}:"
        f" raise it, for example with `ulimit -v {NEEDED_MIB * 1024}`\n"
    )
    assert done.stdout == b""
    assert done.returncode == 1


def test_doctor_says_that_the_memory_limit_is_too_low(tmp_path: Path) -> None:
    assert (
        b"memory     not enough memory: the address limit is 256 MiB"
        in limited(tmp_path, resource.RLIMIT_AS, 256 * MEGABYTE, "doctor").stdout
    )


@pytest.mark.parametrize("limit", [LEAST, 11])
def test_the_app_with_few_descriptors_restores_the_terminal_and_says_why(tmp_path: Path, limit: int) -> None:
    machine = UserMachine(tmp_path)
    command = f"ulimit -n {limit}; exec {PROGRAM} --demo"
    with App(["bash", "--norc", "-c", command], cwd=machine.work, environment=machine.environment) as app:
        assert app.wait_for_end() == 1
        assert app.left_behind == []
        assert "tui-agent: " in app.screen.text
        assert "Traceback" not in app.screen.text
    assert os.listdir(machine.work) == []
