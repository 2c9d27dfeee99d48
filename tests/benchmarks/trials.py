"""Time that a trial adds to a command, and that reading and removing its layer takes.

Run by hand: `python -m tests.benchmarks.trials [RUNS] [PLACE]`; pin it to one processor with `taskset`. Prints the time
of an empty bash command without and with each kind of walls, alternating so that all meet the same load, then of the
end of an empty layer. The least time depends little on the load of the machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.trial.ways import LANDLOCK, LAYERS, READ_ONLY, walls_of
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.trial.trial_layer import TrialLayer
from tui_agent.trial.trials import Trials

COMMAND = ("/bin/bash", "--noprofile", "--norc", "-c", ":")


def trials_of(way: str, root: Path, storage: Path) -> Trials:
    """Return trials that use one kind of walls."""
    trials = Trials(root, storage, way.replace(" ", "-"))
    trials._ways = lambda: iter([walls_of(way)])  # pyright: ignore
    assert trials.facts.is_available, trials.facts.problem
    return trials


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds that a call takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def run_bare(environment: dict[str, str]) -> None:
    """Run the command without walls."""
    subprocess.run(COMMAND, env=environment, check=True)


def run_in(trials: Trials, environment: dict[str, str], layers: list[TrialLayer]) -> None:
    """Run the command in a new layer."""
    layers.append(layer := trials.open("call"))
    command = layer.walled(COMMAND, environment)
    subprocess.run(command.argv, env=command.environment, pass_fds=command.descriptors, check=True)


def end(layer: TrialLayer) -> None:
    """Read and remove a layer."""
    assert not layer.changes().changes
    layer.discard()


def described(times: list[float]) -> str:
    """Return median and least of some times."""
    return f"median {statistics.median(times):5.1f} ms, least {min(times):5.1f} ms"


def main() -> int:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    environment = child_environment(os.environ, is_confined=True)
    with tempfile.TemporaryDirectory(prefix="tui-agent-", dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        top = Path(os.path.realpath(name))
        (root := top / "work").mkdir()
        ways = {way: trials_of(way, root, top / "state") for way in (*LAYERS, READ_ONLY[0], LANDLOCK)}
        bare: list[float] = []
        starts: dict[str, list[float]] = {way: [] for way in ways}
        ends: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(runs):
            bare.append(timed(lambda: run_bare(environment)))
            for way, trials in ways.items():
                layers: list[TrialLayer] = []
                starts[way].append(timed(lambda: run_in(trials, environment, layers)))  # noqa: B023
                ends[way].append(timed(lambda: end(layers[0])))  # noqa: B023
        print(f"bare: {described(bare)}")
        for way, times in starts.items():
            adds = statistics.median(times) - statistics.median(bare)
            print(f"{way}: {described(times)}; adds {adds:.1f} ms; end {described(ends[way])}")
        for trials in ways.values():
            trials.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
