"""Makes a result fit the model's window: head and tail stay, the whole goes to a file (S3-20, S3-21).

Fitting what was fitted before changes nothing, no character is cut in two, and text that no file and no request could
hold is mended first.
"""

import asyncio
import hashlib
import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

from tui_agent.execution.json_coercion import replace_lone_surrogates
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.scheduling.access_tree import accesses_of
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import ImageBlock, JsonObject, TextBlock, UserBlock, joined_text
from tui_agent.protocol.tool import Tool

_HEAD_SHARE = 0.6
"""Part of the room that the beginning gets; ends of logs say more than middles."""

_LINE_SLACK = 200
"""Characters a cut may move to fall between two lines."""

_JOINERS = "\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""Characters that change the one before them, beside the combining ones: joiner, variation selectors, skin tones."""


async def fit(
    outcome: Outcome, *, call_id: str, limit: int | None, archive_dir: Path | None, publisher: Publisher
) -> Outcome:
    """The outcome with its sizes noted and its text no longer than `limit`.

    Args:
        outcome: how the call ended.
        call_id: names the file.
        limit: characters of all text blocks together; None: no limit.
        archive_dir: where the whole text is kept if it is cut; None: nowhere.
        publisher: hears about a file that could not be written.
    """
    content = tuple(_mended(block) for block in outcome.result.content)
    whole = joined_text(content)
    size = _size(content, whole)
    if content != outcome.result.content:
        outcome = replace(outcome, result=outcome.result.model_copy(update={"content": content}))
    if limit is None or len(whole) <= limit:
        return replace(outcome, size_bytes=size)
    path = await _archived(whole, call_id, archive_dir, publisher) if archive_dir else None
    where = f"the whole text is in {path}" if path else "the rest was not kept"
    fitted = TextBlock(text=cut_middle(whole, limit, where))
    images = tuple(block for block in content if isinstance(block, ImageBlock))
    result = outcome.result.model_copy(update={"content": (fitted, *images)})
    return replace(outcome, result=result, size_bytes=size, truncated=True, persisted_path=str(path) if path else None)


def reads_archive(tool: Tool, arguments: JsonObject, archive_dir: Path | None) -> bool:
    """Whether a call reads what was archived before; its result is not cut and archived again (P67)."""
    accesses = accesses_of(tool, arguments)
    if accesses is None or archive_dir is None:
        return False
    return any(archive_dir.resolve() in path.parents for path in accesses.reads)


def cut_middle(text: str, limit: int, where: str) -> str:
    """The head and the tail of `text` around a note, together at most `limit` characters."""
    note = f"\n[… {{}} of {len(text)} characters left out here; {where} …]\n"
    room = max(limit - len(note) - len(str(len(text))), 0)
    head = _good_cut(text, int(room * _HEAD_SHARE), step=-1)
    tail = _good_cut(text, len(text) - (room - int(room * _HEAD_SHARE)), step=1)
    return text[:head] + note.format(tail - head) + text[tail:]


def _good_cut(text: str, place: int, step: int) -> int:
    """A place near `place`, only ever towards the shorter piece: between two lines, or at least between two characters
    as a person sees them."""
    if step < 0:
        line = text.rfind("\n", max(place - _LINE_SLACK, 0), place) + 1
    else:
        line = text.find("\n", place, place + _LINE_SLACK) + 1
    if line > 0:
        return line
    while 0 < place < len(text) and _joined(text[place - 1], text[place]):
        place += step
    return place


def _joined(before: str, after: str) -> bool:
    return bool(unicodedata.combining(after)) or after in _JOINERS or before == "\u200d"


def _mended(block: UserBlock) -> UserBlock:
    text = block.text if isinstance(block, TextBlock) else ""
    whole = replace_lone_surrogates(text)
    return block if whole is text else TextBlock(text=whole)


def _size(content: tuple[UserBlock, ...], whole: str) -> int:
    text = len(whole) if whole.isascii() else len(whole.encode("utf-8"))
    return text + sum(len(block.data) for block in content if isinstance(block, ImageBlock))


async def _archived(text: str, call_id: str, archive_dir: Path, publisher: Publisher) -> Path | None:
    """Keeps the whole text; None, and a warning, where that fails."""
    data = text.encode("utf-8")
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:64]
    path = archive_dir / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
    try:
        await asyncio.to_thread(_write, path, data)
    except OSError as error:
        text = f"A long result could not be kept whole ({error}). Its beginning and end go to the model."
        publisher.publish(Warned(code="archive_failed", text=text, context={"call_id": call_id}))
        return None
    return path


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
