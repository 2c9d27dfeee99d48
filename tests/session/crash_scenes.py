"""Scenes of the crash sweep, and the checks that must pass after any kill."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.agent.fakes import FakePolicy
from tests.rewind.sessions import kept_session, state_of_tree
from tests.session.crashes import Scene
from tests.session.real_agents import agent_for, bus_for, recorded
from tests.support.transcript_checks import validate_events, validate_history
from tests.support.wire_rules import problems_of, read_body
from tui_agent.agent import AgentLoop
from tui_agent.context import ConversationHistory
from tui_agent.execution import ApprovalGate, ExecutionOptions
from tui_agent.protocol.events import CompactionEnded, MessageEnded, SessionForked, SessionRewound, ToolQueued
from tui_agent.protocol.messages import Message, ToolResultMessage, UserMessage, user_message
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.providers.request_builder import RequestBuilder, RequestSettings
from tui_agent.providers.scripted_provider import Reply
from tui_agent.session import JournalWriter, SessionStore, StoredSession

SESSION = "swept"
APPROVE = ApprovalDecision(decision="approve")


def turns_scene(turns: int) -> Scene:
    """A number of turns with reads and effects."""
    return _agent_scene("turns", turns, asks=False, compacts=False)


def approval_scene(turns: int = 3) -> Scene:
    """Turns in which the user approves each effect."""
    return _agent_scene("approval", turns, asks=True, compacts=False)


def compaction_scene(turns: int = 6) -> Scene:
    """Long turns with a compaction, its undo, and another compaction."""
    return _agent_scene("compaction", turns, asks=False, compacts=True)


def rewind_scene() -> Scene:
    """Files are written in two turns; the user rewinds files and conversation to before the second."""
    return Scene("rewind", _rewind, _rewind_faults, _rewind_end_faults)


def store_scene() -> Scene:
    """A session with files beside it is copied, renamed and deleted."""
    return Scene("store", _store, _store_faults, _store_end_faults)


# --- agents -----------------------------------------------------------------------------------------------------------


def _agent_scene(name: str, turns: int, *, asks: bool, compacts: bool) -> Scene:
    async def play(place: Path) -> None:
        await _turns(place, turns, asks=asks, compacts=compacts)

    def end_faults(place: Path) -> list[str]:
        return [*_whole_faults(place), *_effect_faults(place, turns)]

    return Scene(name, play, _kept_faults, end_faults)


async def _turns(place: Path, turns: int, *, asks: bool, compacts: bool) -> None:
    store = SessionStore(place / "sessions")
    known = [found.id for found in store.list()]
    session = store.load(SESSION) if SESSION in known else store.create(place, SESSION)
    bus = bus_for(session)
    acknowledged = (place / "acknowledged").open("a")
    with bus.subscribe(merge=False, since=0) as heard:
        async with recorded(session, bus) as recorder:
            session.announce(bus, "0", resume_pending_calls=asks)
            left = session.resumable_conversation if asks else None
            changes: dict[str, Any] = {}
            if asks:
                changes = {"policy": FakePolicy(), "gate": ApprovalGate(interactive=True)}
                changes |= {"history": left.messages, "open_calls": left.calls} if left else {}
            agent = agent_for(
                session,
                bus,
                ScriptedProvider([_wordy_answer if compacts else _answer] * (4 * turns)),
                place / "effects",
                flush_or_warn=recorder.flush_or_warn,
                before_requests=recorder.flush_outcomes,
                compactions=session.compactions,
                options=ExecutionOptions(stream_tools="allowed"),
                **changes,
            )
            said = [envelope.event for envelope in session.envelopes if isinstance(envelope.event, MessageEnded)]
            asked = sum(isinstance(event.message, UserMessage) and event.message.is_from_user for event in said)
            prompts = [*([None] if left else []), *(f"prompt {turn}" for turn in range(asked, turns))]
            for prompt in prompts:
                await _approved(agent, prompt, recorder)
                await recorder.flush()
                for envelope in heard.drain():
                    if isinstance(envelope.event, MessageEnded):
                        print(envelope.event.message_id, file=acknowledged)
                acknowledged.flush()
                if compacts and prompt is not None and int(prompt.split()[1]) >= turns // 2:
                    await _shorten(agent)
            await recorder.flush()
            (place / "live").write_text(json.dumps([message.id for message in agent.history.messages()]))


async def _approved(agent: AgentLoop, prompt: str | None, recorder: JournalWriter) -> None:
    """Run, and approve every request once it is in the journal."""
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(agent.run(prompt))
        while not run.done():
            for request in agent.pending_calls:
                await recorder.flush()
                agent.resolve_approval(request.request_id, APPROVE)
            await asyncio.sleep(0.001)


async def _shorten(agent: AgentLoop) -> None:
    if await agent.compact():
        agent.undo_compaction()
        await agent.compact()


def _answer(request: ModelRequest) -> Reply:
    """Return the model's script: for each prompt reads and an effect, then a final text."""
    prompts = [message for message in request.messages if isinstance(message, UserMessage)]
    if isinstance(request.messages[-1], ToolResultMessage):
        return reply(f"Done with {prompts[-1].text}.")
    turn = prompts[-1].text.split()[-1]
    return reply("On it. ", call("look", what=turn), call("leave", trace=f"trace{turn}"), call("look", what=turn))


def _wordy_answer(request: ModelRequest) -> Reply:
    """Return the same script with long texts, and a summary on request."""
    if request.conversation_id.endswith("/summary"):
        return reply("A summary of it all.")
    answered = _answer(request)
    return reply("word " * 400, *answered.parts[1:]) if len(answered.parts) > 1 else reply("word " * 400)


def _kept_faults(place: Path) -> list[str]:
    """Return acknowledged messages that are not in the journal, and faults that a model would reject."""
    acknowledged = _lines(place / "acknowledged")
    if not (place / "sessions" / f"{SESSION}.jsonl").exists():
        return ["the session is gone"] if acknowledged else []
    session = SessionStore(place / "sessions").load(SESSION)
    kept = {message.id for message in session.messages}
    if any(isinstance(one.event, CompactionEnded) for one in session.envelopes):
        kept = {one.event.message_id for one in session.envelopes if isinstance(one.event, MessageEnded)}
    missing = set(acknowledged) - kept
    faults = [f"{len(missing)} acknowledged messages are gone"] if missing else []
    return [*faults, *_damage(session), *request_faults(session.messages)]


def _whole_faults(place: Path) -> list[str]:
    """Return faults of the events, and differences between the journal's conversation and the real one."""
    session = SessionStore(place / "sessions").load(SESSION)
    faults = request_faults(session.messages)
    queued = Counter(one.event.call_id for one in session.envelopes if isinstance(one.event, ToolQueued))
    try:
        # Calls resumed after a kill are published again and get their result then.
        validate_events(session.envelopes, unanswered=[call_id for call_id, count in queued.items() if count > 1])
        validate_history(session.messages)
    except AssertionError as error:
        faults.append(str(error))
    live = json.loads((place / "live").read_text())
    if live != [message.id for message in session.messages]:
        faults.append("the journal tells another conversation")
    return faults


def _effect_faults(place: Path, turns: int) -> list[str]:
    """Return effects that happened twice, and results of effects that did not happen."""
    session = SessionStore(place / "sessions").load(SESSION)
    messages = [one.event.message for one in session.envelopes if isinstance(one.event, MessageEnded)]
    counted = Counter(_lines(place / "effects"))
    faults = [f"{effect} happened {count} times" for effect, count in counted.items() if count > 1]
    results = [message for message in messages if isinstance(message, ToolResultMessage)]
    told = [message.text.split()[-1] for message in results if "left " in message.text]
    faults += [f"{effect} was told and did not happen" for effect in told if effect not in counted]
    prompts = sum(isinstance(message, UserMessage) and message.is_from_user for message in messages)
    if prompts != turns:
        faults.append(f"{prompts} prompts of {turns} are in the conversation")
    return faults


def _damage(session: StoredSession) -> list[str]:
    torn = [problem for problem in session.problems if problem.kind in ("torn", "unreadable")]
    if len(torn) > 2 or len(torn) < len(session.problems):
        return [f"more than the last lines is damaged: {session.problems}"]
    return []


def request_faults(messages: Sequence[Message]) -> list[str]:
    """Return faults for which the API would reject the next request."""
    history = ConversationHistory([*messages, user_message("on")])
    body = RequestBuilder(RequestSettings("m", 1_000)).build(ModelRequest(history.messages()))
    return problems_of(read_body(body))


# --- rewind -----------------------------------------------------------------------------------------------------------


async def _rewind(place: Path) -> None:
    work, sessions = place / "work", place / "sessions"
    work.mkdir(exist_ok=True)
    known = [found.id for found in SessionStore(sessions).list() if found.said]
    async with kept_session(work, sessions, known[0] if known else None) as kept:
        said = [message.text for message in kept.session.messages if isinstance(message, UserMessage)]
        rewound = [one for one in kept.session.envelopes if isinstance(one.event, SessionRewound)]
        if "one" not in said:
            await kept.ask("one", *(call("write", path=name, content="1\n") for name in "ab"))
        if "two" not in said and not rewound:
            (place / "then").write_text(json.dumps(kept.state))
            edits = (call("edit", path=name, old_string="1", new_string="2") for name in "ab")
            await kept.ask("two", *edits, call("write", path="c/d", content="2\n"))
        if not rewound:
            (place / "now").write_text(json.dumps(kept.state))
            plan = await kept.rewinder.plan(await kept.point("two"))
            await kept.rewinder.carry_out(plan, "both")
        if "three" not in said:
            await kept.ask("three")
        await kept.check()


def _rewind_faults(place: Path) -> list[str]:
    """Return faults unless files and conversation are both rewound, both not, or the conversation says it is
    uncertain."""
    store = SessionStore(place / "sessions")
    found = [store.load(summary.id) for summary in store.list() if summary.said]
    if not found:
        return []
    session = found[0]
    faults = [*_damage(session), *request_faults(session.messages)]
    if not (place / "now").exists():
        return faults
    state = _without_remains(json.loads(json.dumps(state_of_tree(place / "work"))))
    then, now = (_without_remains(json.loads((place / name).read_text())) for name in ("then", "now"))
    rewound = [one.event for one in session.envelopes if isinstance(one.event, SessionRewound)]
    if rewound:
        left = {name.split(":")[0] for name in rewound[-1].left}
        wrong = [name for name in {*state, *then} - left if state.get(name) != then.get(name)]
        unknown = any("the changes of that call are unknown" in message.text for message in session.messages)
        return [*faults, *(f"{name} did not go back" for name in wrong if not unknown)]
    told = any("the user rewound to before" in message.text for message in session.messages)
    if state != now and not told:
        faults.append("files went back and nobody says so")
    return faults


def _without_remains(state: dict[str, Any]) -> dict[str, Any]:
    """Return leftovers of a kill that would disturb a later run."""
    return {name: found for name, found in state.items() if not name.endswith(".tmp")}


def _rewind_end_faults(place: Path) -> list[str]:
    faults = _rewind_faults(place)
    store = SessionStore(place / "sessions")
    (session,) = (store.load(summary.id) for summary in store.list() if summary.said)
    said = [message.text for message in session.messages if isinstance(message, UserMessage) and message.is_from_user]
    if said != ["one", "three"]:
        faults.append(f"the conversation is {said}")
    try:
        validate_events(session.envelopes)
    except AssertionError as error:
        faults.append(str(error))
    return faults


# --- the store --------------------------------------------------------------------------------------------------------


async def _store(place: Path) -> None:
    store = SessionStore(place / "sessions")
    if not (place / "live").exists():
        await _turns(place, 1, asks=False, compacts=False)
    output = store.files_dir(SESSION) / "output.txt"
    if not output.exists():
        output.write_text("long " * 1_000)
    for name in ("copy", "other"):
        if name in [found.id for found in store.list()]:
            store.delete(name)
        store.fork(SESSION, new_id=name)
    store.rename(SESSION, "a title")
    store.rename("copy", "another title")
    store.delete("copy")


def _store_faults(place: Path) -> list[str]:
    if not (place / "live").exists():
        return _kept_faults(place)
    store, faults = SessionStore(place / "sessions"), []
    ids = [found.id for found in store.list()]
    original = store.load(SESSION)
    if [message.id for message in original.messages] != json.loads((place / "live").read_text()):
        faults.append("the original is not what it was")
    for name in ("copy", "other"):
        files = store.files_path(name)
        if name not in ids:
            faults += [f"files of {name} are left behind"] if files.exists() else []
            continue
        copy = store.load(name)
        if copy.envelopes and not any(isinstance(one.event, SessionForked) for one in copy.envelopes):
            faults.append(f"{name} is half a copy")
        elif copy.envelopes and copy.messages != original.messages:
            faults.append(f"{name} is another conversation")
        faults += request_faults(copy.messages)
    return faults


def _store_end_faults(place: Path) -> list[str]:
    store = SessionStore(place / "sessions")
    titles = {found.id: found.title for found in store.list()}
    faults = _store_faults(place)
    if titles.get(SESSION) != "a title" or titles.keys() != {SESSION, "other"}:
        faults.append(f"there are {titles}")
    if (store.files_path("other") / "output.txt").read_text() != "long " * 1_000:
        faults.append("the copy's files are not whole")
    return faults


def _lines(path: Path) -> Iterable[str]:
    return path.read_text().split() if path.exists() else []


SCENES = (turns_scene(20), approval_scene(), compaction_scene(), rewind_scene(), store_scene())
"""Scenes of the whole sweep."""
