"""Hostile commands, each really run in a trial of its own: nothing around it may change.

Run by hand: `python -m tests.benchmarks.hostile_trials [COMMANDS [SEED]] [--way WAY] [--user NAME] [--record FILE]`.
First all commands of the lists in `tests/permissions`, then generated ones. Workspace, homes and temporary directories
are compared byte for byte, with times and attributes; processes and connections count, too. As root, it has mounts and
a network of its own, so that all of /tmp, /home and /root is compared, and can become another user. Prints every
command that left a trace; the exit code is then 1.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.permissions.command_grammar import any_commands, joins, wraps
from tests.trial.trial_cage import TrialCage, all_corpora, sorts_of
from tests.trial.ways import LANDLOCK

AT_ONCE = 200
"""Commands between two comparisons."""
_PRIVATE = ("/tmp", "/var/tmp", "/dev/shm", "/home", "/root")
_INSIDE = "TRIALS_INSIDE"


def generated(first_seed: int) -> Iterator[str]:
    """Yield commands of the grammar, and hostile ones joined with or wrapped in others, without end."""
    hostile = st.sampled_from([command for found in all_corpora().values() for command in found])
    wrapped = st.builds(lambda wrap, text: wrap.format(text), wraps, hostile)
    joined = st.builds(lambda one, join, other: one + join + other, hostile, joins, hostile)
    drawn: list[str] = []
    while True:
        drawn.clear()

        @seed(first_seed)
        @settings(
            max_examples=10,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(commands=st.lists(st.one_of(any_commands, wrapped, joined), min_size=50, max_size=50))
        def draw(commands: list[str]) -> None:
            drawn.extend(commands)

        draw()
        yield from dict.fromkeys(drawn)
        first_seed += 1


def commands_of(count: int, first_seed: int) -> Iterator[tuple[str, str]]:
    """Yield commands with the name of their list."""
    number = 0
    for name, found in all_corpora().items():
        for command in found:
            if number < count and "\0" not in command:
                number += 1
                yield name, command
    for command in generated(first_seed):
        if number >= count:
            return
        if "\0" not in command:
            number += 1
            yield "generated", command


def try_all(cage: TrialCage, chosen: argparse.Namespace) -> int:
    """Run all commands; return the number of complaints."""
    waiting: list[tuple[str, str]] = []
    tried = guilty = 0
    sorts: Counter[str] = Counter()
    began = time.monotonic()
    source = commands_of(chosen.commands, chosen.seed)
    while True:
        waiting = [pair for _, pair in zip(range(AT_ONCE), source, strict=False)]
        if not waiting:
            return guilty
        outcomes, told = cage.guilty([command for _, command in waiting], workers=chosen.workers)
        survivors = left_over(wait=chosen.way != LANDLOCK)
        told += [f"process {pid} is left over" for pid in survivors if chosen.way != LANDLOCK]
        tried, guilty = tried + len(waiting), guilty + len(told)
        lines: list[str] = []
        for (name, _), outcome in zip(waiting, outcomes, strict=True):
            found = [*sorts_of(outcome.changes)]
            sorts.update(found)
            problem = outcome.changes.problem if outcome.changes else ""
            line = [name, outcome.command, outcome.code, found, problem, outcome.fault]
            lines.append(json.dumps(line) + "\n")
        for line in told:
            print(f"TRACE {line}", flush=True)
        print(f"{tried:,} run, {guilty} complaints, {time.monotonic() - began:.0f} s {dict(sorts)}", flush=True)
        with open(chosen.record or os.devnull, "a", encoding="utf-8") as record:
            record.writelines(lines)


def left_over(*, wait: bool) -> list[int]:
    """Return the children that processes of commands left to this process, and end them.

    Under Landlock they do not end with a namespace: the program itself searches for them.
    """
    children: list[str] = []
    for _ in range(50 if wait else 1):
        tasks = Path("/proc/self/task").iterdir()
        children = [child for task in tasks for child in (task / "children").read_text("ascii").split()]
        for child in map(int, children):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        if not children:
            return []
        time.sleep(0.1)
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), 9)
    return [*map(int, children)]


def make_private(user: str) -> None:
    """Give this process its own temporary directories, homes and network, and start again as the user."""
    place = Path(tempfile.mkdtemp(prefix="trials-", dir="/opt"))
    place.chmod(0o755)
    for top in _PRIVATE:
        (place / top[1:].replace("/", "-")).mkdir(mode=0o1777 if "tmp" in top or "shm" in top else 0o755)
    (place / "root/.pyenv").mkdir()
    who = pwd.getpwnam(user)
    (place / "home" / user).mkdir()
    os.chown(place / "home" / user, who.pw_uid, who.pw_gid)
    lines = [f"mount --bind /root/.pyenv {place}/root/.pyenv"] if Path("/root/.pyenv").exists() else []
    lines += [
        f"mount --{'r' if top == '/root' else ''}bind {place}/{top[1:].replace('/', '-')} {top}" for top in _PRIVATE
    ]
    lines += [f"chmod 1777 /tmp /var/tmp /dev/shm; ip link set lo up; mkdir /home/{user}/cage"]
    lines += [f"chown {user}: /home/{user}/cage; export HOME=/home/{user} {_INSIDE}=1; ulimit -u 3000"]
    lines += [f'exec setpriv --reuid {user} --regid {user} --init-groups "$@"']
    script = "set -e; " + "; ".join(lines)
    argv = ["unshare", "--mount", "--net", "--propagation", "private", "bash", "-c", script, "bash"]
    code = subprocess.run(
        [*argv, sys.executable, "-m", "tests.benchmarks.hostile_trials", *sys.argv[1:]], check=False
    ).returncode
    subprocess.run(["rm", "-rf", "--one-file-system", str(place)], check=False)
    sys.exit(code)


def main() -> int:
    """Parse the arguments and run; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.hostile_trials")
    parser.add_argument("commands", nargs="?", type=int, default=20_000, help="number of commands to run")
    parser.add_argument("seed", nargs="?", type=int, default=0, help="seed of the generated ones")
    parser.add_argument("--way", default="overlay", help="way to run them, see tests/trial/ways.py")
    parser.add_argument("--user", default="", help="user who runs them, if root starts this")
    parser.add_argument("--record", default="", help="file that receives a line for each command")
    parser.add_argument("--workers", type=int, default=4, help="commands at the same time")
    chosen = parser.parse_args()
    is_inside = _INSIDE in os.environ
    if os.geteuid() == 0 and not is_inside:
        make_private(chosen.user or "root")
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(dir=Path.home() / "cage" if is_inside else "/var/tmp") as directory:
        place = Path(directory) / "cage"
        place.mkdir()
        cage = TrialCage(place, chosen.way, whole=[*map(Path, ("/tmp", "/var/tmp", "/dev/shm"))] if is_inside else ())
        try:
            return 1 if try_all(cage, chosen) else 0
        finally:
            cage.close()


if __name__ == "__main__":
    sys.exit(main())
