"""The whole crash sweep: `python -m tests.benchmarks.crash_sweep [POINTS] [SEED]`, run by hand.

A session of 20 turns with reads and effects is killed before, in the middle of and after each operation on the disk,
and at random times until there are POINTS (1000) of them; each is taken up again, a quarter of them killed again
meanwhile, and brought to its end. Ends with 1 if anything acknowledged was lost, an effect came twice, or a request
would be refused.
"""

import random
import sys
import tempfile
from pathlib import Path

from tests.session.crashes import points_of, sweep, whole_session


def main(count: int, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="crash-sweep-") as directory:
        root = Path(directory)
        operations, seconds = whole_session(root)
        chance = random.Random(seed)
        points = points_of(operations)
        points += [-chance.randrange(1_000, int(seconds * 1e6)) for _ in range(count - len(points))]
        chance.shuffle(points)
        print(f"{operations} operations on the disk in a whole session; {len(points)} points", flush=True)
        found = sweep(root, points, seed=seed)
        print(found)
        print("\n".join(found.faults))
        return 1 if found.faults else 0


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 1_000, numbers[1] if len(numbers) > 1 else 1))
