"""A picture over the whole terminal, drawn by the real program in a real pty that answers as terminals do."""

import base64
import io
import os
import re
import struct
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

import tui_agent
from tests.support.table import table
from tests.support.terminal import Terminal
from tests.ui.stage import stage
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.events import MessageEnded, ToolEnded, ToolQueued
from tui_agent.protocol.messages import ImageBlock, TextBlock, UserMessage
from tui_agent.ui.app import outside_programs
from tui_agent.ui.app.outside_programs import draw_picture
from tui_agent.ui.text.rows_view import PartPage
from tui_agent.ui.transcript.conversation import Conversation
from tui_agent.ui.transcript.transcript_parts import PicturePart

pytestmark = pytest.mark.slow

ROOT = Path(tui_agent.__file__).parent.parent
SMALL = f"2x2:{base64.b64encode(bytes(12)).decode()}"
"""A thumbnail."""
DRAW = """
import sys
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.app import outside_programs
from tui_agent.ui.app.outside_programs import draw_picture
draw_picture(ImageBlock(media_type="image/png", data=sys.argv[1], name="logo\\x1b[2J.png"))
print("the end")
"""


def png(width: int = 64, height: int = 48) -> str:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def bomb() -> str:
    """Return a PNG of a few bytes that has 10,000,000,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IEND", b"")).decode()


@pytest.mark.pty
@pytest.mark.parametrize(
    ("answers", "sign"),
    [
        ({"\x1b[c": "\x1b[?62;4;22c"}, "\x1bP0;0;0q"),
        ({"\x1b[c": "\x1b[?62;22c", "a=q": "\x1b_Gi=1;OK\x1b\\"}, "\U0010eeee"),
        ({"\x1b[c": "\x1b[?62;22c"}, "▀"),
    ],
    ids=["sixel", "kitty", "cells"],
)
def test_the_terminal_gets_what_it_can_draw_and_a_key_closes(answers: dict[str, str], sign: str) -> None:
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
    with Terminal([sys.executable, "-c", DRAW, png()], cwd=ROOT, environment=environment) as terminal:
        for question, answer in answers.items():
            terminal.answer_when(question, answer)
        terminal.wait_for("any key closes")
        assert sign in terminal.raw.decode()
        assert ("▀" * 64 in terminal.screen.text) == (sign == "▀"), "a half block for two pixels"
        assert "logo\x1b" not in terminal.raw.decode()
        terminal.write("\x1b[?62;22c")  # A late answer closes nothing.
        terminal.write("q")
        terminal.wait_for("the end")
        assert terminal.wait_for_end() == 0


@pytest.mark.pty
def test_what_decodes_a_picture_gets_no_secret_and_little_memory() -> None:
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk-of-the-user"}
    with Terminal([sys.executable, "-c", DRAW, png()], cwd=ROOT, environment=environment) as terminal:
        terminal.answer_when("\x1b[c", "\x1b[?62;22c")
        terminal.wait_for("any key closes")
        parent = Path(f"/proc/{terminal.process.pid}")
        (child,) = (parent / f"task/{terminal.process.pid}/children").read_text().split()
        assert b"sk-of-the-user" in (parent / "environ").read_bytes()
        inherited = Path(f"/proc/{child}/environ").read_bytes()
        limits = Path(f"/proc/{child}/limits").read_text()
        terminal.write("q")
        terminal.wait_for("the end")

    assert b"TERM=" in inherited
    assert b"sk-of-the-user" not in inherited
    assert re.search(rf"Max address space +{2 * 1024**3} ", limits)
    assert re.search(r"Max cpu time +30 ", limits)


@table(
    ("data", "reason"),
    [
        (base64.b64encode(b"no image").decode(), "cannot identify"),
        (png()[:80], "."),
        (bomb(), "pixels"),
        ("%%%", "base64"),
    ],
)
def test_a_broken_picture_is_a_reason(data: str, reason: str) -> None:
    with pytest.raises(TuiAgentError, match=f"cannot be drawn: .*{reason}"):
        draw_picture(ImageBlock(media_type="image/png", data=data))


@pytest.mark.parametrize("has_packages", [True, False])
async def test_a_key_opens_a_picture_as_a_page_where_no_program_can_draw(
    has_packages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_programs, "can_draw_pictures", lambda: has_packages)
    image = ImageBlock(media_type="image/png", data=png(), name="logo.png", thumbnail=SMALL)
    message = UserMessage(content=(TextBlock(text="look"), image), id="u1", kind="prompt")
    async with stage() as on:
        on.bus.publish(MessageEnded(message_id="u1", message=message))
        conversation = on.app.screen.query_one(Conversation)
        await on.until(lambda: any(isinstance(part, PicturePart) for part in conversation.transcript.parts))
        conversation.focus()
        for key in ("ctrl+o", "enter"):
            await on.pilot.press("up" if conversation.cursor.part is None else "shift+f12", key)
            await on.until(lambda: isinstance(on.app.screen, PartPage))
            await on.pilot.press("escape")
            await on.until(lambda: not isinstance(on.app.screen, PartPage))
        notes = {note.message for note in on.app._notifications}
        assert notes == (set() if has_packages else {outside_programs.missing_packages()})


async def test_pictures_that_the_agent_reads_are_below_their_call_and_bounded() -> None:
    image = ImageBlock(media_type="image/png", data=png(), thumbnail=SMALL)
    async with stage() as on:
        conversation = on.app.screen.query_one(Conversation)
        for number, content in enumerate(((image,) * 9, (ImageBlock(media_type="image/png", data=png()),))):
            call = f"c{number}"
            on.bus.publish(ToolQueued(call_id=call, name="read", args_raw={}, index=0, summary="logo.png", safe=True))
            on.bus.publish(ToolEnded(call_id=call, name="read", index=0, status="ok", is_error=False, content=content))
        await on.until(lambda: any(isinstance(part, PicturePart) for part in conversation.transcript.parts))
        await on.pilot.pause()

        kinds = [isinstance(part, PicturePart) for part in conversation.transcript.parts]
        assert sum(kinds) == 4
        assert not kinds[0]
