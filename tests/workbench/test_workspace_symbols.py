"""Completion of functions and classes: the index follows the files, and no query holds up the loop."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.workbench import workspace_completion
from tui_agent.workbench.workspace_completion import SourceSymbol, WorkspaceSymbols, best_symbols


@asynccontextmanager
async def symbols_of(root: Path) -> AsyncIterator[WorkspaceSymbols]:
    """Keep an index while the block runs."""
    index = WorkspaceSymbols(root, is_trusted=True)
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(index.keep())
        yield index
        keeping.cancel()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("out/\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "built.py").write_text("def price_built(): ...\n")
    (tmp_path / "shop.py").write_text("class Price:\n    x = 1\n\n\ndef list_prices():\n    return 1\n")
    (tmp_path / "notes.md").write_text("def price_notes(): ...\n")
    return tmp_path


@pytest.mark.slow
async def test_the_index_follows_the_files(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_completion, "INDEX_AGE", 0)
    async with symbols_of(shop) as index:
        found = await index.find("price")
        assert found == (
            SourceSymbol("Price", "class", "shop.py", 1, 2),
            SourceSymbol("list_prices", "def", "shop.py", 5, 6),
        )
        assert await index.find("p") == await index.find("a/price") == ()

        (shop / "tax.go").write_text("func priceOf() {\n}\n")
        (shop / "shop.py").unlink()
        async with asyncio.timeout(60):
            while [one.name for one in await index.find("price")] != ["priceOf"]:
                await asyncio.sleep(0.01)


async def test_a_directory_without_git_has_no_symbols(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def price(): ...\n")
    async with symbols_of(tmp_path) as index:
        assert await index.find("price") == ()


def test_whole_names_and_beginnings_come_first() -> None:
    names = ["reprice", "xpxrxixcxe", "prices", "Price", "price"]
    symbols = [SourceSymbol(name, "def", "a.py", 1, 1) for name in names]

    found = [one.name for one in best_symbols(symbols, "price", CancellationToken())]

    assert found == [*reversed(names[2:]), *names[:2]]
