"""`/mcp` without servers: the reason differs in the demo, which starts none."""

import pytest

from tests.ui.still import notes, pressing, still_app
from tests.ui.story import Story


@pytest.mark.slow
@pytest.mark.parametrize(("label", "words"), [("demo", "The demo starts no tool servers."), ("", "mcp add NAME")])
async def test_the_command_says_why_there_are_no_servers(label: str, words: str) -> None:
    app = still_app(Story(), label=label)
    async with app.run_test() as pilot:
        await pressing(*"/mcp", "enter")(pilot)

        assert words in notes(app)[-1]
