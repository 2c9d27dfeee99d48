"""Sessions that are the same on every machine, for snapshots of the list."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.ui.app.saved_sessions import MINUTE, NOW
from tui_agent.session.store import SessionStore
from tui_agent.session.summary import ChangedFile, SessionPreview, SessionSummary
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue, SessionEntry

HOUR, DAY = 60, 24 * 60
SHOP, WEB = "/srv/shop", "/srv/web-front-end"
ROWS = (
    # title, minutes ago, folder, branch, bytes, dollars, messages, open elsewhere
    ("fix the failing price test", 5, SHOP, "main", 48_200, 0.04, 3, False),
    ("write the docs of the cart, with an example for each kind of discount", 40, SHOP, "docs", 812_000, 1.2, 14, True),
    ("explain this project", 3 * HOUR, SHOP, "main", 9_100, 0.01, 1, False),
    ("add a currency to every price", 26 * HOUR, SHOP, "feature/currency-of-prices", 4_300_000, 12.4, 88, False),
    ("review my uncommitted changes", 3 * DAY, SHOP, "main", 120_400, 0.31, 6, False),
    ("speed up the start", 9 * DAY, SHOP, "", 640, None, 2, False),
    ("把价格四舍五入一次", 60 * DAY, SHOP, "main", 22_000, 0.02, 4, False),
    ("move the menu to the left", 70, WEB, "menu", 66_000, 0.08, 5, False),
)
PREVIEW = SessionPreview(
    prompt="fix the failing price test\n\nIt fails since the last release; see the log of the nightly run.",
    answer="All 12 tests pass. `total()` no longer rounds each item, only the sum.",
    files={
        "src/price.py": ChangedFile("src/price.py", 4, 6),
        "tests/test_price.py": ChangedFile("tests/test_price.py", 12, 0),
    },
)


class StillShelf(SessionCatalogue):
    """A shelf of fixed sessions, seen from the folder of the shop."""

    def __init__(self, rows: Sequence[tuple[str, int, str, str, int, float | None, int, bool]] = ROWS) -> None:
        super().__init__(SessionStore(Path("/nowhere")), Path(SHOP))
        self.fixed = [
            SessionEntry(
                SessionSummary(
                    id=f"{number:02}f3a9c1e7b2",
                    path=Path(f"/nowhere/{number}.jsonl"),
                    title=title,
                    cwd=folder,
                    started=NOW - minutes * MINUTE,
                    last_message=NOW - minutes * MINUTE,
                    updated=NOW - minutes * MINUTE,
                    size=size,
                    said=True,
                    branch=branch,
                    cost=cost,
                    messages=messages,
                ),
                is_here=folder == SHOP,
                is_open=is_open,
            )
            for number, (title, minutes, folder, branch, size, cost, messages, is_open) in enumerate(rows)
        ]

    async def read(self) -> AsyncIterator[Sequence[SessionEntry | None]]:
        yield self.fixed

    async def preview(self, entry: SessionEntry) -> SessionPreview | None:
        return PREVIEW if entry == self.fixed[0] else replace(PREVIEW, prompt=entry.summary.title, files={})
