"""Time that the sandbox adds to a command, and that the check of protected files takes.

Run by hand: `python -m tests.benchmarks.sandbox [RUNS]`. Prints the time of an empty bash command without and with the
sandbox, alternating so that both meet the same load, in an empty repository and in a tree of 20,000 files; then of a
scan for protected names in that tree, the first one and the later ones. The least time and the CPU time depend little
on the load of the machine.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tui_agent.permissions.paths.protected_paths import ProtectedTree
from tui_agent.tools.processes.process import ProcessSpec
from tui_agent.tools.processes.sandbox import Sandbox, sandbox_problem

DIRECTORIES, FILES_IN_EACH = 2_000, 10


def make_repository(root: Path) -> Path:
    """Create a directory with the files of a repository that are watched."""
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n", "utf-8")
    return root


def make_tree(root: Path) -> Path:
    """Create a repository with 20,000 files."""
    make_repository(root)
    for number in range(DIRECTORIES):
        directory = root / f"part{number % 40}" / f"package{number}"
        directory.mkdir(parents=True)
        for file in range(FILES_IN_EACH):
            (directory / f"file{file}.py").touch()
    return root


@dataclass(frozen=True)
class Cost:
    """Cost of one command."""

    seconds: float
    cpu: float
    """Seconds of CPU, here and in the command."""


async def cost_of_commands(root: Path, runs: int) -> tuple[list[Cost], list[Cost]]:
    """Return the cost of an empty command without and with the sandbox."""
    tree = ProtectedTree(root)
    sandbox = Sandbox(lambda _: tree.places())
    bare = ProcessSpec(("/bin/bash", "--noprofile", "--norc", "-c", ":"), root, dict(os.environ), None)
    without: list[Cost] = []
    within: list[Cost] = []
    for _ in range(runs + 1):
        began = now()
        run_it(bare)
        without.append(since(began))
        began = now()
        async with sandbox.around(bare) as run:
            run_it(run.spec)
        within.append(since(began))
    return without[1:], within[1:]


def run_it(spec: ProcessSpec) -> None:
    """Run a program to its end."""
    subprocess.run(spec.argv, cwd=spec.cwd, env=spec.environment, pass_fds=spec.descriptors, check=True)


def now() -> Cost:
    """Return the clocks."""
    return Cost(time.perf_counter(), sum(os.times()[:4]))


def since(began: Cost) -> Cost:
    """Return the cost since an earlier time."""
    ended = now()
    return Cost(ended.seconds - began.seconds, ended.cpu - began.cpu)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of CPU that a call takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def described(seconds: list[float]) -> str:
    """Return median and least of some times."""
    return f"median {statistics.median(seconds) * 1000:6.1f} ms, least {min(seconds) * 1000:6.1f} ms"


def main() -> int:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory(prefix="tui-agent-") as name:
        top = Path(os.path.realpath(name))
        if problem := sandbox_problem(top):
            print(f"no sandbox here: {problem}")
            return 1
        for title, root in (
            ("empty repository", make_repository(top / "small")),
            ("20,000 files", make_tree(top / "l")),
        ):
            without, within = asyncio.run(cost_of_commands(root, runs))
            cpu = statistics.mean(cost.cpu for cost in within) - statistics.mean(cost.cpu for cost in without)
            least = min(cost.seconds for cost in within) - min(cost.seconds for cost in without)
            print(f"{title}: without {described([cost.seconds for cost in without])}")
            print(f"{title}: with    {described([cost.seconds for cost in within])}")
            print(f"{title}: adds {least * 1000:.1f} ms at least, {cpu * 1000:.1f} ms of CPU on average")
        tree = ProtectedTree(top / "l")
        first = timed(tree.places)
        later = [timed(tree.files) for _ in range(runs)]
        print(f"protected names in 20,000 files: first scan {first * 1000:.1f} ms of CPU; later {described(later)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
