"""Files outside the workspace and protected files stay untouched and unseen, however the workspace changes."""

from pathlib import Path

import pytest

from tests.support.examples import sample
from tui_agent.tools.search.search_engine import Ripgrep

from .file_races import RaceGround


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample(range(4), 3))
async def test_files_outside_or_protected_stay_untouched_and_unseen(
    tmp_path: Path, engine: Ripgrep | None, seed: int
) -> None:
    ground = RaceGround(tmp_path, seed)

    assert await ground.play(messages=6) == []
