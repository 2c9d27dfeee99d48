"""A program to kill: it records an endless session and prints the messages that are on the disk.

`python -m tests.session.recording_program JOURNAL [LIMIT]`: prints the id of each message once `flush` returned after
its end. LIMIT: most bytes a file of this process may have.
"""

import asyncio
import resource
import sys
from pathlib import Path

from tests.session.played_sessions import SESSION, PlayedCall, PlayedRun, PlayedStep, Player
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import MessageEnded
from tui_agent.session.journal_writer import JournalWriter
from tui_agent.session.store import SessionStore

RUN = PlayedRun("again", (PlayedStep(("Some ", "text."), (PlayedCall(("out\n",)), PlayedCall(asks=True))),))


async def record(path: Path) -> None:
    first_seq = SessionStore(path.parent).load(path.stem).next_seq
    bus = EventBus(Origin(session_id=SESSION), first_seq=first_seq)
    with bus.subscribe(merge=False) as told:
        async with JournalWriter(bus, path) as recorder:
            player = Player(bus)
            player.begin()
            while True:
                player.play((RUN,))
                await recorder.flush()
                for envelope in told.drain():
                    if isinstance(envelope.event, MessageEnded):
                        print(envelope.seq, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    asyncio.run(record(Path(sys.argv[1])))
