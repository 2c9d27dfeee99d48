"""The complete crash sweep: `python -m tests.benchmarks.crash_sweep [POINTS] [SEED] [SCENE …]`, run by hand.

Scenes (`tests/session/crash_scenes.py`): a session of 20 turns with reads and effects, one with questions, one that is
compacted, a rewind, and copying, renaming and deleting. Each is killed before, during and after each disk operation,
and the 20 turns at random times until there are POINTS (1000) kills. Each session is resumed, a quarter of them killed
again meanwhile, and run to its end. Exits with 1 if anything acknowledged was lost, an effect happened twice, a request
would be refused, or files and conversation differ without a report.
"""

import random
import sys
import tempfile
from pathlib import Path

from tests.session.crash_scenes import SCENES
from tests.session.crashes import Scene, points_of, sweep, whole


def main(count: int, seed: int, names: list[str]) -> int:
    faults: list[str] = []
    for scene in SCENES:
        if not names or scene.name in names:
            faults += _swept(scene, count if scene is SCENES[0] else 0, seed)
    return 1 if faults else 0


def _swept(scene: Scene, count: int, seed: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="crash-sweep-") as directory:
        root = Path(directory)
        operations, seconds = whole(scene, root)
        chance = random.Random(seed)
        points = points_of(operations)
        points += [-chance.randrange(1_000, int(seconds * 1e6)) for _ in range(count - len(points))]
        chance.shuffle(points)
        print(f"{scene.name}: {operations} operations on the disk in a whole one; ", end="", flush=True)
        found = sweep(scene, root, points, seed)
        print("\n".join([str(found), *found.faults]), flush=True)
        return found.faults


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    chosen = [argument for argument in sys.argv[1:] if not argument.isdigit()]
    sys.exit(main(numbers[0] if numbers else 1_000, numbers[1] if len(numbers) > 1 else 1, chosen))
