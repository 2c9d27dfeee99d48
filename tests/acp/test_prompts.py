"""Prompts of an editor from the first update to the stop reason."""

import asyncio
import base64
import os
from pathlib import Path

import acp
import pytest

from tests.e2e.script import call, calls, fails, says, text_block, until
from tui_agent.settings import Locations

from .editor import connected

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""An image of one pixel."""


async def test_a_prompt_streams_thoughts_text_and_calls_and_is_saved(tmp_path: Path) -> None:
    tmp_path.joinpath("a.txt").write_text("hello\n", "utf-8")
    script = [
        calls({"type": "thinking", "thinking": "Let me look."}, text_block("Reading."), call("read", path="a.txt")),
        says("It says hello."),
    ]
    async with connected(script) as link:
        editor = link.editor
        session = await editor.open(tmp_path)
        reason = await editor.say(session, "What is in a.txt?")

    assert reason == "end_turn"
    assert editor.text("agent_thought_chunk") == "Let me look."
    assert editor.text() == "Reading.It says hello."
    assert [one.status for one in editor.calls()] == ["pending", "in_progress", "completed"]
    begun, _, ended = editor.calls()
    assert (begun.kind, begun.title, begun.locations[0].path) == ("read", "read `a.txt`", str(tmp_path / "a.txt"))
    assert "hello" in ended.content[0].content.text


async def test_a_question_shows_the_change_of_an_edit_which_runs_once_allowed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\nthree\n", "utf-8")
    script = [calls(call("edit", path="a.txt", old_string="two", new_string="2")), says("Done.")]
    async with connected(script) as link:
        editor = link.editor
        editor.answer = lambda question: "once"
        session = await editor.open(tmp_path)
        await editor.say(session, "Edit it")

    assert file.read_text("utf-8") == "one\n2\nthree\n"
    [question] = editor.questions
    assert question.ids == ["once", "session", "project", "deny", "skip"]
    assert [option.kind for option in question.options][:2] == ["allow_once", "allow_always"]
    change, words = question.call.content
    assert (change.path, change.old_text, change.new_text) == (str(file), "one\ntwo\nthree\n", "one\n2\nthree\n")
    assert "Edit a.txt?" in words.content.text
    begun, *_, ended = editor.calls()
    assert begun.tool_call_id == question.call.tool_call_id == ended.tool_call_id
    assert (begun.kind, ended.status, ended.content) == ("edit", "completed", [change])


async def test_a_second_prompt_steers_the_run_and_both_are_answered_at_its_end(tmp_path: Path) -> None:
    script = [calls(until("steered"), call("read", path="a.txt")), says("As you say.")]
    async with connected(script) as link, asyncio.TaskGroup() as tasks:
        session = await link.editor.open(tmp_path)
        first = tasks.create_task(link.editor.say(session, "Begin"))
        await link.server.asked(1)
        second = tasks.create_task(link.editor.say(session, "Rather stop reading"))
        await link.server.reached("steered")
        await link.queued("Rather stop reading")
        link.server.release("steered")
        reasons = (await first, await second)
        said = str(link.server.requests[-1].body["messages"])

    assert reasons == ("end_turn", "end_turn")
    assert "Rather stop reading" in said
    assert link.server.left == 0


async def test_a_prompt_carries_files_links_and_images(tmp_path: Path) -> None:
    pixel = base64.b64encode(PIXEL).decode()
    tmp_path.joinpath("shot.png").write_bytes(PIXEL)
    tmp_path.joinpath("sub").mkdir()
    tmp_path.joinpath("sub/a b.py").write_text("one\ntwo\nthree\n", "utf-8")
    file = (tmp_path / "sub" / "a b.py").as_uri()
    blocks = [
        "Look at ",
        acp.resource_link_block("a b.py", f"{file}#L2:3"),
        acp.resource_link_block("shot", (tmp_path / "shot.png").as_uri()),
        acp.resource_link_block("docs", "https://docs.test/x"),
        acp.resource_link_block("odd", "file://[::1"),
        acp.resource_block(acp.embedded_text_resource(file, "unsaved = 1\n")),
        acp.image_block(pixel, "image/png"),
    ]
    async with connected([says("Seen.")]) as link:
        session = await link.editor.open(tmp_path)
        await link.editor.say(session, *blocks)
        [body] = [request.body for request in link.server.requests]
        for wrong in (acp.audio_block(pixel, "audio/wav"), acp.image_block("%%%", "image/png"), " "):
            with pytest.raises(acp.RequestError) as caught:
                await link.editor.say(session, wrong)
            assert caught.value.code == -32602

    content = body["messages"][-1]["content"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    assert "unsaved = 1" in texts[0]
    assert texts[0].startswith("sub/a b.py, as the user's editor has it")
    assert texts[1] == 'Look at @"sub/a b.py:2-3" @shot.png [docs](https://docs.test/x) [odd](file://[::1)'
    assert [block["type"] for block in content].count("image") == 2
    assert "two" in texts[2]
    assert "one" not in texts[2]


async def test_skills_and_command_files_are_commands_of_the_editor(tmp_path: Path) -> None:
    commands = Locations.of_user(os.environ).config_dir / "commands"
    commands.mkdir(parents=True)
    commands.joinpath("greet.md").write_text("---\ndescription: Greet\n---\nSay hello to $ARGUMENTS", "utf-8")
    async with connected([says("Hello Ada.")]) as link:
        session = await link.editor.open(tmp_path)
        offered = await link.editor.shown(lambda one: one.session_update == "available_commands_update")
        await link.editor.say(session, "/greet Ada")
        said = str(link.server.requests[0].body["messages"])

    review = ("review", "Review the work tree, a branch or a commit")
    assert [(one.name, one.description) for one in offered.available_commands] == [("greet", "Greet"), review]
    assert "Say hello to Ada" in said


async def test_a_failed_run_is_an_error_in_words_and_the_session_stays_usable(tmp_path: Path) -> None:
    script = [fails(401, "authentication_error"), fails(400, "invalid_request_error"), says("Fine.")]
    async with connected(script) as link:
        session = await link.editor.open(tmp_path)
        codes: list[int] = []
        for _ in range(2):
            with pytest.raises(acp.RequestError) as caught:
                await link.editor.say(session, "Hi")
            codes.append(caught.value.code)
        reason = await link.editor.say(session, "And now?")

    assert codes == [-32000, -32603]
    assert "scripted invalid_request_error" in str(caught.value)
    assert reason == "end_turn"


async def test_a_cancel_drops_the_prompts_that_were_not_read(tmp_path: Path) -> None:
    script = [calls(until("never"), call("read", path="a.txt")), says("Next.")]
    async with connected(script) as link, asyncio.TaskGroup() as tasks:
        session = await link.editor.open(tmp_path)
        first = tasks.create_task(link.editor.say(session, "Begin"))
        await link.server.reached("never")
        second = tasks.create_task(link.editor.say(session, "Unread"))
        await link.queued("Unread")
        await link.editor.agent.cancel(session_id=session)
        reasons = (await first, await second)
        await link.editor.say(session, "Something else")
        said = str(link.server.requests[-1].body["messages"])

    assert reasons == ("cancelled", "cancelled")
    assert "Begin" in said
    assert "Unread" not in said


async def test_options_of_a_session_show_and_change_the_effort(tmp_path: Path) -> None:
    async with connected([]) as link:
        agent = link.editor.agent
        opened = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        changed = await agent.set_config_option(session_id=opened.session_id, config_id="effort", value="low")
        for name, value in (("effort", "lots"), ("model", "no-such"), ("speed", "high"), ("mode", "allow")):
            with pytest.raises(acp.RequestError):
                await agent.set_config_option(session_id=opened.session_id, config_id=name, value=value)

    assert [(one.id, one.category, one.current_value) for one in opened.config_options] == [
        ("mode", "mode", "ask"),
        ("model", "model", "claude-sonnet-5-5"),
        ("effort", "thought_level", "default"),
    ]
    assert [one.current_value for one in changed.config_options][-1] == "low"
