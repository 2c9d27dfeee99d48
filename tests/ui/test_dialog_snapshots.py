"""Snapshots of questions, of pages of text and of menus that need more than a story."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from rich.console import RenderableType
from textual.pilot import Pilot
from textual.screen import Screen

from tests.support.table import table
from tests.ui.dialogs.test_info_pages import FULL
from tests.ui.still import FakeAgent, bridge_to, drawn, pressing, shown, still_app
from tests.ui.story import Story, working
from tests.ui.test_chat_flows import FakeFiles
from tests.ui.test_mention_flows import Heads
from tests.ui.test_server_question_screen import FORM, PAGE, SIGN_IN
from tests.ui.test_snapshots import needs_you
from tui_agent.protocol.events import ApprovalRequested
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import DecisionPart, PermissionMode
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.tool import Preview
from tui_agent.tools import AskUserTool, PresentPlanTool
from tui_agent.ui.app.question_app import TrustQuestion
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.dialogs.info_pages import context_text
from tui_agent.ui.dialogs.text_page import TextPage

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]
Before = Callable[[Pilot[None]], Awaitable[None]]

SIZES = [(80, 24), (120, 40)]
SCRIPT = "set -e\ncd src\nmake clean\nrm -rf ../build   # old\n"


def still_clock() -> float:
    """Return a time that does not pass, so that answers stay dim."""
    return 100.0


def part(text: str, operator: str, reason: str = "", *dangers: str) -> DecisionPart:
    asks = f"{reason}; no rule allows `{text}`"
    if not reason:
        return DecisionPart(text=text, decision="allow", operator=operator, reason="it only reads")
    return DecisionPart(text=text, decision="ask", operator=operator, reason=asks, dangers=dangers)


PIPE = (
    part("git add -A", "", "changes the repository"),
    part("git push --force origin main 2>&1", "&&", "force-pushes", "force-pushes"),
    part("tail -3", "|"),
)
LINES = (
    part("set -e", ""),
    part("cd src", ";"),
    part("make clean", ";", "runs code of the project"),
    part("rm -rf ../build", ";", "deletes files", "deletes files", "outside the workspace"),
)
COMMANDS: dict[str, tuple[str, tuple[DecisionPart, ...], int]] = {
    "pipe": ("git add -A && git push --force origin main 2>&1 | tail -3", PIPE, 1),
    "script": (SCRIPT, LINES, 3),
}


def asking(command: str, parts: tuple[DecisionPart, ...], worst: int) -> Story:
    """Return a session in which the model wants to run a command."""
    story = working()
    call = story.queued("bash", command)
    rule = "bash(git push:*)"
    story.asks(call, "bash", command, parts[worst].reason, parts=parts, session_rule=rule, rules=(rule,))
    return story.wait(4)


SHOWN = [("script", (60, 20)), ("script", (40, 12))]
"""Commands with the sizes of their windows."""


@pytest.mark.parametrize(("command", "size"), SHOWN, ids=[f"{name}-{size[0]}x{size[1]}" for name, size in SHOWN])
def test_a_question_about_a_command_of_several_parts(
    snap_compare: Compare, command: str, size: tuple[int, int]
) -> None:
    app = still_app(asking(*COMMANDS[command]), running=True)

    assert snap_compare(app, terminal_size=size, run_before=pressing())


def test_all_waiting_questions(snap_compare: Compare) -> None:
    story = asking(*COMMANDS["pipe"])
    for command in ("make test", "make lint"):
        made = (part(command, "", "runs code of the project"),)
        call = story.queued("bash", command)
        rule = "bash(make:*)"
        story.asks(call, "bash", command, made[0].reason, parts=made, session_rule=rule, rules=(rule,))
    wants_to_edit(story, "changes src/price.py; no rule allows it")
    app = still_app(story.wait(4), running=True)

    assert snap_compare(app, terminal_size=(80, 24), run_before=listing)


def wants_to_edit(story: Story, reason: str = "") -> Story:
    """Let the model ask to edit a file."""
    diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -1,2 +1,2 @@\n def price(net):\n-    return 1\n+    return 2\n"
    preview, args = Preview(kind="diff", text=diff, path="/w/src/price.py"), {"path": "src/price.py"}
    story.asks(story.queued("edit", "src/price.py"), "edit", "src/price.py", reason, preview=preview, args=args)
    return story.wait(4)


async def listing(pilot: Pilot[None]) -> None:
    """Open the page with all questions once answers count."""
    await shown(pilot)
    dialog = pilot.app.screen
    dialog.action_list_all() if dialog.guard.armed else dialog.dismiss("list")  # type: ignore[attr-defined]
    await drawn(pilot)


def test_the_question_about_a_folder(snap_compare: Compare) -> None:
    sections = (
        ("Settings of .tui-agent/config.toml", ('permissions.allow = ["bash(make:*)"]', 'model = "small"')),
        ("Instructions of AGENTS.md", ("Use pytest.", "Never push.")),
    )
    app = TrustQuestion("/home/a/shop", sections, "allow rules", clock=still_clock)

    assert snap_compare(app, terminal_size=(80, 24))


def over_chat(screen: Callable[[], Screen[object]]) -> Before:
    """Show a screen over the chat."""

    async def before(pilot: Pilot[None]) -> None:
        await shown(pilot)
        await pilot.app.push_screen(screen())
        await drawn(pilot)

    return before


def confirm() -> ConfirmScreen:
    text = "The run is cancelled. 2 queued messages are not sent; they stay in the session."
    return ConfirmScreen("Leave this session?", text, "leave it", clock=still_clock, no="stay")


SCREENS: dict[str, Callable[[], Screen[object]]] = {
    "confirm": confirm,  # type: ignore[dict-item]
    "context": lambda: TextPage("Context", lambda width: context_text(FULL, 200_000, {"c1": 7}.get, width)),  # type: ignore[dict-item,return-value]
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_page_over_the_chat(snap_compare: Compare, name: str) -> None:
    app = still_app(working(), running=True)

    assert snap_compare(app, terminal_size=(80, 24), run_before=over_chat(SCREENS[name]))


def test_a_waiting_message_is_edited(snap_compare: Compare) -> None:
    app = still_app(needs_you(), running=True)

    assert snap_compare(app, terminal_size=(80, 24), run_before=pressing("escape", "up"))


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
def test_files_are_offered_with_a_preview(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await drawn(pilot)
        await pilot.press("at", *"price")
        assert isinstance(pilot.app, TuiAgentApp)
        while not pilot.app.chat.entry.preview.display:
            await pilot.pause()
        await drawn(pilot)

    app = TuiAgentApp(
        bridge_to(FakeAgent(), files=FakeFiles(), attachments=Heads()),
        ChatOptions(
            WorkingDirectory("~/shop", "main"), surroundings=TerminalEnvironment(reduced_motion=True, clock=still_clock)
        ),
    )
    assert snap_compare(app, terminal_size=size, run_before=before)


def asked_in(story: Story, tool: str, args: JsonObject, question: ServerQuestion, **fields: Any) -> Story:
    """Let a tool server or the agent ask a question."""
    values = {"call_id": "", "digest": "", "tool": tool, "args": args, "question": question, **fields}
    story.tell(ApprovalRequested.model_validate({"request_id": "q", **values}))
    story.status("waiting_approval")
    return story.wait(4)


def server_asks(question: ServerQuestion) -> Story:
    """Return a session in which a tool server asks a question during a call."""
    story = working()
    story.started(story.queued("mcp__shop__order", "2 chairs"), "mcp__shop__order", "2 chairs")
    args = SAMPLING_ARGS if question.kind == "sampling" else {}
    options = ("approve", "deny") if args else ("approve", "deny", "skip")
    words = {"summary": question.message, "reason": "the MCP server shop asks", "options": options}
    return asked_in(story, "mcp__shop", args, question, **words)


SAMPLING_ARGS: JsonObject = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 200,
    "system": "You write short descriptions.",
    "1. user": "Describe a chair of oak in two sentences.",
}
SERVER_QUESTIONS = {
    "form": FORM,
    "page": PAGE,
    "sign_in": SIGN_IN,
    "sampling": ServerQuestion(server="shop", kind="sampling", message="to claude-sonnet-4-5"),
}


async def filling(pilot: Pilot[None]) -> None:
    """Show the fields of a form, and what is wrong with the first one."""
    await shown(pilot)
    screen = pilot.app.screen
    screen._fill_in()  # type: ignore[attr-defined]
    await drawn(pilot)
    await pilot.press("ctrl+s")
    await drawn(pilot)


SERVER_SIZES = {"form": (80, 24), "page": (120, 40), "sign_in": (80, 24), "sampling": (120, 40)}


@pytest.mark.parametrize("kind", SERVER_QUESTIONS)
def test_a_question_of_a_tool_server(snap_compare: Compare, kind: str) -> None:
    size = SERVER_SIZES[kind]
    theme = "dark" if size[0] == 80 else "light"
    app = still_app(server_asks(SERVER_QUESTIONS[kind]), running=True, theme=theme)

    assert snap_compare(app, terminal_size=size, run_before=pressing())


def test_a_form_of_a_tool_server(snap_compare: Compare) -> None:
    app = still_app(server_asks(FORM), running=True)

    assert snap_compare(app, terminal_size=(80, 24), run_before=filling)


ASKED: JsonObject = {
    "questions": [
        {
            "question": "Where shall the service keep its orders? The tests pass with both.",
            "choices": [
                {"label": "PostgreSQL", "description": "Production has one already; the tests need a running server."},
                {"label": "SQLite", "description": "No server, but only one writer at a time."},
                {"label": "Keep both, behind an interface"},
            ],
            "default": ["PostgreSQL"],
        },
        {
            "question": "Which of these belong to it?",
            "choices": [{"label": "A migration"}, {"label": "Tests", "description": "One for every query."}],
            "several": True,
            "default": ["Tests"],
        },
    ]
}


async def answering_in_words(pilot: Pilot[None]) -> None:
    """Show the last question of the agent, and the field for an answer in other words."""
    await shown(pilot)
    screen = pilot.app.screen
    screen._show_question(1)  # type: ignore[attr-defined]
    screen._open_own()  # type: ignore[attr-defined]
    await drawn(pilot)
    await pilot.press(*"a changelog")
    await drawn(pilot)


@pytest.mark.parametrize("before", [pressing(), answering_in_words], ids=["choices", "words"])
def test_a_question_of_the_agent(snap_compare: Compare, before: Callable[[Pilot[None]], Awaitable[None]]) -> None:
    story, tool = working(), AskUserTool()
    call_id, summary = story.queued("ask_user", tool.summarise(ASKED)), tool.summarise(ASKED)
    asked_in(story, "ask_user", ASKED, tool.question(ASKED), call_id=call_id, summary=summary)

    assert snap_compare(still_app(story, running=True), terminal_size=(80, 24), run_before=before)


PLAN: JsonObject = {
    "plan": "# Round prices once\n\nPrices are rounded in `price()` **and** again in `total()`, so sums differ by a "
    "cent. Only `total()` shall round.\n\n## Steps\n\n1. Remove `round()` from `price()` in `src/price.py`\n"
    "2. Round in `total()` with `Decimal.quantize`\n3. Adapt the two callers in `cart.py`\n4. Run the tests\n"
}


def test_a_plan_to_accept(snap_compare: Compare) -> None:
    story, tool = working(), PresentPlanTool(lambda: PermissionMode.PLAN, lambda _: None)
    call_id, summary = story.queued("present_plan", tool.summarise(PLAN)), tool.summarise(PLAN)
    asked_in(story, "present_plan", PLAN, tool.question(PLAN), call_id=call_id, summary=summary)

    assert snap_compare(still_app(story, running=True), terminal_size=(80, 24), run_before=pressing())


@table("story", [wants_to_edit(working()), asking(*COMMANDS["script"]), server_asks(FORM), server_asks(PAGE)])
async def test_the_first_frame_of_a_question_has_all_of_it(story: Story) -> None:
    for size in SIZES:
        app = still_app(story, running=True)
        async with app.run_test(size=size) as pilot:
            frames = frames_of_dialogs(app)
            await shown(pilot)
        # The conversation behind the dialog may still settle.
        dialogs = [frame[frame.index("╭") :] for frame in frames]
        assert set(dialogs) == {dialogs[-1]}, frames[0]


def frames_of_dialogs(app: TuiAgentApp) -> list[str]:
    """Return the list to which each frame is added that is drawn from now on with a dialog over the chat."""
    frames: list[str] = []
    display = app._display

    def note_frame(screen: Screen[object], renderable: RenderableType | None) -> None:
        if app.screen is not app.chat and app.screen._compositor.widgets:
            strips = app.screen._compositor.render_strips(app.size)
            text = "\n".join("".join(segment.text for segment in strip) for strip in strips)
            # The scrollbar behind the dialog shows how much of the conversation was laid out.
            frames.append(re.sub("[▁▂▃▄▅▆▇█]", " ", text))
        display(screen, renderable)

    app._display = note_frame
    return frames
