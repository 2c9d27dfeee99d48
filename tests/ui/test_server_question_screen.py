"""The dialog of a tool server's question: nothing leaves it unchecked, and no page opens by itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from tests.ui.question_page import ComposerKeys, QuestionPage, empty_app, page_in
from tests.ui.stage import Clock
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.server_question import FieldChoice, FormField, ServerQuestion
from tui_agent.ui.approval.approval_summary import question_title
from tui_agent.ui.approval.form_fields import ChoiceList
from tui_agent.ui.approval.server_question_screen import ServerQuestionScreen
from tui_agent.ui.dialogs.answer_rules import RESTING_SECONDS, SEEN_SECONDS
from tui_agent.ui.dialogs.answer_screen import AnswerRow

pytestmark = pytest.mark.slow

COLOURS = (FieldChoice(value="r", label="red"), FieldChoice(value="g", label="green"))
FORM = ServerQuestion(
    server="shop",
    kind="form",
    message="Where should the parcel go?",
    fields=(
        FormField(name="name", title="Your name", required=True),
        FormField(name="age", kind="integer", least=18, default=20),
        FormField(name="gift", kind="flag", default=True, required=True),
        FormField(name="colour", kind="choice", choices=COLOURS),
        FormField(name="extras", kind="choices", choices=COLOURS, description="As many as you like."),
        FormField(name="password"),
    ),
)
PAGE = ServerQuestion(server="shop", kind="url", message="Pay here.", url="https://pay.example.com/order?id=7")
SIGN_IN = ServerQuestion(
    server="shop", kind="sign_in", url="https://login.example.com/a", fields=(FormField(name="address", format="uri"),)
)

STORES = (FieldChoice(value="files", description="One a day."), FieldChoice(value="database"))
STORE = FormField(name="1", kind="choice", title="Which store?", choices=STORES, default="database", is_open=True)
EXTRAS = FormField(name="2", kind="choices", title="What else?", choices=COLOURS, default=("g",), is_open=True)
AGENT_ASKS = ServerQuestion(server="", kind="form", fields=(STORE,))
AGENT_ASKS_TWO = ServerQuestion(server="", kind="form", fields=(STORE, EXTRAS))
YES = ApprovalDecision(decision="approve")


@asynccontextmanager
async def asked_in(
    pilot: Pilot[None],
    question: ServerQuestion,
    size: tuple[int, int] = (80, 24),
    *,
    open_page: Callable[[str], Awaitable[str]] | None = None,
) -> AsyncIterator[QuestionPage[ServerQuestionScreen]]:
    """Show a question in a running app; its answers count."""
    clock = Clock()
    screen = ServerQuestionScreen(
        question, open_page=open_page, keys=ComposerKeys(clock), title=question_title(question)
    )
    async with page_in(pilot, screen, clock, size) as page:
        await pilot.pause()
        clock.now += SEEN_SECONDS
        yield page


async def test_a_form_sends_only_values_that_fit_or_is_declined_dismissed_or_left() -> None:
    async with empty_app((100, 30)) as pilot:
        async with asked_in(pilot, FORM, (100, 30)) as page:
            assert "The server shop asks you" in page.text()
            await page.press("y", "enter", "ctrl+s")
            assert "Your name: a value is required" in page.text()
            await page.press("A", "d", "a", "down", "backspace", "backspace", "3", "ctrl+s")
            assert "age: at least 18" in page.text()
            await page.press("0", "down", "right", "down", "space", "down", "right", "space", "down", "x", "y")
            assert "xy" not in page.text()
            await page.press("enter")

            values = {"name": "Ada", "age": 30, "gift": False, "colour": "r", "extras": ["g"], "password": "xy"}
            assert page.answers == [ApprovalDecision(decision="approve", input=values)]

        for keys, decision in (("n", "deny"), ("k", "skip"), ("escape", None), ("y escape escape", None)):
            async with asked_in(pilot, FORM) as page:
                await page.press(*keys.split())
                assert [answer and answer.decision for answer in page.answers] == [decision], keys


async def test_a_page_opens_only_after_a_yes_and_a_sign_in_takes_the_address_it_ends_at() -> None:
    opened: list[str] = []

    async def open_page(url: str) -> str:
        opened.append(url)
        return ""

    async with empty_app() as pilot:
        async with asked_in(pilot, PAGE, open_page=open_page) as page:
            assert PAGE.url in page.text()
            assert "pay.example.com" in page.text()
            await page.press("c")
            assert opened == []
            await page.press("y")
            assert opened == [PAGE.url]
            assert page.answers == [YES]

        # Without a browser, the user opens it; the first yes shows that, the second one says so.
        async with asked_in(pilot, PAGE) as page:
            await page.press("y")
            assert "No browser can be opened here." in page.text()
            assert page.answers == []
            await page.press("y")
            assert page.answers == [YES]

        async with asked_in(pilot, SIGN_IN, open_page=open_page) as page:
            await page.press("y")
            assert opened[1:] == [SIGN_IN.url]
            assert page.answers == []
            assert "Waiting for the sign-in" in page.text()
            await page.press("p")
            address = "http://127.0.0.1:1/callback?code=x"
            page.screen.focused.post_message(Paste(address))
            await page.press("enter")
            assert page.answers == [ApprovalDecision(decision="approve", input={"address": address})]


async def test_a_question_of_the_agent_takes_digits_arrows_enter_text_and_clicks() -> None:
    async with empty_app() as pilot:
        for keys, answer in (
            ("1", "files"),
            ("enter", "database"),
            ("down down enter", "files"),
            ("3 a space q enter", "a q"),
            ("n o n e enter", "none"),
            ("x escape enter y enter", "y"),
            ("x up enter", "database"),
            ("y ctrl+s", "y"),
            ("7 1", "files"),
            ("space escape", None),
        ):
            async with asked_in(pilot, AGENT_ASKS) as page:
                assert "The agent asks you" in page.text()
                assert "Which store?" in page.text()
                await page.press(*keys.split())
                decision = None if answer is None else ApprovalDecision(decision="approve", input={"1": answer})
                assert (keys, page.answers) == (keys, [decision])

        for keys, answers in (
            ("1 enter", {"1": "files", "2": ["g"]}),
            ("enter 1 2 enter", {"1": "database", "2": ["r"]}),
            ("1 left 2 up space enter", {"1": "database", "2": ["r", "g"]}),
            ("enter o k enter", {"1": "database", "2": ["g", "ok"]}),
            # Unmarked again, so enter takes the choice at the cursor.
            ("right 2 enter", {"1": "database", "2": ["g"]}),
            ("ctrl+s", {"1": "database", "2": ["g"]}),
        ):
            async with asked_in(pilot, AGENT_ASKS_TWO) as page:
                assert "The agent asks you · 1 of 2" in page.text()
                await page.press(*keys.split())
                assert (keys, page.answers) == (keys, [ApprovalDecision(decision="approve", input=answers)])

        async with asked_in(pilot, AGENT_ASKS) as page:
            page.clock.now += RESTING_SECONDS
            await pilot.click(ChoiceList, offset=(6, 2))
            await pilot.pause()
            assert "› 1  files" in page.text()
            assert page.answers == [], "a click on a choice only moves there"
            keys = page.screen.query_one(AnswerRow)
            keys.redraw()
            await pilot.pause()
            await pilot.click(keys, offset=(2, 0))
            await pilot.pause()
            assert page.answers == [ApprovalDecision(decision="approve", input={"1": "files"})]

        clock = Clock()
        screen = ServerQuestionScreen(AGENT_ASKS, keys=ComposerKeys(clock), title="")
        async with page_in(pilot, screen, clock) as page:
            await pilot.press("enter")
            assert page.answers == [], "keys from before the question was seen go to the composer"
            await pilot.press("o", "k")
            assert (page.answers, page.typed) == ([None], ["o"])


async def test_enter_takes_only_a_choice_that_is_on_the_screen_and_a_paste_is_an_answer() -> None:
    label = "a choice of many words " * 5
    tall = (FieldChoice(value=f"{label}to its last word"), FieldChoice(value="no"))
    many = tuple(FieldChoice(value=f"choice {number}", description="because " * 40) for number in range(1, 7))

    def asks(title: str, choices: tuple[FieldChoice, ...]) -> ServerQuestion:
        field = FormField(name="1", kind="choice", title=title, choices=choices, is_open=True)
        return ServerQuestion(server="", kind="form", fields=(field,))

    async with empty_app((60, 20)) as pilot:
        async with asked_in(pilot, asks("why? " * 300, tall), (60, 20)) as page:
            assert "last word" not in page.text()
            await page.press("enter")
            await pilot.pause()
            assert page.answers == []
            assert "enter again takes it" in page.text()
            assert "to its last word" in " ".join(page.text().replace("│", " ").split())
            await page.press("enter")
            assert page.answers == [ApprovalDecision(decision="approve", input={"1": tall[0].value})]

        async with asked_in(pilot, asks("why? " * 60, many), (60, 20)) as page:
            assert "choice 6" not in page.text()
            await page.press("up", "up")
            await pilot.pause()
            assert "choice 6" in page.text(), "a long question scrolls to the cursor"
            page.screen.post_message(Paste("words of my own"))
            await pilot.pause()
            assert "words of my own" in page.text()
            await page.press("enter")
            assert page.answers == [ApprovalDecision(decision="approve", input={"1": "words of my own"})]
