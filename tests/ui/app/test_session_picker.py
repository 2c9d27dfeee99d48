"""Dialogs about sessions before the app starts."""

from textual.widgets import OptionList

from tests.support.table import table
from tui_agent.ui.app.question_app import SessionInUse


@table(("keys", "chosen"), [(("enter",), "fork"), (("down", "enter"), "look"), (("escape",), None), (("q",), None)])
async def test_a_session_that_is_open_elsewhere_can_be_copied_or_opened_without_saving(
    keys: tuple[str, ...], chosen: str | None
) -> None:
    app = SessionInUse("mine")
    async with app.run_test() as pilot:
        assert app.query_one(OptionList).option_count == 2
        await pilot.press(*keys)

    assert app.return_value == chosen
