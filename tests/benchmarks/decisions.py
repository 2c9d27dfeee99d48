"""Decisions a second of `permissions check`, the program that a user runs.

Run by hand: `python -m tests.benchmarks.decisions [COUNT]`. Prints the decisions a second by the clock and by the CPU
time of the program, its start left out: a run with one call is subtracted.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

CALLS = (
    {"tool": "bash", "input": {"command": "git status && npm test 2>&1 | tail -5"}},
    {"tool": "bash", "input": {"command": "rm -rf build && make -j4"}, "rules": [["ask", "bash(rm:*)"]]},
    {"tool": "bash", "input": {"command": "for f in *.py; do python3 $f > out/$f.txt; done"}},
    {"tool": "edit", "input": {"path": "src/a.py", "old_string": "a", "new_string": "b"}, "mode": "accept_edits"},
    {"tool": "read", "input": {"path": "/etc/hostname"}},
)


def run(count: int, directory: str) -> tuple[float, float]:
    """Return the seconds by the clock and of CPU that some decisions take, the start included."""
    lines = "".join(f"{json.dumps(CALLS[number % len(CALLS)])}\n" for number in range(count))
    before, began = os.times(), time.perf_counter()
    command = (sys.executable, "-m", "tui_agent", "permissions", "check")
    done = subprocess.run(command, cwd=directory, input=lines, capture_output=True, text=True, check=True)
    seconds, after = time.perf_counter() - began, os.times()
    assert done.stdout.count("\n") == count, done.stderr
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, used


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    with tempfile.TemporaryDirectory() as directory:
        once, many = run(1, directory), run(count, directory)
    by_clock, by_cpu = ((count - 1) / (after - before) for before, after in zip(once, many, strict=True))
    load = os.getloadavg()[0]
    print(f"{by_clock:,.0f} decisions/s by the clock, {by_cpu:,.0f} by CPU; load {load:.1f}")


if __name__ == "__main__":
    main()
