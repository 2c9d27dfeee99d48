"""Differential run of bash: commands allowed without a question must not change anything.

Run by hand: `python -m tests.benchmarks.canaries [COMMANDS [SEED]] [--box]`. Commands come from the grammar of the
short test (`tests/permissions/test_canaries.py`); each allowed one runs in a directory full of canaries. Prints the
number of commands tried and allowed, and every command that left a trace (a change, a canary that ran, a secret shown);
the exit code is then 1.

With `--box`, commands run under bubblewrap as in mode `allow` with `sandbox = "auto"`: all that the policy confines,
those that only read, and also those that it would ask about. The sandbox must hold whatever they do: nothing protected
in the workspace and nothing beside it may change. Needs a folder outside `/tmp`, which the sandbox empties.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.permissions.canary_cage import BoxedCage, CanaryCage, bound_resources
from tests.permissions.command_grammar import any_commands
from tui_agent.permissions import is_read_only_command

AT_ONCE = 50
"""Commands that are drawn, judged and run between two checks of the directory."""
ROUND = 100
"""Draws of one round; each round has its own seed."""


def try_commands(
    count: int, first_seed: int, cages: Sequence[CanaryCage], tell: Callable[[str], None]
) -> tuple[int, int, int]:
    """Try at least `count` commands; return the numbers tried, run, and with a trace."""
    tried = run = guilty = 0
    number = first_seed

    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(commands=st.lists(any_commands, min_size=AT_ONCE, max_size=AT_ONCE))
    def one_round(commands: list[str]) -> None:
        nonlocal tried, run, guilty
        cage = cages[number % len(cages)]
        different = list(dict.fromkeys(command for command in commands if "\0" not in command))
        running = [one for one in different if isinstance(cage, BoxedCage) or is_read_only_command(one, cage.work)]
        tried += len(different)
        run += len(running)
        for culprit in cage.culprits(running):
            guilty += 1
            tell(culprit)

    while tried < count:
        seed(number)(one_round)()
        number += 1
        tell(f"{tried:,} tried, {run:,} run, {guilty} left a trace")
    return tried, run, guilty


def main() -> int:
    """Parse the arguments and run; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.canaries")
    parser.add_argument("commands", nargs="?", type=int, default=100_000, help="least number of commands to try")
    parser.add_argument("seed", nargs="?", type=int, default=0, help="seed of the first round")
    parser.add_argument("--box", action="store_true", help="run every command in the sandbox")
    chosen = parser.parse_args()
    bound_resources()
    kind = BoxedCage if chosen.box else CanaryCage
    with tempfile.TemporaryDirectory(dir="/opt" if chosen.box else None) as place:
        cages: list[CanaryCage] = []
        for name, has_odd_names in (("odd", True), ("plain", False)):
            (Path(place) / name).mkdir()
            cages.append(kind(Path(place) / name, has_odd_names=has_odd_names))
        Path(place).chmod(0o755)
        *_, guilty = try_commands(chosen.commands, chosen.seed, cages, lambda line: print(line, flush=True))
    return 1 if guilty else 0


if __name__ == "__main__":
    sys.exit(main())
