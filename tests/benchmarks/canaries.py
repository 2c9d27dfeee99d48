"""Differential run of bash: commands allowed without a question must not change anything.

Run by hand: `python -m tests.benchmarks.canaries [COMMANDS [SEED]]`. Commands come from the grammar of the short test
(`tests/permissions/test_canaries.py`); each allowed one runs in a directory full of canaries. Prints the number of
commands tried and allowed, and every command that left a trace (a change, a canary that ran, a secret shown); the exit
code is then 1.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.permissions.canary_cage import CanaryCage, bound_resources
from tests.permissions.command_grammar import any_commands
from tui_agent.permissions import is_read_only_command

AT_ONCE = 50
"""Commands that are drawn, judged and run between two checks of the directory."""
ROUND = 100
"""Draws of one round; each round has its own seed."""


def try_commands(
    count: int, first_seed: int, cages: Sequence[CanaryCage], tell: Callable[[str], None]
) -> tuple[int, int, int]:
    """Try at least `count` commands; return the numbers tried, allowed, and with a trace."""
    tried = allowed = guilty = 0
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
        nonlocal tried, allowed, guilty
        cage = cages[number % len(cages)]
        different = list(dict.fromkeys(commands))
        running = [command for command in different if is_read_only_command(command, cage.work)]
        tried += len(different)
        allowed += len(running)
        for culprit in cage.culprits(running):
            guilty += 1
            tell(culprit)

    while tried < count:
        seed(number)(one_round)()
        number += 1
        tell(f"{tried:,} tried, {allowed:,} allowed, {guilty} left a trace")
    return tried, allowed, guilty


def main() -> int:
    """Parse the arguments and run; return the exit code."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first_seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bound_resources()
    with tempfile.TemporaryDirectory() as place:
        cages: list[CanaryCage] = []
        for name, has_odd_names in (("odd", True), ("plain", False)):
            (Path(place) / name).mkdir()
            cages.append(CanaryCage(Path(place) / name, has_odd_names=has_odd_names))
        Path(place).chmod(0o755)
        *_, guilty = try_commands(count, first_seed, cages, lambda line: print(line, flush=True))
    return 1 if guilty else 0


if __name__ == "__main__":
    sys.exit(main())
