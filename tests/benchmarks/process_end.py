"""Ends the program in every way from every state: `python -m tests.benchmarks.process_end [STATE…]`.

`tests/e2e/test_terminal_state.py` plays a few of the pairs; all of them take about five minutes.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.program_states import STATES
from tests.e2e.user_machine import UserMachine
from tests.e2e.ways_to_end import LONGEST_GOODBYE, WAYS, end_it


def main(wanted: Sequence[str]) -> int:
    """Play all pairs of the named states, or of all states; return the number of failures."""
    failed = 0
    for name in wanted or STATES:
        for way in WAYS.values():
            with tempfile.TemporaryDirectory(prefix="process-end-") as directory:
                machine = UserMachine(Path(directory))
                try:
                    told = f"{end_it(machine, STATES[name], way, LONGEST_GOODBYE):.1f} s"
                except AssertionError as error:
                    failed += 1
                    told = f"FAILED {error}"
                finally:
                    machine.end_processes()
            print(f"{name:<12} {way.name:<8} {told}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
