"""Signing in to a server over HTTP: at the user's wish only, to the right server only, and once."""

import asyncio
import json
import stat
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.mcp.pools import Running, running, until
from tests.mcp.sign_in_server import SignInServer, sign_in_server
from tests.support.table import table
from tui_agent.mcp import oauth_sign_in, protocol_repair
from tui_agent.mcp.server_parts import QuestionAnswer, ServerQuestions
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.server_question import ServerQuestion


async def get(address: str) -> str:
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return (await reader.read()).decode()
    finally:
        writer.close()


class Person:
    """Answers the question of a sign-in as a user at a browser."""

    def __init__(self, server: SignInServer, how: str = "browser") -> None:
        self.server, self.how = server, how
        self.asked: list[ServerQuestion] = []
        self.closed = False

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        self.asked.append(question)
        values = {name: found[0] for name, found in parse_qs(urlsplit(question.url).query).items()}
        self.server.challenges["code-1"] = values["code_challenge"]
        good = f"{values['redirect_uri']}?code=code-1&state={quote(values['state'])}"
        try:
            return await self.answer(values, good)
        finally:
            self.closed = True

    async def answer(self, values: dict[str, str], good: str) -> QuestionAnswer:
        match self.how:
            case "cancel":
                return QuestionAnswer("decline")
            case "paste":
                pasted = good if len(self.asked) > 1 else "https://example.com/"
                return QuestionAnswer("accept", {"address": pasted})
            case "browser":
                assert "404" in await get(good.replace("/callback", "/favicon.ico"))
                assert "You are signed in" in await get(good)
            case "other state":
                # Any page in the browser can request the port: neither a code nor a refusal ends the sign-in.
                assert "400" in await get(good.replace("state=", "state=x"))
                assert "400" in await get(f"{values['redirect_uri']}?error=access_denied")
                assert "You are signed in" in await get(good)
            case "paste other state" if len(self.asked) == 1:
                return QuestionAnswer("accept", {"address": good.replace("state=", "state=x")})
            case "paste other state":
                return QuestionAnswer("accept", {"address": good})
            case "refusal":
                await get(f"{values['redirect_uri']}?error=access_denied\u0026state={quote(values['state'])}")
            case _:
                pass
        await asyncio.Event().wait()
        raise AssertionError


AGAIN = {"paste": ["This is not the address of an ans"], "paste other state": ["This address is the answer of ano"]}


def task_state(servers: Running) -> tuple[str, str]:
    return servers.task().state, servers.task().error


async def test_a_sign_in_is_stored_refreshed_and_forgotten(tmp_path: Path) -> None:
    async with sign_in_server() as server:
        person = Person(server)
        configured = ToolServer(url=server.url, startup_timeout=60)
        questions = ServerQuestions(ask=person.ask)
        async with running(configured, questions=questions, tokens=tmp_path / "tokens") as servers:
            assert task_state(servers) == ("failed", "it wants a sign-in (HTTP 401); /mcp login h signs in")
            assert person.asked == [], "nothing is shown by itself"

            assert servers.task().login() == ""
            await until(lambda: servers.task().state == "ready")
            assert (await servers.update()) == ("mcp__h__secret",)
            assert person.closed, "the dialog closes with the answer"
            assert urlsplit(person.asked[0].url).path == "/authorization"
            (file,) = (tmp_path / "tokens").iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
            stored = json.loads(file.read_text())
            token = stored["tokens"]["access_token"]
            assert token not in servers.task().log.text
            assert all(token not in event.model_dump_json() for event in servers.events)

        # The next start uses it; it has expired, so it is refreshed.
        server.valid, server.requests = set(), []
        file.write_text(json.dumps(stored | {"expires_at": 1}))
        async with running(configured, questions=questions, tokens=tmp_path / "tokens") as servers:
            assert task_state(servers) == ("ready", "")
            assert "POST /token refresh_token" in server.requests
            assert len(person.asked) == 1

            assert servers.task().logout() == "The sign-in to h was removed."
            await until(lambda: "wants a sign-in" in servers.task().error)
            assert list((tmp_path / "tokens").iterdir()) == []
            assert servers.task().logout() == "No sign-in to h is stored."

        # Tokens belong to one address.
        async with running(("other", configured), questions=questions, tokens=tmp_path / "tokens") as servers:
            assert servers.task("other").state == "failed"


@table(
    ("how", "problem"),
    [
        ("paste", ""),
        ("cancel", "you cancelled it"),
        ("other state", ""),
        ("paste other state", ""),
        ("refusal", "the server refused it: access_denied"),
        ("silence", "no answer came within"),
        ("no port", "no port on this machine can be opened"),
    ],
)
async def test_each_end_of_a_sign_in_is_clear(
    how: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "silence":
        monkeypatch.setattr(oauth_sign_in, "SIGN_IN_SECONDS", 0.2)
    async with sign_in_server() as server:
        person = Person(server, how)
        configured = ToolServer(url=server.url, startup_timeout=60)
        async with running(configured, questions=ServerQuestions(ask=person.ask), tokens=tmp_path) as servers:
            if how == "no port":

                async def refuse(*_: object, **__: object) -> None:
                    raise OSError(98, "Address already in use")

                monkeypatch.setattr(oauth_sign_in.asyncio, "start_server", refuse)
            servers.task().login()
            await until(lambda: servers.task().state != "connecting" and "HTTP 401" not in servers.task().error)

            if not problem:
                assert servers.task().state == "ready"
                again = [one.message for one in person.asked][1:]
                assert [words[:33] for words in again] == AGAIN.get(how, [])
            else:
                state, error = task_state(servers)
                assert state == "failed"
                assert error.startswith("the sign-in failed: ")
                assert problem in error
                assert list(tmp_path.iterdir()) == []


@table(
    ("flood", "problem"),
    [
        ("whole", protocol_repair.TOO_LONG),
        ("events", protocol_repair.TOO_LONG),
        ("gzip", protocol_repair.ENCODED),
    ],
)
async def test_an_answer_over_http_is_bounded(flood: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_repair, "LONGEST_MESSAGE", 1_000_000)
    async with sign_in_server() as server:
        server.valid, server.flood = {"T"}, flood
        configured = ToolServer(url=server.url, startup_timeout=60, bearer_token_env="T")
        async with running(configured, secrets={"T": "T"}) as servers:
            with pytest.raises(ToolError) as raised:
                await servers.call("secret")
            assert problem in str(raised.value) or problem in servers.task().error
            await until(lambda: problem in servers.task().log.text)


async def test_only_a_server_over_http_without_a_token_is_signed_in_to(tmp_path: Path) -> None:
    token = ToolServer(url="http://127.0.0.1:1/", bearer_token_env="T")
    async with running(token, tokens=tmp_path, secrets={"T": "t"}) as servers:
        assert "needs no sign-in" in servers.task().login()
