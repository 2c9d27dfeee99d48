"""A session in a repository with two files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.rewind.sessions import Kept, git_work_tree, kept_session


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Kept]:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, price_py="one\n", cart_py="two\n")
    async with kept_session(root, tmp_path / "sessions") as kept:
        yield kept
