"""Commands allowed without a question change nothing when bash really runs them.

The long run is `python -m tests.benchmarks.canaries`.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_agent.permissions import is_read_only_command

from .canary_cage import CanaryCage
from .command_grammar import any_commands


@pytest.fixture(scope="module", params=["odd names", "plain names"])
def cage(request: pytest.FixtureRequest) -> Iterator[CanaryCage]:
    # An account without privileges may not enter pytest's own directory.
    with tempfile.TemporaryDirectory() as place:
        yield CanaryCage(Path(place), has_odd_names=request.param == "odd names")


@pytest.mark.slow
def test_the_cage_detects_changes_canaries_and_the_secret(cage: CanaryCage) -> None:
    for command in ("canary", "touch new", "echo x >> a.txt", "chmod 500 b.txt", "rm -rf sub", "sed -i s/x/y/ b.txt"):
        assert cage.changed_by([command]), command
        cage.rebuild()

    assert not cage.changed_by(["cat a.txt", "ls -la", "git log -1 --format=%h", "find . -type f"])


@pytest.mark.slow
@settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(commands=st.lists(any_commands, min_size=5, max_size=20))
def test_no_allowed_command_leaves_a_trace(cage: CanaryCage, commands: list[str]) -> None:
    allowed = [command for command in commands if is_read_only_command(command, cage.work)]

    assert cage.culprits(allowed) == []
