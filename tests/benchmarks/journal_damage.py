"""A journal cut at every byte and damaged at random: `python -m tests.benchmarks.journal_damage [DAMAGES] [SEED]`.

Run by hand. The journal comes from turns with questions, effects, compactions and their undo. Whatever remains of it
must load without an exception as a conversation whose next request a model accepts; intact lines must never be lost,
and
unreadable ones must be named. Exits with 1 otherwise.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.session.crash_scenes import approval_scene, compaction_scene, request_faults
from tests.session.crashes import Scene
from tests.session.folded import stored
from tui_agent.session import messages_of, parse_journal

MOST_DAMAGES = 6
"""Damaged places in one journal."""


def main(damages: int, seed: int) -> int:
    faults: list[str] = []
    for scene in (approval_scene(1), compaction_scene(2)):
        journal = _journal_of(scene)
        begun = time.monotonic()
        cut = _cut_everywhere(journal)
        print(f"{scene.name}: cut at {len(journal) + 1} bytes, {len(cut)} faults, {time.monotonic() - begun:.0f} s")
        begun, chance = time.monotonic(), random.Random(seed)
        damaged = [fault for _ in range(damages) for fault in _damaged(journal, chance)]
        print(f"{scene.name}: {damages} times damaged, {len(damaged)} faults, {time.monotonic() - begun:.0f} s")
        faults += cut + damaged
    print("\n".join(faults[:50]))
    return 1 if faults else 0


def _journal_of(scene: Scene) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scene.play(Path(directory)))
        return (Path(directory) / "sessions" / "swept.jsonl").read_bytes()


def _cut_everywhere(journal: bytes) -> list[str]:
    """Cut the last lines byte by byte and the whole journal line by line, since it is read by lines."""
    faults: list[str] = []
    known = -1
    for size in range(len(journal) + 1):
        end = journal.rfind(b"\n", 0, size) + 1
        begin = journal.rfind(b"\n", 0, max(end - 1, 0)) + 1
        contents = parse_journal(journal[begin:size])
        whole, torn = int(end > 0), size - end
        if len(contents.envelopes) not in (whole, whole + (torn > 0)):
            faults.append(f"cut at {size}: {len(contents.envelopes)} events of {whole} whole lines")
        if bool(contents.problems) != (torn > 0 and len(contents.envelopes) == whole):
            faults.append(f"cut at {size}: {contents.problems}")
        if begin + len(contents.envelopes) != known:
            known = begin + len(contents.envelopes)
            faults += [f"cut at {size}: {fault}" for fault in _conversation_faults(journal[:size])]
    return faults


def _damaged(journal: bytes, chance: random.Random) -> list[str]:
    data = bytearray(journal)
    for _ in range(chance.randint(1, MOST_DAMAGES)):
        place = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[place : place + chance.randint(1, 2_000)] = b""
            case 1:
                data[place : place + 512] = bytes(512)
            case 2:
                data[place:place] = chance.randbytes(chance.randint(1, 600))
            case _:
                data[place] ^= 1 << chance.randrange(8)
    faults = _conversation_faults(bytes(data))
    contents, lines = parse_journal(bytes(data)), journal.count(b"\n")
    if len(contents.envelopes) < lines <= data.count(b"\n") and not contents.problems:
        faults.append(f"{lines - len(contents.envelopes)} lines are gone without a word")
    return faults


def _conversation_faults(data: bytes) -> list[str]:
    envelopes = parse_journal(data).envelopes
    try:
        session = stored(envelopes)
        _ = session.resumable_conversation, session.unfinished, session.waiting
        return request_faults(messages_of(envelopes))
    except Exception as error:  # Any exception is a finding.
        return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 2_000, numbers[1] if len(numbers) > 1 else 1))
