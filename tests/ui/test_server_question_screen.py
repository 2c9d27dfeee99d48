"""The dialog of a tool server's question: nothing leaves it unchecked, and no page opens by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.events import Paste

from tests.support.table import table
from tests.ui.question_page import ComposerKeys, QuestionPage, shown_page
from tests.ui.stage import Clock
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.server_question import FieldChoice, FormField, ServerQuestion
from tui_agent.ui.approval.form_fields import ChoiceList
from tui_agent.ui.approval.server_question_screen import ServerQuestionScreen
from tui_agent.ui.dialogs.answer_rules import RESTING_SECONDS, SEEN_SECONDS
from tui_agent.ui.dialogs.question_screen import AnswerRow

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


class Browser:
    """Opens nothing, and remembers what it was asked to open."""

    def __init__(self, refusal: str = "") -> None:
        self.opened: list[str] = []
        self.refusal = refusal

    async def open_page(self, url: str) -> str:
        self.opened.append(url)
        return self.refusal


@asynccontextmanager
async def asked(
    question: ServerQuestion, browser: Browser, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[QuestionPage[ApprovalDecision]]:
    clock = Clock()
    screen = ServerQuestionScreen(question, open_page=browser.open_page, keys=ComposerKeys(clock))
    async with shown_page(screen, clock, size) as page:
        await page.pilot.pause()
        clock.now += SEEN_SECONDS
        yield page


async def test_a_form_sends_only_values_that_fit() -> None:
    async with asked(FORM, Browser(), (100, 30)) as page:
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


@table(
    ("keys", "decision"), [(("n",), "deny"), (("k",), "skip"), (("escape",), None), (("y", "escape", "escape"), None)]
)
async def test_a_form_can_be_declined_dismissed_or_left(keys: tuple[str, ...], decision: str | None) -> None:
    async with asked(FORM, Browser()) as page:
        await page.press(*keys)
        assert [answer and answer.decision for answer in page.answers] == [decision]


async def test_a_page_opens_only_after_a_yes() -> None:
    browser = Browser()
    async with asked(PAGE, browser) as page:
        assert PAGE.url in page.text()
        assert "pay.example.com" in page.text()
        await page.press("c")
        assert browser.opened == []
        await page.press("y")
        assert browser.opened == [PAGE.url]
        assert page.answers == [ApprovalDecision(decision="approve")]

    # Without a browser, the user opens it; the first yes shows that, the second one says so.
    async with asked(PAGE, Browser("No browser can be opened here.")) as page:
        await page.press("y")
        assert "No browser can be opened here." in page.text()
        assert page.answers == []
        await page.press("y")
        assert page.answers == [ApprovalDecision(decision="approve")]


async def test_a_sign_in_stays_open_and_takes_the_address_it_ends_at() -> None:
    browser = Browser()
    async with asked(SIGN_IN, browser) as page:
        await page.press("y")
        assert browser.opened == [SIGN_IN.url]
        assert page.answers == []
        assert "Waiting for the sign-in" in page.text()
        await page.press("p")
        page.pilot.app.screen.focused.post_message(Paste("http://127.0.0.1:1/callback?code=x"))  # pyright: ignore
        await page.press("enter")
        assert page.answers == [
            ApprovalDecision(decision="approve", input={"address": "http://127.0.0.1:1/callback?code=x"})
        ]


@table(
    ("keys", "answer"),
    [
        (("1",), "files"),
        (("enter",), "database"),
        (("up", "enter"), "files"),
        (("down", "down", "enter"), "files"),
        (("3", "a", "space", "q", "enter"), "a q"),
        (("n", "o", "n", "e", "enter"), "none"),
        (("x", "escape", "enter", "y", "enter"), "y"),
        (("x", "up", "enter"), "database"),
        (("y", "ctrl+s"), "y"),
        (("7", "1"), "files"),
        (("escape",), None),
        (("space", "escape"), None),
    ],
)
async def test_a_question_of_the_agent_takes_digits_arrows_enter_and_text(
    keys: tuple[str, ...], answer: str | None
) -> None:
    async with asked(AGENT_ASKS, Browser()) as page:
        text = page.text()
        assert "The agent asks you" in text
        assert "Which store?" in text
        await page.press(*keys)
        decision = None if answer is None else ApprovalDecision(decision="approve", input={"1": answer})
        assert page.answers == [decision]


@table(
    ("keys", "answers"),
    [
        (("1", "enter"), {"1": "files", "2": ["g"]}),
        (("enter", "1", "2", "enter"), {"1": "database", "2": ["r"]}),
        (("1", "left", "2", "up", "space", "enter"), {"1": "database", "2": ["r", "g"]}),
        (("enter", "o", "k", "enter"), {"1": "database", "2": ["g", "ok"]}),
        (("right", "2", "enter"), {"1": "database", "2": ["r"]}),
        (("ctrl+s",), {"1": "database", "2": ["g"]}),
    ],
)
async def test_several_questions_of_the_agent_come_one_after_another(
    keys: tuple[str, ...], answers: dict[str, object]
) -> None:
    async with asked(AGENT_ASKS_TWO, Browser()) as page:
        assert "The agent asks you · 1 of 2" in page.text()
        await page.press(*keys)
        if keys[0] == "right":
            # Unmarked again, so enter takes the choice at the cursor.
            answers = {**answers, "2": ["g"]}
        assert page.answers == [ApprovalDecision(decision="approve", input=answers)]


async def test_keys_from_before_the_question_was_seen_go_to_the_composer() -> None:
    clock = Clock()
    keys = ComposerKeys(clock)
    async with shown_page(ServerQuestionScreen(AGENT_ASKS, keys=keys), clock, (80, 24)) as page:
        await page.pilot.press("enter")
        assert page.answers == []
        await page.pilot.press("o", "k")
        assert (page.answers, keys.typed) == ([None], ["o"])


async def test_a_paste_is_an_answer_and_a_long_question_scrolls_to_the_cursor() -> None:
    choices = tuple(FieldChoice(value=f"choice {number}", description="because " * 40) for number in range(1, 7))
    field = FormField(name="1", kind="choice", title="why? " * 60, choices=choices, is_open=True)
    async with asked(ServerQuestion(server="", kind="form", fields=(field,)), Browser(), (60, 20)) as page:
        assert "choice 6" not in page.text()
        await page.press("up", "up")
        await page.pilot.pause()
        assert "choice 6" in page.text()
        page.screen.post_message(Paste("words of my own"))
        await page.pilot.pause()
        assert "words of my own" in page.text()
        await page.press("enter")
        assert page.answers == [ApprovalDecision(decision="approve", input={"1": "words of my own"})]


async def test_a_click_on_a_choice_moves_there_and_one_on_the_key_takes_it() -> None:
    async with asked(AGENT_ASKS, Browser()) as page:
        page.clock.now += RESTING_SECONDS
        await page.pilot.click(ChoiceList, offset=(6, 2))
        await page.pilot.pause()
        assert "› 1  files" in page.text()
        assert page.answers == []
        keys = page.screen.query_one(AnswerRow)
        keys.redraw()
        await page.pilot.pause()
        await page.pilot.click(keys, offset=(2, 0))
        await page.pilot.pause()
        assert page.answers == [ApprovalDecision(decision="approve", input={"1": "files"})]


async def test_enter_takes_only_a_choice_that_is_on_the_screen() -> None:
    label = "a choice of many words " * 5
    choices = (FieldChoice(value=f"{label}to its last word"), FieldChoice(value="no"))
    field = FormField(name="1", kind="choice", title="why? " * 300, choices=choices, is_open=True)
    async with asked(ServerQuestion(server="", kind="form", fields=(field,)), Browser(), (60, 20)) as page:
        assert "last word" not in page.text()
        await page.press("enter")
        await page.pilot.pause()
        assert page.answers == []
        assert "enter again takes it" in page.text()
        assert "to its last word" in " ".join(page.text().replace("│", " ").split())
        await page.press("enter")
        assert page.answers == [ApprovalDecision(decision="approve", input={"1": choices[0].value})]
