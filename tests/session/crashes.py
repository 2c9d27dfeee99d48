"""Sessions that are killed at a chosen operation on the disk, taken up again, and looked at.

The child process is forked from one that has everything imported. It wraps the few calls of the system by which
anything of ours reaches the disk; at the chosen one it ends as a kill from outside would end it: SIGKILL, before it, in
the middle of a write, or after it.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.session.real_agents import agent_for, bus_for, recorded
from tests.support.transcripts import validate_events, validate_history
from tests.support.wire_rules import problems_of, read_body
from tui_agent.context import ConversationHistory
from tui_agent.protocol.events import MessageEnded
from tui_agent.protocol.messages import ToolResultMessage, UserMessage
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.providers.request_builder import RequestBuilder, RequestSettings
from tui_agent.providers.scripted_provider import Reply
from tui_agent.session import SessionStore

TURNS = 20
MOMENTS = 3
"""Each operation can be met before it, in its middle and after it."""
SESSION = "swept"


class Killer:
    """Counts operations on the disk and ends the process at one of them."""

    def __init__(self, at: int) -> None:
        self.at, self.moment = divmod(at, MOMENTS)
        """Number of the fatal operation, from 1, and when: before it, in its middle, after it; 0: none."""
        self.done = 0

    def install(self) -> None:
        """Wraps the calls of this process."""
        write = os.write

        def half_written(descriptor: int, data: Any) -> int:
            return write(descriptor, bytes(data)[: len(data) // 2])

        whole = self.around(write, half_written)
        os.write = lambda descriptor, data: whole(descriptor, data) if descriptor > 2 else write(descriptor, data)
        for name in ("fsync", "fdatasync", "rename", "replace", "link", "ftruncate"):
            setattr(os, name, self.around(getattr(os, name)))

    def around(self, function: Callable[..., Any], half: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            self.done += 1
            if self.done != self.at:
                return function(*arguments)
            if self.moment == 1 and half is not None:
                half(*arguments)
            elif self.moment == 2:
                function(*arguments)
            die()
            raise AssertionError

        return called


def die() -> None:
    """What `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Sweep:
    """What many kills came to."""

    points: int = 0
    killed: int = 0
    taken_up_twice: int = 0
    """Sessions that were killed again while they were taken up."""
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.points} points, {self.killed} killed, {self.taken_up_twice} killed twice, "
            f"{len(self.faults)} faults, {self.seconds:.0f} s"
        )


def whole_session(root: Path, turns: int = TURNS) -> tuple[int, float]:
    """How many operations on the disk a whole session takes, and how many seconds."""
    count = root / "count"
    begun = time.monotonic()
    forked(lambda: count.write_text(str(play(root / "whole", turns, 0, 0.0))))
    return int(count.read_text()), time.monotonic() - begun


def points_of(operations: int) -> list[int]:
    """Every moment of every operation."""
    return list(range(MOMENTS, MOMENTS * (operations + 1)))


def sweep(root: Path, points: list[int], turns: int = TURNS, seed: int = 0) -> Sweep:
    """Kills one session at each point, takes it up again, and looks for anything lost, doubled or invalid.

    A point is a moment of an operation, as `points_of` numbers them; a negative one is a kill from outside after that
    many microseconds of the session's own time.
    """
    chance, begun = random.Random(seed), time.monotonic()
    found = Sweep()
    for number, point in enumerate(points):
        place = root / f"at{number}"
        found.points += 1
        found.killed += forked(lambda place=place, point=point: play(place, turns, max(point, 0), -min(point, 0) / 1e6))
        again = chance.randrange(MOMENTS, 12 * MOMENTS) if chance.random() < 0.25 else 0
        if again:
            found.taken_up_twice += forked(lambda place=place, again=again: play(place, turns, again, 0.0))
        found.faults += [f"point {point}: {fault}" for fault in faults_of(place, turns)]
        for path in sorted(place.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        place.rmdir()
    found.seconds = time.monotonic() - begun
    return found


def forked(work: Callable[[], object]) -> bool:
    """Runs `work` in a process of its own; whether that was killed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise AssertionError(f"the session's process failed with {os.WEXITSTATUS(status)}")
    return False


def play(place: Path, turns: int, kill_at: int, kill_after: float) -> int:
    """Goes on with the session at `place` until it has so many turns; returns the operations that took."""
    place.mkdir(parents=True, exist_ok=True)
    killer = Killer(kill_at)
    killer.install()
    if kill_after:
        signal.signal(signal.SIGALRM, lambda *_: die())
        signal.setitimer(signal.ITIMER_REAL, kill_after)
    asyncio.run(_play(place, turns))
    return killer.done


async def _play(place: Path, turns: int) -> None:
    store = SessionStore(place / "sessions")
    known = [found.id for found in store.list()]
    session = store.load(SESSION) if SESSION in known else store.create(place, SESSION)
    bus = bus_for(session)
    acknowledged = (place / "acknowledged").open("a")
    with bus.subscribe(merge=False, since=0) as heard:
        async with recorded(session, bus) as recorder:
            session.announce(bus, "0")
            agent = agent_for(
                session,
                bus,
                ScriptedProvider([answer] * (3 * turns)),
                place / "effects",
                keep_intent=recorder.keep_intent,
            )
            asked = sum(isinstance(message, UserMessage) and message.kind == "prompt" for message in session.messages)
            for turn in range(asked, turns):
                await agent.run(f"prompt {turn}")
                await recorder.flush()
                for envelope in heard.drain():
                    if isinstance(envelope.event, MessageEnded):
                        print(envelope.event.message_id, file=acknowledged)
                acknowledged.flush()


def answer(request: ModelRequest) -> Reply:
    """What the model says: for each prompt one read and one effect, and a word when both have a result."""
    prompts = [message for message in request.messages if isinstance(message, UserMessage)]
    if isinstance(request.messages[-1], ToolResultMessage):
        return reply(f"Done with {prompts[-1].text}.")
    turn = prompts[-1].text.split()[-1]
    return reply("On it. ", call("look", what=turn), call("leave", trace=f"trace{turn}"), call("look", what=turn))


def faults_of(place: Path, turns: int) -> list[str]:
    """Everything that is wrong with a session that was killed; it is taken up and brought to its end for that."""
    faults: list[str] = []
    acknowledged = _lines(place / "acknowledged")
    store = SessionStore(place / "sessions")
    if (place / "sessions" / f"{SESSION}.jsonl").exists():
        session = store.load(SESSION)
        missing = set(acknowledged) - {message.id for message in session.messages}
        if missing:
            faults.append(f"{len(missing)} acknowledged messages are gone")
        faults += request_faults(session.messages)
        torn = [problem for problem in session.problems if problem.kind in ("torn", "unreadable")]
        if len(torn) > 2 or len(torn) < len(session.problems):
            faults.append(f"more than the last lines is damaged: {session.problems}")
    elif acknowledged:
        faults.append("the session is gone")
    if forked(lambda: play(place, turns, 0, 0.0)):
        faults.append("it could not be taken up")
    session = store.load(SESSION)
    try:
        validate_events(session.envelopes)
        validate_history(session.messages)
    except AssertionError as error:
        faults.append(str(error))
    faults += effect_faults(_lines(place / "effects"), session.messages, turns)
    return faults


def request_faults(messages: Any) -> list[str]:
    """What the API would refuse in the next request."""
    history = ConversationHistory(
        [*messages, UserMessage.model_validate({"content": [{"type": "text", "text": "on"}]})]
    )
    body = RequestBuilder(RequestSettings("m", 1_000)).build(ModelRequest(history.messages()))
    return problems_of(read_body(body))


def effect_faults(effects: list[str], messages: Any, turns: int) -> list[str]:
    """Effects that happened twice, and results that tell of one that did not happen."""
    counted = Counter(effects)
    faults = [f"{effect} happened {count} times" for effect, count in counted.items() if count > 1]
    told = [
        message.text.split()[-1] for message in messages if message.role == "tool_result" and "left " in message.text
    ]
    faults += [f"{effect} was told and did not happen" for effect in told if effect not in counted]
    prompts = sum(isinstance(message, UserMessage) and message.kind == "prompt" for message in messages)
    if prompts != turns:
        faults.append(f"{prompts} prompts of {turns} are in the conversation")
    return faults


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
