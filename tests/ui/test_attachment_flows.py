"""Attached files: a label or a mention in the composer, a block in the message, and one line in the conversation."""

import asyncio
from pathlib import Path

import pytest

from tests.ui.open_bench import bench_of
from tests.ui.stage import Stage, stage
from tests.ui.test_queue_flows import queueing, texts
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.facts.screen_facts import PromptAttachment
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, UserMessage

pytestmark = pytest.mark.slow

LABEL = "[image shop.png 640×480]"


class Images:
    """Images of a folder that takes its time."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        picture = ImageBlock(media_type="image/png", data="AAAA", name="clipboard")
        self.clipboard: PromptAttachment | None = PromptAttachment(picture, "clipboard", "640×480")

    async def attachment(self, path: str, /, *, typed: bool) -> PromptAttachment | None:
        self.asked.append((path, typed))
        await self.gate.wait()
        if "large" in path:
            raise ToolError("large.png has 9,000,000 bytes; an image can have 3,750,000. Resize it first.")
        if "missing" in path:
            return None
        if "gone" in path:
            raise ToolError("price.py has only 3 lines; there is no line 9.")
        if ":" in path:
            return PromptAttachment(DocumentBlock(media_type="text/plain", data="     2\tx = 1", name=path), path)
        if path.endswith(".pdf"):
            pdf = DocumentBlock(media_type="application/pdf", data="JVBERg==", name=path, pages=3)
            return PromptAttachment(pdf, path, "3 pages")
        picture = ImageBlock(media_type="image/png", data="AAAA", name=Path(path).name)
        return PromptAttachment(picture, Path(path).name, "640×480")

    async def pasted(self) -> PromptAttachment | None:
        return self.clipboard

    async def head(self, path: str, line: int = 1, /) -> str:
        return ""


def give_images(on: Stage) -> Images:
    """Open the bridge to a folder with images."""
    images = Images()
    on.chat.bridge.open(bench_of(on.loop, on.bus, attachments=images))
    return images


def sent(on: Stage) -> UserMessage:
    """Return the last message of the user in the agent's history."""
    return next(message for message in reversed(on.loop.history.messages()) if isinstance(message, UserMessage))


async def test_a_typed_image_becomes_a_label_and_is_sent_with_the_message() -> None:
    async with stage(["A shop."]) as on:
        give_images(on)
        await on.type("look at ")
        await on.pilot.press("at", *"img/shop.png", "space")
        await on.until(lambda: LABEL in on.draft)
        await on.type("please")
        assert on.draft == f"look at {LABEL} please"
        await on.pilot.press("enter")
        await on.settled()

        assert sent(on).text == f"look at {LABEL} please"
        assert [block.type for block in sent(on).content] == ["text", "image"]
        assert any("[image shop.png, " in part.text for part in on.chat.body.conversation.transcript.parts)


async def test_lines_stay_a_mention_and_a_pdf_becomes_a_label() -> None:
    async with stage(["Fine."]) as on:
        give_images(on)
        await on.type("see ")
        await on.pilot.press("at", *"a.pdf", "space")
        await on.until(lambda: on.draft == "see [PDF a.pdf 3 pages] ")
        await on.type("and @price.py:2")
        await on.pilot.press("enter")
        await on.settled()

        assert sent(on).text == "see [PDF a.pdf 3 pages] and @price.py:2"
        assert [block.type for block in sent(on).content] == ["text", "document", "document"]
        shown = [part.text for part in on.chat.body.conversation.transcript.parts]
        assert "[PDF a.pdf, 3 pages]" in shown
        assert "[price.py:2, 1 line]" in shown


async def test_an_image_named_right_before_enter_is_attached_and_keeps_the_order() -> None:
    async with stage(["A shop.", "Fine."]) as on:
        images = give_images(on)
        images.gate.clear()
        await on.type("see")
        await on.pilot.press("space", "at", *"shop.png", "enter")
        await on.until(lambda: images.asked)
        await on.say("and then this")
        await on.pilot.pause()
        assert on.told() == []
        images.gate.set()
        await on.until(lambda: len(on.told()) == 2 and not on.loop.running)

        assert on.told() == [f"see {LABEL}", "and then this"]


async def test_what_cannot_be_attached_returns_with_the_reason() -> None:
    async with stage() as on:
        give_images(on)
        for text, reason in {
            "see @large.png now": "large.png has 9,000,000 bytes",
            "see @price.py:9-gone @gone.py:9": "price.py has only 3 lines",
        }.items():
            await on.say(text)
            await on.until(lambda text=text: on.draft == text)
            assert reason in on.chat.entry.refusal.render().plain
            await on.pilot.press("ctrl+c")
        assert on.told() == []


async def test_only_a_typed_path_may_name_a_file_outside_and_one_without_a_file_is_text() -> None:
    async with stage(["Fine."] * 3) as on:
        images = give_images(on)
        await on.say("see @missing.png")
        await on.settled()
        assert on.told() == ["see @missing.png"]
        images.asked.clear()
        await on.say("pasted @/tmp/shop.png")
        await on.until(lambda: len(on.loop.reports) == 2)
        await on.settled()
        await on.type("typed ")
        await on.pilot.press("at", "slash", *"tmp", "slash", *"shop.png", "enter")
        await on.settled()

        assert images.asked == [("/tmp/shop.png", False), ("/tmp/shop.png", True)]


async def test_an_edited_message_keeps_its_image_and_loses_it_with_the_label() -> None:
    async with queueing() as (on, gate):
        give_images(on)
        await on.say("see @shop.png")
        await on.until(lambda: texts(on) == [f"see {LABEL}"])
        await on.pilot.press("up")
        await on.until(lambda: on.draft)
        await on.type(" now")
        await on.pilot.press("enter")
        await on.until(lambda: texts(on) == [f"see {LABEL} now"])
        (message,) = on.loop.waiting_messages
        assert [block.type for block in message.content] == ["text", "image"]

        await on.pilot.press("up")
        await on.until(lambda: on.draft)
        await on.pilot.press("ctrl+u")
        await on.type("nothing")
        await on.pilot.press("enter")
        await on.until(lambda: texts(on) == ["nothing"])
        (message,) = on.loop.waiting_messages
        assert [block.type for block in message.content] == ["text"]
        gate.set()


async def test_the_image_of_the_clipboard_is_attached_at_the_cursor_and_without_one_text_is_pasted() -> None:
    async with stage(["A shop."]) as on:
        images = give_images(on)
        await on.type("see now")
        await on.pilot.press(*["left"] * 4, "ctrl+v")
        await on.until(lambda: on.draft == "see[image clipboard 640×480] now")
        images.clipboard = None
        await on.pilot.press("shift+end", "ctrl+x", "ctrl+v", "ctrl+v")
        await on.until(lambda: on.draft == "see[image clipboard 640×480] now now")
        await on.pilot.press("enter")
        await on.settled()

        assert [block.type for block in sent(on).content] == ["text", "image"]
