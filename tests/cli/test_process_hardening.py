"""Commands cannot read the environment and memory of the program that runs them (safety promise 9)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a process's memory from its own user"),
    pytest.mark.slow,
]

CANARY = "CANARY-1f0c"
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
PR_CAPBSET_DROP = 24
for capability in (19, 21, 38):  # SYS_PTRACE, SYS_ADMIN, PERFMON: root may read everybody's memory, users may not
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
RUN_A_COMMAND = """
import asyncio, sys
from pathlib import Path
from tests.tools.calls import call
from tui_agent.cli.process.process_setup import deny_memory_access
from tui_agent.tools import Workspace, default_tools

root = Path(sys.argv[1])
if sys.argv[2] == "kept":
    assert deny_memory_access()
tools = default_tools(Workspace(root, spool_dir=root / "spool"), is_read_only_command=lambda _: False)
[bash] = [tool for tool in tools if tool.name == "bash"]
for command in sys.argv[3:]:
    print(asyncio.run(call(bash, command=command)).text, end="\\0")
"""
LOOKS = (
    "cat /proc/$PPID/environ | tr '\\0' '\\n'",
    "cat /proc/$PPID/environ | tr '\\0' '\\n'; cat /proc/$PPID/maps; ls -l /proc/$PPID/fd /proc/$PPID/cwd",
    "p=$PPID; (setsid cat /proc/$p/task/$p/environ)",
)


def shown_by(root: Path, how: str, *commands: str) -> list[str]:
    """Return the output of each command."""
    program = ["-c", RUN_A_COMMAND, str(root), how, *commands]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGE, *program],
        env={**os.environ, "ANTHROPIC_API_KEY": CANARY, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\0")[:-1]


def test_a_command_does_not_find_the_key_in_the_process_that_runs_it(tmp_path: Path) -> None:
    assert [CANARY in shown for shown in shown_by(tmp_path, "open", *LOOKS)] == [True] * len(LOOKS), "else no test"

    shown = shown_by(tmp_path, "kept", *LOOKS)

    assert [(CANARY in text, "Permission denied" in text) for text in shown] == [(False, True)] * len(LOOKS)


def test_commands_themselves_stay_readable(tmp_path: Path) -> None:
    """Otherwise debuggers and tracers that the user runs in a command would fail."""
    # A process shows nothing until its program has started.
    looks = "for n in $(seq 1000); do tr '\\0' '\\n' < /proc/$!/environ | grep PATH= && break; done"

    assert "PATH=" in shown_by(tmp_path, "kept", f"sleep 60 & {looks}; kill $!")[0]


def test_the_program_hardens_itself_before_it_runs_anything(tmp_path: Path) -> None:
    look = (
        "import ctypes, os, sys; from tui_agent import __main__ as program;"
        "from tui_agent.cli import command_line; import tui_agent.cli.process.process_setup;"
        "command_line.run_program = lambda _: print(os.stat('/proc/self/environ').st_uid);"
        "os.setgroups([]) if os.geteuid() == 0 else None; os.setresuid(*[os.geteuid() or 65534] * 3);"
        "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0); program.main()"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.stdout == "0\n", done.stderr
