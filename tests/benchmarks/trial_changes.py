"""Time from the end of commands in trials to the next request to the model.

Run by hand: `python -m tests.benchmarks.trial_changes [SECONDS]`. Prints the time that reading a layer with 1,000
changed files takes, and the time of four commands of so many seconds that each write two files.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.script import call, calls, says
from tests.e2e.test_headless import piped
from tests.e2e.user_machine import UserMachine
from tests.trial.ways import run_in, walls_of
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trials import Trials

FILES = 1_000
RUNS = 10
COMMIT = "git init -q && git add . && git -c user.name=x -c user.email=x@example.org commit -qm x"


def reading(top: Path) -> list[float]:
    """Return the milliseconds in which layers with many changed files are read."""
    (root := top / "work").mkdir()
    for number in range(FILES):
        path = root / f"src{number % 20}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"line {number}\n" * 50, "utf-8")
    subprocess.run(COMMIT, shell=True, cwd=root, check=True)
    trials = Trials(root, top / "state", "one", PathSorter(root))
    trials._ways = lambda: iter([walls_of("overlay")])  # pyright: ignore
    times: list[float] = []
    for _ in range(RUNS):
        layer = trials.open("call")
        run_in(layer, "for file in src*/*; do echo more >> $file; done").layer.end()
        began = time.perf_counter()
        assert len(layer.changes().changes) == FILES
        times.append((time.perf_counter() - began) * 1000)
        layer.discard()
    trials.close()
    return times


def four_commands(top: Path, seconds: float) -> float:
    """Return the seconds from the start of four commands to the next request."""
    machine = UserMachine(top)
    subprocess.run(f"echo a > a; {COMMIT}", shell=True, cwd=machine.work, check=True)
    commands = [f"sleep {seconds}; echo x > one{number}; echo y > two{number}" for number in range(4)]
    script = [calls(*(call("bash", command=command) for command in commands)), says("Done.")]
    began = ended = 0.0
    with piped(machine, script, "--permission-mode", "accept_edits", "work") as (program, _):
        for line in iter(program.process.stdout.readline, ""):
            kind = json.loads(line)["type"]
            began = began or (time.monotonic() if kind == "tool.started" else 0.0)
            ended = time.monotonic() if kind == "step.started" else ended
            if kind == "run.ended":
                break
        program.end()
    assert len([*machine.work.glob("*[0-3]")]) == 8
    return ended - began


def main() -> int:
    """Print the figures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 6
    with tempfile.TemporaryDirectory(dir="/var/tmp") as one, tempfile.TemporaryDirectory(dir="/var/tmp") as other:
        times = sorted(reading(Path(one)))
        print(f"{FILES:,} changed files: median {times[RUNS // 2]:.0f} ms, least {times[0]:.0f} ms")
        took = four_commands(Path(other), seconds)
        print(f"four commands of {seconds:g} s: next request after {took:.2f} s, {took / seconds:.3f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
