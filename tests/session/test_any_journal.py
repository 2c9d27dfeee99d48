"""Any prefix of any journal gives a conversation that a model accepts, and the whole journal that of the agent."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.fakes import FakePolicy
from tests.session.folded import same_conversation, stored
from tests.support.examples import examples
from tests.support.transcript_checks import validate_history
from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentTool, RetryPolicy
from tui_agent.context import ContextGuard, ConversationHistory, GuardOptions
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus, Subscription
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import CompactionError
from tui_agent.protocol.events import SessionRewound
from tui_agent.protocol.function_tool import function_tool
from tui_agent.protocol.messages import Message, user_message
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.provider import ModelInfo, ModelRequest
from tui_agent.protocol.tool import Tool
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Reply, Think, call, fail, reply
from tui_agent.session import StoredSession, unfinished
from tui_agent.session.history_fold import fold_history, messages_of

LOOK, CHANGE, HAND_ON = call("look"), call("change"), call("agent", task="look into it")

ANSWERS: dict[str, tuple[Reply, ...]] = {
    "talks": (reply(Think("hm"), "Words. " * 30),),
    "looks": (reply("I look.", LOOK, LOOK), reply(LOOK), reply("Seen.")),
    "pauses": (reply("First half", stop_reason="pause_turn"), reply("second half.")),
    "fails": (reply("Half", fail("stream_cut")), reply(LOOK, stop_reason="max_tokens"), reply(call("nothing"), LOOK)),
    "hands on": (reply(HAND_ON, LOOK), reply(LOOK, CHANGE), reply("Found."), reply("So it is.")),
    "asks": (reply("I change it.", LOOK, CHANGE, CHANGE), reply("Changed.")),
}
PROMPTS = [(kind, how) for kind in ANSWERS for how in ("", "steered", "followed up")]
ASKING = [("asks", how) for how in ("denied", "aborted", "left", "killed")] + [("hands on", "killed")]
SIZE = [("compact", ""), ("compact", ""), ("undo", "")]
OTHERS = [(what, "") for what in ("command", "private command", "go back", "go back, told")]

deeds = st.lists(st.sampled_from([*PROMPTS, *ASKING, *OTHERS, *SIZE, *SIZE]), min_size=4, max_size=14)


class Session:
    """One agent after another in one recorded session."""

    def __init__(self) -> None:
        self.told: list[Envelope] = []
        self.past: list[tuple[int, tuple[Message, ...]]] = []
        """Number of the last event and the conversation after each action."""
        self.answers: deque[Reply] = deque()
        self.provider = ScriptedProvider([self.answer] * 500, model=ModelInfo("small", context_window=800))
        self.steering = ""
        self.heard: Subscription
        self.open(resumed=False)

    def answer(self, request: ModelRequest) -> Reply:
        if request.conversation_id.endswith("/summary"):
            return reply("" if len(self.told) % 2 else "All was looked at.")
        return self.answers.popleft() if self.answers else reply("Done.")

    def open(self, *, resumed: bool) -> None:
        """Resume the session as a new process does."""
        last = self.told[-1].seq if self.told else 0
        session = StoredSession("s", None, Path("/"), tuple(self.told), next_seq=last + 1, resumed=resumed)
        bus = EventBus(session.origin(), first_seq=session.next_seq)
        self.heard = bus.subscribe(merge=False)
        session.announce(bus, "0", resume_pending_calls=True)
        end = session.resumable_conversation
        config = AgentLoopConfig(
            self.provider,
            tools=self.tools(),
            system="",
            bus=bus,
            policy=FakePolicy(),
            gate=ApprovalGate(interactive=True),
            history=session.messages if end is None else end.messages,
            open_calls=() if end is None else end.calls,
            compactions=session.compactions,
            waiting=session.waiting,
            guard=ContextGuard(GuardOptions(keep_steps=1)),
            retry=RetryPolicy(first_wait=0.0, longest_wait=0.0),
            session_id="s",
        )
        self.agent = AgentLoop(config)
        self.agent.add_tool(AgentTool(self.agent))

    def tools(self) -> list[Tool]:
        @function_tool(read_only=True)
        async def look() -> str:
            """Looks."""
            if self.steering:
                said, self.steering = self.steering, ""
                self.agent.steer("But first …") if said == "steered" else self.agent.follow_up("And then …")
            return "seen " * 60

        @function_tool()
        async def change() -> str:
            """Changes."""
            return "changed"

        return [look, change]

    async def do(self, what: str, how: str) -> None:
        """Perform one action."""
        agent = self.agent
        if what in ANSWERS:
            await self.prompt(what, how)
        elif what.endswith("command"):
            await agent.run_command("look", {}, "!look", shared=what == "command")
        elif what == "compact":
            await agent.compact()
        elif what == "undo":
            with suppress(CompactionError):
                agent.undo_compaction()
        elif self.past:
            seq, messages = self.past[len(self.told) % len(self.past)]
            notice = user_message("It is as it was.", "notice") if "told" in what else None
            now = agent.bus.last_seq
            rewound = SessionRewound(to_seq=seq, from_seq=now, text="x", conversation=True, notice=notice)
            agent.apply_rewind(messages, rewound)
        self.told += self.heard.drain()
        self.past.append((self.told[-1].seq, tuple(self.agent.history.messages())))

    async def prompt(self, what: str, how: str) -> None:
        """Run to the end, to an abort, or to a kill while a call waits for approval."""
        self.answers = deque(ANSWERS[what])
        self.steering = how if how in ("steered", "followed up") else ""
        agent = self.agent
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(agent.run("Do it."))
            while not run.done():
                await asyncio.sleep(0)
                for request in agent.pending_calls if agent.running else ():
                    if how == "killed":
                        self.told += self.heard.drain()
                        run.cancel()
                    elif how in ("aborted", "left"):
                        agent.abort("enough" if how == "aborted" else PROGRAM_QUIT)
                    else:
                        verdict = "deny" if how == "denied" else "approve"
                        agent.resolve_approval(request.request_id, ApprovalDecision(decision=verdict))
        if how == "left":
            self.told += self.heard.drain()
        if how in ("killed", "left"):
            self.open(resumed=True)
            await self.take_up()

    async def take_up(self) -> None:
        """Resume the session with its waiting calls."""
        agent = self.agent
        if not agent.pending_calls:
            return
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(agent.run())
            while not run.done():
                await asyncio.sleep(0)
                for request in agent.pending_calls if agent.running else ():
                    agent.resolve_approval(request.request_id, ApprovalDecision(decision="approve"))


def judge_beginning(told: Sequence[Envelope]) -> None:
    """Check a journal that ends here."""
    fold = fold_history(told)
    messages = fold.messages()
    validate_history(messages)
    assert not {one.id for one in stored(told).waiting} & {message.id for message in messages}
    resumable_conversation = fold.resumable_conversation()
    if resumable_conversation is not None:
        validate_history(resumable_conversation.messages, complete=False)
    history, guard = ConversationHistory(messages), ContextGuard()
    session = stored(told)
    assert session.messages == messages  # Folded event by event, as a journal is read.
    assert session.unfinished == unfinished(told)
    bus = EventBus(session.origin(), first_seq=told[-1].seq + 1)
    made = AgentLoopConfig(ScriptedProvider(), bus=bus, guard=guard, history=history, compactions=session.compactions)
    agent = AgentLoop(made)
    while guard.can_undo(history):
        agent.undo_compaction()
        validate_history(history.messages())
    last = told[-1].seq
    closing = enumerate(unfinished(told).closing, start=last + 1)
    closed = [*told, *(Envelope(each.event, seq, 0, 0.0, each.origin) for seq, each in closing)]
    assert [message.text for message in messages_of(closed)] == [message.text for message in messages]
    assert unfinished(closed).closing == ()


async def play(script: Sequence[tuple[str, str]]) -> Session:
    session = Session()
    for what, how in script:
        async with asyncio.timeout(60):
            await session.do(what, how)
    return session


@pytest.mark.slow
@given(deeds, st.integers(0, 2**20))
@settings(max_examples=examples(30, 12))
def test_any_prefix_of_any_journal_is_a_valid_conversation(script: list[tuple[str, str]], seed: int) -> None:
    session = asyncio.run(play(script))
    told = session.told

    same_conversation(told, session.agent.history.messages())
    for end in random.Random(seed).sample(range(1, len(told)), min(12, max(0, len(told) - 1))):
        judge_beginning(told[:end])
