"""Sessions of an editor: real ones, which other programs can resume."""

import os
from pathlib import Path

import pytest
from acp import RequestError

from tests.e2e.script import call, calls, says, text_block
from tests.support.table import table
from tui_agent.protocol.bus import EventBus
from tui_agent.session import JournalWriter, SessionStore
from tui_agent.settings import Locations

from .editor import connected


def store() -> SessionStore:
    return SessionStore(Locations.of_user(os.environ).sessions_dir)


async def test_a_loaded_session_shows_its_conversation_and_continues(tmp_path: Path) -> None:
    tmp_path.joinpath("a.txt").write_text("hello\n", "utf-8")
    todo = call("todo", items=[{"text": "Look", "status": "in_progress"}])
    script = [calls(text_block("Reading."), todo, call("read", path="a.txt")), says("It says hello.")]
    async with connected(script) as link:
        session = await link.editor.open(tmp_path)
        await link.editor.say(session, "What is in a.txt?")
        live = link.editor
    async with connected([says("Yes.")]) as link:
        listed = await link.editor.agent.list_sessions(cwd=str(tmp_path))
        loaded = await link.editor.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        again = link.editor
        shown = (again.text("user_message_chunk"), again.text(), [one.status for one in again.calls()])
        reason = await again.say(session, "Sure?")
        history = len(link.server.requests[-1].body["messages"])

    assert [(one.session_id, one.title, one.cwd) for one in listed.sessions] == [
        (session, "What is in a.txt?", str(tmp_path))
    ]
    assert loaded.modes.current_mode_id == "ask"
    assert shown == ("What is in a.txt?", live.text(), ["pending", "in_progress", "completed"])
    [plan] = [one for _, one in again.updates if one.session_update == "plan"]
    assert [(entry.content, entry.status) for entry in plan.entries] == [("Look", "in_progress")]
    assert (reason, history) == ("end_turn", 5)


async def test_a_session_without_a_prompt_is_not_saved_and_the_error_says_so(tmp_path: Path) -> None:
    async with connected([]) as link:
        session = await link.editor.open(tmp_path)

    async with connected([]) as link:
        with pytest.raises(RequestError, match=r"no saved session.*a session is saved only once it has a prompt"):
            await link.editor.agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])


async def test_a_copy_goes_its_own_way_and_a_closed_session_opens_again(tmp_path: Path) -> None:
    async with connected([says("One."), says("Two."), says("Three.")]) as link:
        agent, editor = link.editor.agent, link.editor
        session = await editor.open(tmp_path)
        await editor.say(session, "First")
        copy = (await agent.fork_session(cwd=str(tmp_path), session_id=session)).session_id
        await editor.say(copy, "Second")
        await agent.close_session(session_id=session)
        with pytest.raises(RequestError, match="no session"):
            await editor.say(session, "Gone")
        await agent.resume_session(cwd=str(tmp_path), session_id=session)
        await editor.say(session, "Third")
        texts = [str(request.body["messages"]) for request in link.server.requests]

    assert "First" in texts[1]
    assert "Second" not in texts[2]
    assert "First" in texts[2]


@table(
    ("changes", "code"),
    [
        ({"cwd": "relative"}, -32602),
        ({"cwd": "/no/such/directory"}, -32602),
        ({"session_id": "no-such-session"}, -32002),
        ({"session_id": "../trust"}, -32603),
        ({"session_id": "in-use"}, -32603),
    ],
)
async def test_a_session_that_cannot_be_loaded_is_refused_in_words(
    changes: dict[str, str], code: int, tmp_path: Path
) -> None:
    used = store().create(tmp_path, "in-use")
    bus = EventBus(used.origin())
    async with JournalWriter(bus, used.path), connected([]) as link:
        used.announce(bus, "1")
        with pytest.raises(RequestError) as caught:
            await link.editor.agent.load_session(
                **{"cwd": str(tmp_path), "session_id": "in-use", "mcp_servers": [], **changes}
            )

    assert caught.value.code == code
    if changes.get("session_id") == "in-use":
        assert "already open in another tui-agent" in str(caught.value)


async def test_without_a_key_no_session_opens_and_the_method_says_what_to_do(tmp_path: Path) -> None:
    async with connected([]) as link:
        for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"):
            del os.environ[name]
        hello = await link.editor.agent.initialize(protocol_version=1)
        with pytest.raises(RequestError, match="ANTHROPIC_API_KEY") as caught:
            await link.editor.open(tmp_path)
        with pytest.raises(RequestError):
            await link.editor.agent.authenticate(method_id=hello.auth_methods[0].id)

    assert caught.value.code == -32000
    assert hello.agent_capabilities.load_session is True


async def test_additional_directories_count_as_part_of_the_workspace(tmp_path: Path) -> None:
    work, library = tmp_path / "work", tmp_path / "library"
    for folder in (work, library):
        folder.mkdir()
    (library / "lib.py").write_text("def price(): ...\n", "utf-8")
    script = [calls(call("read", path=str(library / "lib.py"))), says("Read.")]
    async with connected(script) as link:
        session = await link.editor.open(work, additional_directories=[str(library)])
        assert await link.editor.say(session, "read it") == "end_turn"
        assert link.editor.questions == []
        with pytest.raises(RequestError, match="is not the absolute path of a directory"):
            await link.editor.open(work, additional_directories=["library"])
