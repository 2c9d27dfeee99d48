"""Start of commands: the mark is set before the first instruction, and the shell dies with the program."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.tools.calls import eventually
from tui_agent.tools.processes.command_launcher import launcher_problem, wrap_argv
from tui_agent.tools.processes.process_tree import TreeMark

BASH = shutil.which("bash") or ""

IN_TRIAL = """
import asyncio, os, sys
from pathlib import Path
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.tools.search.file_listing import BoundedBytes
from tui_agent.tools.processes.process import ProcessSpec, run_process
from tui_agent.trial.trials import Trials

walled = Trials(Path.cwd(), Path(sys.argv[2]), "one").open("call").walled(("bash", "-c", sys.argv[1]), os.environ)
spec = ProcessSpec(walled.argv, Path.cwd(), walled.environment, None, descriptors=walled.descriptors, is_wrapped=True,
                   ends_all=walled.ends_all, is_command=True)
asyncio.run(run_process(spec, BoundedBytes(1000), None, CancellationToken()))
"""
"""Script that runs one command in a trial as a call does."""


def fake_program(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (directory / name).chmod(0o755)


def test_a_command_starts_with_its_mark_and_unchanged_arguments(root: Path) -> None:
    mark = TreeMark.new()
    argv = ("bash", "--noprofile", "--norc", "-c", "--", 'ulimit -S -x; ulimit -H -x; echo "$0" "$#"')

    done = subprocess.run(wrap_argv(argv, mark, root), capture_output=True, text=True, check=True)

    assert done.stdout == f"{mark.limit}\nunlimited\nbash 0\n"


@pytest.mark.slow
def test_a_command_in_a_trial_needs_no_launcher_to_die_with_the_program(root: Path, tmp_path: Path) -> None:
    script = "echo run >> /tmp/here; trap '' TERM HUP; setsid sleep 600 & while :; do sleep 0.05; done"
    argv = [sys.executable, "-c", IN_TRIAL, script, str(tmp_path / "trials")]
    program = subprocess.Popen(argv, cwd=root, start_new_session=True)
    assert eventually(lambda: len([*(tmp_path / "trials").glob("sessions/*/tmp/here")]) == 1, 60)
    started = psutil.Process(program.pid).children(recursive=True)
    assert "setpriv" not in {process.name() for process in started}

    program.send_signal(signal.SIGKILL)
    program.wait(30)

    assert len(started) > 3
    ended = [lambda one=one: not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in started]
    assert all(eventually(has_ended, 30) for has_ended in ended)


def test_other_programs_with_the_same_names_are_not_used(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("true",)
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    assert wrap_argv(argv, TreeMark.new(), root) == argv
    assert launcher_problem(root) == "setpriv of util-linux is not installed"

    (programs / "bash").symlink_to(BASH)
    fake_program(programs, "setpriv", "exit 1")
    assert wrap_argv(argv, TreeMark.new(), root)[0] == str(programs / "bash")
    assert launcher_problem(root) == "setpriv on PATH is not the one of util-linux, or fails"


def test_a_command_runs_even_if_no_mark_can_be_set(root: Path) -> None:
    started = wrap_argv(("bash", "-c", "ulimit -S -x; exit 3"), TreeMark.new(), root)

    done = subprocess.run(
        ["bash", "-c", 'ulimit -x 100; exec "$@"', "bash", *started], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (3, "100\n", "")


def test_programs_in_the_workspace_are_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("setpriv", "bash"):
        fake_program(root, name, "touch ran")
    monkeypatch.setenv("PATH", f"{root}{os.pathsep}{os.environ['PATH']}")

    command_line = wrap_argv(("true",), TreeMark.new(), root)

    assert not any(str(root) in word for word in command_line)
    assert launcher_problem(root) is None
