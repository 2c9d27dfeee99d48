"""The prelude in a real pty, while the program behind it hangs in an import."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import tui_agent
from tests.support.screen_buffer import ALTERNATE_SCREEN
from tests.support.table import table
from tests.support.terminal import Terminal

HANGS = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from tui_agent.prelude import early_start
early_start.begin(sys.argv[1:])
os.read(os.pipe()[0], 1)
"""
UNWRITABLE = f"""
from tui_agent.prelude import early_terminal
write = early_terminal._write
def write_or_fail(text):
    if "q" in text:
        write("no echo")
        raise OSError
    write(text)
early_terminal._write = write_or_fail
{HANGS}
"""
FAILS = """
import os, sys
from tui_agent.prelude import early_start
early_start.begin(sys.argv[1:])
while not os.path.exists("go"): pass
early_start.release()
print("it says why")
early_start.end()
"""


def early(home: Path, program: str = HANGS, variables: Mapping[str, str] | None = None) -> Terminal:
    package = str(Path(tui_agent.__file__).parent.parent)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": package, **(variables or {})}
    return Terminal([sys.executable, "-c", program], cwd=home, environment=environment, columns=60, rows=10)


def test_text_is_echoed_while_the_program_hangs(tmp_path: Path) -> None:
    with early(tmp_path) as terminal:
        terminal.wait_for(" ›")
        terminal.type("hellö 漢字\x7f")
        terminal.wait_for("› hellö 漢")
        terminal.resize(40, 20)
        terminal.wait_for(lambda screen: screen.lines[18].startswith(" › hellö 漢"))
        terminal.type("\x1b[Dx")
        terminal.press("ctrl+c", "ctrl+c")

        assert terminal.wait_for_end() == 130
        assert terminal.left_behind == []


def test_text_that_cannot_be_echoed_ends_nothing(tmp_path: Path) -> None:
    with early(tmp_path, UNWRITABLE) as terminal:
        terminal.wait_for(" ›")
        terminal.write("q")
        terminal.wait_for("no echo")
        terminal.write("\x03\x03")

        assert terminal.wait_for_end() == 130


@table("end", ["\x03\x03", "\x1b[99;5u\x1b[99;5u", "\x1b[27;5;99~\x03", signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_twice_and_a_signal_end_a_program_that_hangs(tmp_path: Path, end: str | signal.Signals) -> None:
    with early(tmp_path) as terminal:
        terminal.wait_for(" ›")
        terminal.type("first")
        terminal.wait_for("› first")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "first" not in screen.text)
        terminal.type("second")
        terminal.wait_for("› second")
        if isinstance(end, str):
            terminal.write(end)
        else:
            os.kill(terminal.process.pid, end)

        assert terminal.wait_for_end() == (130 if isinstance(end, str) else 128 + end)
        assert terminal.left_behind == []
        assert any(line.startswith("tui-agent: this was not sent: first") for line in terminal.screen.lines)


@table("variables", [{"TERM": "dumb"}, {"TERM": ""}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_terminal_that_cannot_show_it_is_left_alone(tmp_path: Path, variables: Mapping[str, str]) -> None:
    with early(tmp_path, FAILS, variables) as terminal:
        (tmp_path / "go").touch()

        assert terminal.wait_for_end() == 0
        assert b"\x1b" not in terminal.raw
        assert ALTERNATE_SCREEN not in terminal.screen.modes
