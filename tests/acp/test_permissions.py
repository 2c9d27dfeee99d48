"""Questions to the user of an editor, modes, and tool servers of the editor."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest
from acp import RequestError
from acp.schema import EnvVariable, McpServerStdio, SseMcpServer

from tests.e2e.script import call, calls, says
from tests.support.table import table
from tui_agent.acp.editor_host import read_servers
from tui_agent.protocol.events import ApprovalResolved
from tui_agent.session import SessionStore
from tui_agent.settings import Locations

from .editor import Question, connected

WRITE = calls(call("write", path="new.txt", content="x\n"))


@table(
    ("answer", "exists", "words"),
    [
        ("once", True, "new.txt"),
        ("deny", False, "denied"),
        ("skip", False, "Skipped"),
        (None, False, "without an answer"),
        ("anything", False, "without an answer"),
    ],
)
async def test_only_an_offered_yes_lets_a_call_run(
    answer: str | None, exists: bool, words: str, tmp_path: Path
) -> None:
    async with connected([WRITE, says("Done.")]) as link:
        link.editor.answer = lambda _: answer
        session = await link.editor.open(tmp_path)
        reason = await link.editor.say(session, "Write it")
        result = str(link.server.requests[-1].body["messages"][-1])

    assert reason == "end_turn"
    assert tmp_path.joinpath("new.txt").exists() is exists
    assert words in result


@table(("answer", "content"), [("once", "2\n"), ("deny", "1\n"), (None, "1\n")])
async def test_changes_of_a_command_are_a_question_with_diffs(
    answer: str | None, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "auto")
    (tmp_path / "a.txt").write_text("1\n")
    command = calls(call("bash", command="echo 2 > a.txt"))
    async with connected([command, says("Done.")]) as link:
        link.editor.answer = lambda _: answer
        await link.editor.say(await link.editor.open(tmp_path), "Change it")
        result = str(link.server.requests[-1].body["messages"][-1])

    (question,) = link.editor.questions
    assert [option.name for option in question.options][:1] == ["Keep the changes"]
    assert question.options[-1].name == "Discard the changes"
    [diff] = [part for part in question.call.content or [] if part.type == "diff"]
    assert (diff.path, diff.old_text, diff.new_text) == (str(tmp_path / "a.txt"), "1\n", "2\n")
    assert (tmp_path / "a.txt").read_text() == content
    assert ("kept: a.txt" if content == "2\n" else "discarded: a.txt") in result


QUESTIONS = [
    {"question": "Which store?", "choices": [{"label": "files"}, {"label": "a database"}], "default": ["files"]},
    {"question": "What else?", "choices": [{"label": "tests"}, {"label": "docs"}], "several": True},
]


@table(
    ("answers", "words"),
    [
        (("2", "1"), ["a database", "tests"]),
        (("agent", "2"), ["the default holds: files", "docs"]),
        (("1", None), ["No one can answer here", "Default: files"]),
    ],
)
async def test_a_question_of_the_agent_offers_its_choices(
    answers: tuple[str | None, ...], words: list[str], tmp_path: Path
) -> None:
    async with connected([calls(call("ask_user", questions=QUESTIONS)), says("Done.")]) as link:
        given = iter(answers)
        link.editor.answer = lambda _: next(given)
        await link.editor.say(await link.editor.open(tmp_path), "Ask me")
        result = str(link.server.requests[-1].body["messages"][-1])

    assert [one.call.title for one in link.editor.questions] == ["Which store?", "What else?"]
    assert [one.name for one in link.editor.questions[0].options] == [
        "files (default)",
        "a database",
        "Let the agent decide",
    ]
    assert all(word in result for word in words), result


@table(("answer", "mode"), [("2", "accept_edits"), ("1", "ask"), ("agent", "plan"), (None, "plan")])
async def test_a_plan_is_accepted_with_a_mode(answer: str | None, mode: str, tmp_path: Path) -> None:
    script = [calls(call("present_plan", plan="1. Look\n2. Read")), says("Done.")]
    async with connected(script, settings={"permissions": {"mode": "plan"}}) as link:
        link.editor.answer = lambda _: answer
        await link.editor.say(await link.editor.open(tmp_path), "Plan it")
        policy = link.host.loops[0].policy

    (question,) = link.editor.questions
    assert question.call.title == "Accept this plan?"
    assert [option.name for option in question.options] == ["ask (default)", "accept edits", "No, keep planning"]
    assert "1. Look" in str(question.call.content)
    assert policy.mode == mode


async def test_an_answer_after_the_cancel_changes_nothing(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def late(_: Question) -> str:
        await released.wait()
        return "once"

    async with connected([WRITE, says("Never mind.")]) as link, asyncio.TaskGroup() as tasks:
        link.editor.answer = late
        session = await link.editor.open(tmp_path)
        prompt = tasks.create_task(link.editor.say(session, "Write it"))
        await link.editor.asked()
        await link.editor.agent.cancel(session_id=session)
        reason = await prompt
        released.set()
        again = await link.editor.say(session, "And now?")

    assert (reason, again) == ("cancelled", "end_turn")
    assert not tmp_path.joinpath("new.txt").exists()
    assert link.server.problems == []


async def ended(prompt: Coroutine[object, object, str]) -> str:
    try:
        return await prompt
    except ConnectionError:
        return "gone"


async def test_a_client_that_goes_away_denies_its_questions(tmp_path: Path) -> None:
    async def never(_: Question) -> str:
        await asyncio.Event().wait()
        return "once"

    async with connected([WRITE, says("Denied.")]) as link, asyncio.TaskGroup() as tasks:
        link.editor.answer = never
        session = await link.editor.open(tmp_path)
        prompt = tasks.create_task(ended(link.editor.say(session, "Write it")))
        await link.editor.asked()
        code = await link.hang_up()
        assert await prompt == "gone"

    stored = SessionStore(Locations.of_user(os.environ).sessions_dir).load(session)
    answers = [one.event for one in stored.envelopes if isinstance(one.event, ApprovalResolved)]
    assert code == 0
    assert [(one.decision, one.by) for one in answers] == [("deny", "nobody")]
    assert not tmp_path.joinpath("new.txt").exists()


async def test_modes_change_from_either_side_and_all_is_not_offered(tmp_path: Path) -> None:
    async with connected([WRITE, says("Done.")]) as link:
        editor = link.editor
        session = (await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await editor.agent.set_session_mode(session_id=session, mode_id="accept_edits")
        mode = await editor.shown(lambda one: one.session_update == "current_mode_update")
        await editor.say(session, "Write it")
        with pytest.raises(RequestError, match="there are ask, accept_edits, plan, deny"):
            await editor.agent.set_session_mode(session_id=session, mode_id="allow")

    assert mode.current_mode_id == "accept_edits"
    assert editor.questions == []
    assert tmp_path.joinpath("new.txt").exists()


def server(tmp_path: Path) -> McpServerStdio:
    """A server that leaves a file when it starts."""
    script = f"open({str(tmp_path / 'started')!r}, 'w')"
    return McpServerStdio(
        name="notes", command=sys.executable, args=["-c", script], env=[EnvVariable(name="K", value="v")]
    )


@pytest.mark.parametrize(("answer", "starts"), [("leave", False), ("start", True)])
async def test_a_server_of_the_editor_starts_only_after_a_yes(answer: str, starts: bool, tmp_path: Path) -> None:
    async with connected([says("Hello.")]) as link:
        link.editor.answer = lambda _: answer
        nameless = SseMcpServer(type="sse", name="__", url="https://x.test", headers=[])
        session = await link.editor.open(tmp_path, servers=[server(tmp_path), nameless])
        assert link.editor.questions == [], "the editor does not know the session yet"
        await link.editor.say(session, "Hi")

    [question] = link.editor.questions
    words = question.call.content[0].content.text
    assert sys.executable in words
    assert '"K"' in words
    assert "'v'" not in words
    assert tmp_path.joinpath("started").exists() is starts
    assert "__ is not used: its name is missing" in link.editor.text()
    old = SseMcpServer(type="sse", name="old", url="https://x.test", headers=[])
    assert read_servers([old])[0]["old"].transport == "sse"
    assert ("Not started" in link.editor.text()) is not starts


async def test_settings_of_a_folder_that_is_not_trusted_are_reported_and_dead(tmp_path: Path) -> None:
    tmp_path.joinpath(".tui-agent").mkdir()
    tmp_path.joinpath(".tui-agent/config.toml").write_text('[permissions]\nrules = [["allow", "write"]]\n', "utf-8")
    async with connected([WRITE, says("Done.")]) as link:
        link.editor.answer = lambda _: "deny"
        await link.editor.say(await link.editor.open(tmp_path), "Write it")

    assert "not applied, because this folder is not trusted" in link.editor.text()
    assert len(link.editor.questions) == 1
