"""The question about a folder's settings: no, unless the user has read all of it and says yes."""

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from tests.support.table import table
from tests.ui.stage import Clock
from tui_agent.ui.app.question_app import SessionInUse, TrustChoice, TrustQuestion
from tui_agent.ui.dialogs.answer_screen import AnswerRow
from tui_agent.ui.text.rows_view import RowsView

RULES = ("allow bash(curl:*)", "allow read(\u202e/x)")


def question(clock: Clock, *, allows: tuple[str, ...] = RULES, lines: int = 0) -> TrustQuestion:
    more = tuple(f"deny bash(x{number})" for number in range(lines))
    sections = (("rules that deny or ask", more or ("deny bash(rm:*)",)), ("rules that allow", allows))
    return TrustQuestion("/w/project", sections, "allow rules" if allows else "", clock=clock)


def screen_text(app: TrustQuestion) -> str:
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


async def quiet(pilot: Pilot[TrustChoice | None], clock: Clock) -> None:
    await pilot.pause()
    clock.now += 1
    await pilot.pause()


@table(
    ("key", "answer"),
    [("n", "no"), ("escape", "no"), ("enter", "no"), ("t", "tightening"), ("a", "all"), ("ctrl+c", None)],
)
async def test_each_answer_has_its_key_and_enter_means_no(key: str, answer: TrustChoice | None) -> None:
    clock = Clock()
    app = question(clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await quiet(pilot, clock)
        text = screen_text(app)
        shown = ("/w/project", "allow bash(curl:*)", r"allow read(\u202e/x)", "deny bash(rm:*)")
        assert [words for words in shown if words not in text] == []
        await pilot.press(key, *(["pagedown"] if len(key) == 1 else []))

    assert app.return_value == answer


@pytest.mark.slow
@table("key", ["t", "a", "n"])
async def test_a_key_pressed_too_early_is_not_an_answer(key: str) -> None:
    clock = Clock()
    app = question(clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(key)
        assert app.is_running
        clock.now += 1
        await pilot.press("x", key)
        assert app.is_running
        await pilot.press("ctrl+c")

    assert app.return_value is None


@pytest.mark.slow
async def test_a_yes_counts_only_once_everything_was_read() -> None:
    clock = Clock()
    app = question(clock, lines=60)
    async with app.run_test(size=(80, 24)) as pilot:
        await quiet(pilot, clock)
        await pilot.press("t", "pagedown", "a", "pagedown")
        assert app.is_running
        assert "a yes counts once you saw the end" in screen_text(app) or "lines more" in screen_text(app)
        assert "lines more" in screen_text(app)
        # Drawing by the app itself counts, so nothing here may draw before everything was read.
        while not app.screen.query_one("#trust-body", RowsView).read_to_end:
            await pilot.press("space")
            await pilot.pause(0.02)
        await pilot.pause()
        assert "lines more" not in screen_text(app)
        await pilot.press("up", "pageup", "down", "t", "pagedown")

    assert app.return_value == "tightening"


async def test_allow_rules_are_not_offered_where_there_are_none() -> None:
    clock = Clock()
    app = question(clock, allows=())
    async with app.run_test(size=(80, 24)) as pilot:
        await quiet(pilot, clock)
        assert "allow rules too" not in screen_text(app)
        await pilot.press("a", "pagedown")
        assert app.is_running
        await pilot.press("n", "pagedown")

    assert app.return_value == "no"


def place_of(app: TrustQuestion, label: str) -> tuple[int, int]:
    """Return column and row of a label's first letter."""
    rows = screen_text(app).split("\n")
    row = next(number for number, text in enumerate(rows) if label in text)
    return rows[row].index(label), row


async def test_a_click_gives_no_yes_before_everything_was_read() -> None:
    clock = Clock()
    app = question(clock, lines=100)
    async with app.run_test(size=(80, 24)) as pilot:
        await quiet(pilot, clock)
        app.screen.query_one(AnswerRow).redraw()
        await pilot.pause()
        for label in ("a yes, with", "t yes, without"):
            await pilot.click(offset=place_of(app, label))
            assert app.is_running
        await pilot.click(offset=place_of(app, "n no"))

    assert app.return_value == "no"


@table(("keys", "chosen"), [(("enter",), "fork"), (("down", "enter"), "look"), (("escape",), None), (("q",), None)])
async def test_a_session_that_is_open_elsewhere_can_be_copied_or_opened_without_saving(
    keys: tuple[str, ...], chosen: str | None
) -> None:
    app = SessionInUse("mine")
    async with app.run_test() as pilot:
        assert app.query_one(OptionList).option_count == 2
        await pilot.press(*keys)

    assert app.return_value == chosen
