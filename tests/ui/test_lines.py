"""One-line widgets at every width: the most important part is shown, nothing overflows, no outside text acts."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widget import Widget

from tests.support.table import table
from tests.ui.story import Story, working
from tui_agent.protocol.events import (
    BackgroundStarted,
    ContextUsage,
    Noticed,
    PermissionModeChanged,
)
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.attention_line import AttentionLine
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.chat import status_bars
from tui_agent.ui.chat.status_bars import FrameLine, StatusLine
from tui_agent.ui.composer.prompt_area import InterruptMenu
from tui_agent.ui.composer.queue_strip import QueueStrip
from tui_agent.ui.state.queued_messages import WaitingMessages
from tui_agent.ui.state.session_status import SessionStatus


class OneWidget(App[None]):
    """An app with one widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


async def drawn(widget: Widget, width: int, tell: Callable[[], object] = lambda: None, height: int = 12) -> list[str]:
    """Return the rows of a widget at a width."""
    async with OneWidget(widget).run_test(size=(width, height)) as pilot:
        tell()
        await pilot.pause()
        shown = widget.render()
        assert isinstance(shown, Content)
        return shown.plain.split("\n")


def telling(widget: StatusLine | FrameLine | QueueStrip, story: Story) -> Callable[[], None]:
    def tell() -> None:
        for envelope in story.envelopes:
            widget._status.apply(envelope)
            if isinstance(widget, QueueStrip):
                widget._queue.apply(envelope)
        widget.changed()

    return tell


def status_line(story: Story) -> StatusLine:
    return StatusLine(TerminalEnvironment(clock=lambda: story.now), SessionStatus())


# --- status line ------------------------------------------------------------------------------------------------------


async def status_of(story: Story, width: int = 120) -> str:
    widget = status_line(story)
    (line,) = await drawn(widget, width, telling(widget, story))
    return line


async def test_a_silent_model_is_shown_once_its_silence_is_long() -> None:
    story = Story().run("x").step(0).status("streaming").wait(19)
    assert "nothing" not in await status_of(story)

    assert (await status_of(story.wait(1))).startswith(" ◐ streaming 20 s · nothing for 20 s")
    assert "nothing" not in await status_of(story.status("running_tools"))


@table("width", [20, 40, 80, 120])
async def test_a_notice_never_hides_the_status(width: int) -> None:
    story = working()
    story.tell(Noticed(code="settings_read", text="The settings were reloaded: 12 permission rules are in force."))
    line = await status_of(story, width)

    assert line.startswith(" ◐ bash 12 s")
    assert "The s" in line or width == 20
    assert len(line) <= width


async def test_the_status_line_shows_the_facts_that_the_user_chose_in_their_order() -> None:
    story = working()
    story.tell(ContextUsage(tokens=4_000, window=200_000, source="actual"))
    widget = status_line(story)
    widget.items = ("branch", "mode", "context")
    widget.place = lambda: WorkingDirectory("~/shop", "main")
    (line,) = await drawn(widget, 120, telling(widget, story))

    assert line.startswith(" ◐ bash 12 s · main · ask · 4k/200k tok ")


async def test_the_status_line_shows_what_the_users_command_prints_about_the_present_facts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_bars, "OUTPUT_SECONDS", 0.0)
    story, given = working(), list[JsonObject]()
    widget = status_line(story)
    widget.items = ("command",)

    async def read(facts: JsonObject) -> str:
        given.append(facts)
        return f"step {facts['step']}\x1b]0;x\x07"

    widget.read_output = read
    async with OneWidget(widget).run_test(size=(120, 12)) as pilot:
        telling(widget, story)()
        while "step 2" not in str(widget.render()):
            await pilot.pause(0.01)
        line = str(widget.render())

    assert "\x1b" not in line
    assert given[-1]["state"] == "running_tools"


@table(("width", "mark"), [(120, "2 in background"), (80, "2 in background"), (60, "2 bg"), (40, "2 bg")])
async def test_the_mark_for_background_commands_opens_their_page(width: int, mark: str) -> None:
    story = working()
    for name in ("bash_1", "bash_2"):
        story.tell(BackgroundStarted(task_id=name, kind="shell", command="npm run dev"))
    widget, opened = status_line(story), []

    async def note(action: str, *_: object) -> None:
        opened.append(action)

    widget.run_action = note  # type: ignore[method-assign]
    async with OneWidget(widget).run_test(size=(width, 12)) as pilot:
        telling(widget, story)()
        await pilot.pause()
        (line,) = str(widget.render()).split("\n")
        begin = line.index(mark)
        for x in (begin - 1, begin, begin + len(mark) - 1, begin + len(mark)):
            await pilot.click(widget, offset=(x, 0))

    assert line.startswith(f" ◐ bash 12 s · {mark}")
    assert opened == ["screen.perform('chat.jobs')"] * 2


@table(
    ("tell", "words"),
    [
        (lambda story: story.status("streaming"), "◐ streaming 3 s"),
        (lambda story: story.status("compacting"), "◐ compacting 3 s"),
        (lambda story: story.status("stopping"), "■ stopping 3 s"),
        (lambda story: story.status("stopping", "after this step"), "■ stopping after this step"),
        (lambda story: story.status("waiting_user"), "▲ waiting for you 3 s"),
        (lambda story: story.status("running_tools"), "◐ tools 3 s"),
        (lambda story: story.end(reason="aborted"), "● ready"),
        (lambda story: story.end(reason="max_steps"), "● ready"),
        (lambda story: story.end(), "● ready"),
    ],
)
async def test_every_status_has_its_words(tell: Callable[[Story], Story], words: str) -> None:
    story = Story().run("x").step(0)
    tell(story).wait(3)

    assert (await status_of(story)).strip().startswith(words)


# --- frame of the composer --------------------------------------------------------------------------------------------


async def no_tree() -> None:
    """Know nothing about the work tree."""


async def title_of(width: int, mode: PermissionMode = PermissionMode.ASK, label: str = "", branch: str = "main") -> str:
    story = Story()
    story.tell(PermissionModeChanged(old=PermissionMode.ASK, new=mode, by="user"))
    widget = FrameLine(WorkingDirectory("~/shop", branch), label, SessionStatus(), no_tree)
    (line,) = await drawn(widget, width, telling(widget, story))
    return line


async def test_the_title_marks_uncommitted_changes_once_a_call_has_written() -> None:
    trees = [("main", False), ("fix", True)]

    async def tree() -> tuple[str, bool]:
        return trees[min(status.progress.writes, 1)]

    status = SessionStatus()
    bar = FrameLine(WorkingDirectory("~/shop", "main"), "", status, tree)
    app = OneWidget(bar)
    async with app.run_test(size=(60, 4)) as pilot:
        bar.settle()
        await pilot.pause(0.1)
        assert bar.render().plain.startswith(" ~/shop · main ──")

        status.progress.writes += 1
        bar.settle()
        while " ~/shop · fix ✱ ──" not in bar.render().plain:
            await pilot.pause(0.1)


@table("width", [12, 20, 30, 45])
async def test_the_mode_is_the_last_to_go(width: int) -> None:
    line = await title_of(width, PermissionMode.ALLOW, "scripted demo, not a language model")

    assert "ALLOW ALL" in line or width < 14
    assert len(line) <= max(width, 14)


# --- queue strip ------------------------------------------------------------------------------------------------------


async def queue_of(story: Story, width: int = 120) -> list[str]:
    widget = QueueStrip(WaitingMessages(), SessionStatus())
    return await drawn(widget, width, telling(widget, story))


@table(
    ("tell", "words"),
    [
        (Story, "waits for you to send it"),
        (lambda: working().status("waiting_approval"), "waits for your answer"),
        (lambda: Story().run("x").step(0), "lands after this step"),
        (lambda: Story().run("x").step(0).status("stopping"), "kept; the run ends now"),
    ],
)
async def test_a_message_says_what_it_waits_for(tell: Callable[[], Story], words: str) -> None:
    story = tell()
    story.sends("one")

    assert words in (await queue_of(story))[1]


async def test_too_many_messages_are_counted() -> None:
    story = working()
    for number in range(7):
        story.sends(f"message {number}", position=number)
    rows = await queue_of(story)

    assert len(rows) == 6
    assert rows[-1].strip() == "↓ 3 more"


# --- the lines above the composer -------------------------------------------------------------------------------------


def request(summary: str = "git push", reason: str = "no rule") -> ApprovalRequest:
    preview = Preview(kind="command", text=summary)
    return ApprovalRequest(
        call_id="c1", digest="d", tool="bash", args={}, summary=summary, reason=reason, preview=preview
    )


async def test_the_menu_closes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.ui.composer.prompt_area.OPEN_SECONDS", 0.01)
    menu = InterruptMenu()

    async with OneWidget(menu).run_test(size=(80, 5)) as pilot:
        menu.open(1, 0)
        async with asyncio.timeout(60):
            while menu.is_open:
                await pilot.pause(0.01)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.text(max_size=80))
async def test_no_text_from_outside_acts_in_any_line(text: str) -> None:
    story = Story(model=text).run("x")
    story.sends(text)
    story.status("running_tools").started(story.queued(text, text), text, text)
    title, status, queue, line = (
        FrameLine(WorkingDirectory(text, text), text, SessionStatus(), no_tree),
        status_line(story),
        QueueStrip(WaitingMessages(), SessionStatus()),
        AttentionLine(),
    )
    shown = [
        *await drawn(title, 80, telling(title, story)),
        *await drawn(status, 80, telling(status, story)),
        *await drawn(queue, 80, telling(queue, story)),
        *await drawn(line, 80, lambda: line.announce(request(summary=text, reason=text), 1)),
    ]

    assert all(row.isprintable() for row in shown)
