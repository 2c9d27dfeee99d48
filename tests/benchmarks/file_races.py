"""Attempts to lead file tools out of the workspace, or into protected paths, by changing it under them.

Run by hand: `python -m tests.benchmarks.file_races [CALLS [SEED]]`. The short run is `tests/tools/test_file_races.py`.
Prints the outcomes of each tool's calls, and every forbidden change or read; the exit code is then 1.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.tools.file_races import AT_ONCE, RaceGround

MESSAGES = 25
"""Messages of one workspace before a new one is made."""


def main() -> int:
    """Parse the arguments and run; return the exit code."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    statuses, faults = Counter[str](), 0
    while statuses.total() < calls:
        with tempfile.TemporaryDirectory() as directory:
            ground = RaceGround(Path(directory).resolve(), seed)
            for fault in asyncio.run(ground.play(MESSAGES)):
                faults += 1
                print(fault, flush=True)
            statuses.update(ground.statuses)
        seed += 1
    for name, count in sorted(statuses.items()):
        print(f"{count:8,} {name}")
    print(f"{statuses.total():,} calls, {AT_ONCE} at once; {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
