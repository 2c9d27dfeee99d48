"""A recorded tour gives the same screens again from the file alone."""

import asyncio
import html
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from textual.events import Paste

from tests.ui.still import FakeAgent
from tests.ui.story import Story
from tui_agent.agent import AgentLoop
from tui_agent.protocol.bus import EventBus, Subscription
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    MessageEnded,
    Noticed,
    ToolEnded,
)
from tui_agent.protocol.facts.history_tail import HistoryTail
from tui_agent.protocol.messages import ToolResultMessage, joined_text
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.providers.demo import copy_sample_project
from tui_agent.providers.recorded_streams import ReplayProvider
from tui_agent.recording import Recording, RecordingHeader, RecordingWriter, parse_recording, read_recording
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.replay.input_events import input_recorder
from tui_agent.ui.replay.recorded_exchange import RecordingExchange
from tui_agent.ui.replay.replay_stage import Stage

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
NARROW = DOCS / "recordings" / "narrow.jsonl"
ASKED = "create note.txt with hello"
STEERED = "also show prices.py"


def script(name: str) -> ModuleType:
    """One of the scripts in docs."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


recordings: Any = script("make_recordings")
screenshots: Any = script("make_screenshots")


class Taken:
    """A recorded tour: its file, and the screen text at its marks."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "tour.jsonl"
        self.place = directory / "place"
        self.seen: dict[str, str] = {}
        self.rules: Any = ()

    async def take(self, tour: Any) -> None:
        self.rules = tour.rules
        await self.say(tour, ASKED)
        await tour.question()
        await self.look(tour, "question")
        await tour.press("escape")
        await self.say(tour, STEERED)
        await tour.press("ctrl+y")
        await tour.question()
        await tour.press("y")
        await tour.until("● ready")
        await tour.press("pageup")
        await self.look(tour, "scrolled")
        await tour.press("ctrl+t", "up", "enter")
        await self.look(tour, "detail")
        await tour.press("escape", "escape", *"draft")
        await tour.pilot.resize_terminal(90, 30)
        await self.look(tour, "small")

    async def say(self, tour: Any, text: str) -> None:
        tour.app.post_message(Paste(text))
        await tour.until(text)
        await tour.press("enter")

    async def look(self, tour: Any, name: str) -> None:
        self.seen[name] = await tour.rests()
        tour.mark(name)


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    taken = Taken(tmp_path_factory.mktemp("tour"))
    taken.place.mkdir()
    asyncio.run(recordings.record(taken.file, (100, 30), taken.place, taken.take, pace=0.005, streams=True))
    return taken


async def test_a_resumed_session_looks_the_same_once_its_past_is_read(tmp_path: Path) -> None:
    """The end of the session shown while the engine loads is not recorded; the whole past follows it."""
    past = past_of_runs(8)
    bus = EventBus()
    async with RecordingWriter(tmp_path / "r.jsonl") as sink:
        sink.begin(RecordingHeader(size=(100, 30), reduced_motion=True), print)
        bridge = AgentBridge(mode=PermissionMode.PLAN, exchange=RecordingExchange(sink))
        glimpse = HistoryTail([one for one in past if one.origin.run_id == "r7"], calls_before=7)
        app = TuiAgentApp(
            bridge,
            glimpse=glimpse,
            surroundings=TerminalEnvironment(reduced_motion=True),
            note_input=input_recorder(sink),
        )
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            tour = recordings.Tour(app, pilot, sink)
            await tour.until("answer 7")
            bridge.open(FakeAgent(), bus, past)
            bus.publish(Noticed(code="x", text="it is there"))
            await tour.until("it is there")
            shown = [await tour.rests()]
            tour.mark("end")
            await tour.press("pageup", "pageup")
            shown.append(await tour.rests())
            tour.mark("earlier")

    recording = read_recording(tmp_path / "r.jsonl")
    assert [entry.kind for entry in recording.entries].count("past") == len(past)
    assert "answer 7" in shown[0]
    assert "answer 2" in shown[1]
    stage = Stage(recording)
    for at, live in zip(recording.marks.values(), shown, strict=True):
        assert stage.play_to(at)
        assert recordings.without_clocks(stage.text()) == live
    stage.close()


def past_of_runs(count: int) -> list[Envelope]:
    """Events of a resumed session: runs with a call and an answer each."""
    story = Story()
    for number in range(count):
        story.run(f"question {number}", f"r{number}").step(0)
        story.call("read", f"file {number}")
        story.answer(f"answer {number}\n\nwith two paragraphs").end_step(0).end()
    return story.envelopes


async def test_a_recorded_stream_with_the_real_tools_makes_the_same_run(taken: Taken, tmp_path: Path) -> None:
    recording = read_recording(taken.file)
    copy_sample_project(taken.place / "shop")
    (taken.place / "shop" / "note.txt").unlink()
    bus = EventBus()
    loop = recordings.agent_of(ReplayProvider(recording.data_of("stream")), bus, taken.place, taken.rules)
    with bus.subscribe(merge=False) as heard:
        async with asyncio.TaskGroup() as group:
            told = group.create_task(answering(loop, heard))
            await loop.run(ASKED)
            heard.close()

    before = [entry.value.event for entry in recording.entries if isinstance(entry.value, Envelope)]
    assert messages_of(told.result()) == messages_of(before)
    assert results_of(told.result()) == results_of(before)


async def answering(loop: AgentLoop, heard: Subscription) -> list[AgentEvent]:
    """Repeat what the user did: withdraw the first question by a message, allow the second. Return all events."""
    told: list[AgentEvent] = []
    steered = False
    async for batch in heard.batches():
        for envelope in batch:
            match envelope.event:
                case ApprovalRequested() if not steered:
                    loop.steer(STEERED)
                    steered = True
                case ApprovalRequested(request_id=request_id):
                    loop.resolve_approval(request_id, ApprovalDecision(decision="approve"))
                case _:
                    pass
            told.append(envelope.event)
    return told


def messages_of(events: Iterable[AgentEvent]) -> list[tuple[str, str]]:
    """Messages of the model and the user, in order."""
    messages = [event.message for event in events if isinstance(event, MessageEnded)]
    return [(message.role, message.text) for message in messages if not isinstance(message, ToolResultMessage)]


def results_of(events: Iterable[AgentEvent]) -> Counter[tuple[str, str, str]]:
    """Name, status and result of every call, without times."""
    ended = [event for event in events if isinstance(event, ToolEnded)]
    return Counter((event.name, event.status, re.sub(r"\d+\.\d+s", "T", joined_text(event.content))) for event in ended)


def test_the_pictures_are_what_the_recordings_show() -> None:
    names: list[str] = []
    for name, picture, text in list(screenshots.pictures()):
        committed = (DOCS / "images" / f"{name}.svg").read_text("utf-8")
        assert words_of(committed) == words_of(picture), f"{name}: python docs/make_screenshots.py takes it anew"
        assert text.split()[0] in "".join(words_of(committed))
        names.append(name)

    assert sorted(names) == sorted(path.stem for path in (DOCS / "images").glob("*.svg"))


def words_of(svg: str) -> list[str]:
    """Return the texts of a picture."""
    return [html.unescape(text).replace("\xa0", " ") for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg)]


@settings(max_examples=2)
@given(places=some.lists(some.floats(0, 1), min_size=1, max_size=200), new=some.binary(min_size=1, max_size=2))
def test_a_damaged_recording_plays_what_is_left(
    tmp_path_factory: pytest.TempPathFactory, places: list[float], new: bytes
) -> None:
    head, _, rest = NARROW.read_bytes().partition(b"\n")
    damaged = bytearray(rest)
    for place in places:
        start = int(place * len(damaged))
        damaged[start : start + len(new)] = new
    recording = parse_recording(head + b"\n" + damaged, "damaged")
    stage = Stage(recording, log_file=tmp_path_factory.getbasetemp() / "log")

    assert stage.play_to(min(recording.length, 3.0))
    assert stage.text()
    stage.close()


def text_at(recording: Recording, at: float) -> str:
    """Return the screen at a moment, reached without stops."""
    stage = Stage(recording)
    assert stage.play_to(at)
    text = stage.text()
    stage.close()
    return text
