"""Whatever a command in a trial does, nothing around it changes before the answer (safety promise 10).

The long run over all lists and generated commands is `python -m tests.benchmarks.hostile_trials`.
"""

import itertools
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.benchmarks.hostile_trials import commands_of
from tests.support.examples import IS_LONG

from .trial_cage import TrialCage, all_corpora
from .ways import LANDLOCK

COUNT = 200 if IS_LONG else 60
OUTSIDE: dict[str, Callable[[TrialCage], object]] = {
    "content": lambda cage: (cage.work / "a.txt").write_text("evil"),
    "a new file": lambda cage: (cage.home / "new").touch(),
    "mode": lambda cage: (cage.home / ".netrc").chmod(0o444),
    "time": lambda cage: os.utime(cage.work / "b.txt", ns=(1, 1)),
    "attribute": lambda cage: os.setxattr(cage.work / "b.txt", "user.x", b"y"),
    "name": lambda cage: (cage.work / "x").rename(cage.work / "z"),
    "second name": lambda cage: os.link(cage.work / "y", cage.place / "y"),
    "connection": lambda cage: subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{cage.server.port}"]),
}


@pytest.fixture(params=["overlay", "unshare", "read-only", LANDLOCK])
def cage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrialCage]:
    monkeypatch.setenv("HOME", "/")
    place = tmp_path / "cage"
    place.mkdir()
    cage = TrialCage(place, request.param)
    yield cage
    cage.close()


@pytest.mark.slow
def test_no_hostile_command_leaves_a_trace(cage: TrialCage) -> None:
    known = [command for found in all_corpora().values() for command in found]
    generated = itertools.islice(commands_of(1 << 30, random.randrange(1 << 30)), len(known), len(known) + COUNT // 4)
    commands = [*random.sample(known, COUNT // 4 - COUNT // 8), *(command for _, command in generated)][: COUNT // 4]

    outcomes, told = cage.guilty(commands)

    assert told == []
    assert len(outcomes) == len(commands)


def test_the_comparison_sees_every_kind_of_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    place = tmp_path / "cage"
    place.mkdir()
    cage = TrialCage(place, "overlay")
    try:
        unseen: list[str] = []
        for kind, change in OUTSIDE.items():
            assert cage.story() == "", kind
            change(cage)
            unseen += [] if cage.story() else [kind]
            cage.accept()
    finally:
        cage.close()

    assert unseen == []
