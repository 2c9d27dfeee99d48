"""Whatever goes wrong between tui-agent and a model, the user reads one sentence about it, the same on the screen and
with `-p`.

The program's own agent, provider and SDK run against a scripted server.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.table import table
from tests.ui.row_kit import FoldWithLedger
from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.headless.exit_codes import ExitCode, code_of
from tui_agent.headless.reporters import TextReporter
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.providers import AnthropicProvider
from tui_agent.ui.transcript.transcript_layout import Transcript
from tui_agent.ui.transcript.transcript_parts import NotePart

Reply = dict[str, Any]

HERE = "http://HERE"
"""Address of the scripted server in the expected texts."""
SILENCE = 1.0
BEGUN = {"type": "text", "text": "begun"}
FINE: Reply = {"blocks": [{"type": "text", "text": "fine"}]}
TOO_LONG = "prompt is too long: 208310 tokens > 200000 maximum"
BROKE_OFF = "The model's answer broke off"
NOT_THE_API = f"The model's server answered with something that is not the Messages API at {HERE}"
LOST = "; the unfinished answer is discarded"
KEPT = ". The conversation is kept; "


@dataclass(frozen=True)
class Shown:
    """Texts that the user reads about one run."""

    screen: tuple[str, ...]
    """Notes in the conversation."""
    printed: tuple[str, ...]
    """Lines on standard error with `-p`."""
    requests: int
    code: ExitCode


async def shown_after(
    script: Sequence[Reply], base_url: str | None = None, *, attempts: int = 3, silence: float = 60.0
) -> Shown:
    """Return what the user reads about one message that gets these answers."""
    async with ScriptedMessagesServer(script) as server:
        address = base_url or server.base_url
        provider = AnthropicProvider(
            "some-model", auth_token=server.token, base_url=address, silence_timeout=silence, connect_timeout=60.0
        )
        bus = EventBus()
        retry = RetryPolicy(max_attempts=attempts, first_wait=0)
        with bus.subscribe(since=0) as subscription:
            loop = AgentLoop(AgentLoopConfig(provider=provider, bus=bus, retry=retry))
            report = await loop.run("hello")
            events = subscription.drain()
        await provider.aclose()
        requests = len(server.requests)

    def plain(text: str) -> str:
        return text.replace(address, HERE)

    return Shown(
        tuple(plain(text) for text in on_screen(events)),
        tuple(plain(text) for text in printed(events, report)),
        requests,
        code_of(report),
    )


def on_screen(events: Sequence[Envelope]) -> list[str]:
    transcript = Transcript()
    fold = FoldWithLedger(transcript)
    for envelope in events:
        fold.apply(envelope)
    return [part.text for part in transcript.parts if isinstance(part, NotePart)]


def printed(events: Sequence[Envelope], report: AgentRunReport) -> list[str]:
    reporter = TextReporter(terminal=False)
    notes = [reporter.note(envelope) for envelope in events]
    return [note for note in (*notes, reporter.report_note(report, code_of(report))) if note]


def fails(status: int, kind: str, message: str, **headers: str) -> Reply:
    return {"status": status, "error_type": kind, "error_message": message, "headers": headers}


def raw(body: str, **fields: Any) -> Reply:
    return {"raw_body": body, **fields}


def broken(data: str) -> Reply:
    return {"blocks": [BEGUN, {"type": "bytes", "text": data}]}


def refused(reply: Reply, what: str, advice: str) -> tuple[Reply, str]:
    """Return a refusal with its whole text: what happened, status, the server's message, what was kept, advice."""
    return reply, f"{what} ({reply['status']}): {reply['error_message']}{KEPT}{advice}"


ONE_ERROR: dict[str, tuple[Reply, str]] = {
    "400": refused(
        fails(400, "invalid_request_error", "messages.0: bad"),
        "The model's server refused the request as invalid",
        "the same request would be refused again, so change the settings or the conversation.",
    ),
    "401": refused(
        fails(401, "authentication_error", "invalid x-api-key"),
        "The model's server did not accept the key",
        "check the key: ANTHROPIC_API_KEY is sent as x-api-key, ANTHROPIC_AUTH_TOKEN as Authorization: Bearer, and "
        "ANTHROPIC_CUSTOM_HEADERS='NAME: VALUE' adds any other header; for keys that expire, set `key_command`.",
    ),
    "403": refused(
        fails(403, "permission_error", "not yours"),
        "The model's server does not allow this request",
        "use a key that may do this, or another model.",
    ),
    "404": refused(
        fails(404, "not_found_error", "model: foo"),
        f"The model's server does not know this model or address at {HERE}",
        "check the model's name and the base URL.",
    ),
    "429 for an hour": refused(
        fails(429, "rate_limit_error", "Number of requests", **{"retry-after": "3600"}),
        "The model's server asks for fewer requests",
        "try again in 60 min, as the server asks.",
    ),
    "500 that must not be retried": refused(
        fails(500, "api_error", "Internal server error", **{"x-should-retry": "false"}),
        "The model's server failed",
        "the server says that another attempt would fail, too.",
    ),
    "redirect": (
        raw("", status=307, headers={"location": "https://user:pw@other.example/tok/v1/messages?key=secret"}),
        f"The model's server at {HERE} redirects to https://other.example (307); nothing was sent there{KEPT}set "
        "ANTHROPIC_BASE_URL to that server if you trust it.",
    ),
    "redirect without an address": (raw("", status=304), f"{NOT_THE_API} (304){KEPT}check the base URL."),
    "web page": (
        raw("<html>", headers={"content-type": "text/html"}),
        f"{NOT_THE_API}: its content type is text/html, not text/event-stream{KEPT}check the base URL.",
    ),
    "broken JSON": (
        broken("event: message_delta\ndata: {not json\n\n"),
        f"{NOT_THE_API}: an event is not valid JSON{KEPT}check the base URL.",
    ),
    "deep JSON": (
        broken("data: " + "[" * 100_000 + "\n\n"),
        f"{NOT_THE_API}: an event is not valid JSON{KEPT}check the base URL.",
    ),
    "broken UTF-8": (
        broken("data: \xff\xfe\n\n"),
        f"{NOT_THE_API}: an event is not UTF-8 text{KEPT}check the base URL.",
    ),
    "refusal": (
        {"blocks": [BEGUN], "stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "I may not."}},
        f"The model declined to answer: I may not{KEPT}rephrase your request.",
    ),
    "refusal without words": (
        {"stop_reason": "refusal"},
        f"The model declined to answer{KEPT}rephrase your request.",
    ),
}


@table(("reply", "text"), ONE_ERROR.values())
async def test_a_failure_that_no_retry_mends_is_shown_once_in_one_wording(reply: Reply, text: str) -> None:
    seen = await shown_after([reply, reply])

    assert seen.screen == (text,)
    assert seen.printed == (f"error: {text}",)
    assert seen.requests == 1
    assert seen.code in (ExitCode.FAILED, ExitCode.RETRY_LATER)


RETRIED: dict[str, tuple[Reply, str]] = {
    "409": (fails(409, "conflict_error", "busy"), "The model's server failed (409): busy"),
    "429": (
        fails(429, "rate_limit_error", "Number of requests"),
        "The model's server asks for fewer requests (429): Number of requests",
    ),
    "500": (
        fails(500, "api_error", "Internal server error."),
        "The model's server failed (500): Internal server error",
    ),
    "502 with a page": (
        raw("<html>Bad gateway</html>", status=502, headers={"content-type": "text/html"}),
        f"A proxy, firewall or web server answered with a page for {HERE} (502): Bad gateway",
    ),
    "504": (fails(504, "timeout_error", "upstream"), "The model's server did not answer in time (504): upstream"),
    "529": (fails(529, "overloaded_error", "Overloaded"), "The model's server is overloaded (529)"),
    "cut": ({"blocks": [BEGUN], "ending": "cut"}, f"{BROKE_OFF}: the server closed the connection{LOST}"),
    "end without a stop reason": (
        {"blocks": [BEGUN], "ending": "no_message_stop"},
        f"{BROKE_OFF}: it ended before the model had finished{LOST}",
    ),
    "reset": ({"blocks": [BEGUN], "ending": "reset"}, f"{BROKE_OFF}: Connection reset by peer{LOST}"),
    "error inside the answer": (
        {"blocks": [BEGUN], "ending": "error", "error_type": "overloaded_error", "error_message": "Overloaded"},
        f"The model's server is overloaded{LOST}",
    ),
    "silence inside the answer": (
        {"blocks": [BEGUN, {"type": "pause", "until": "never"}]},
        f"{BROKE_OFF}: nothing arrived for 1 s{LOST}",
    ),
    "silence before the answer": (
        {"wait_for": "never"},
        "The model's server did not answer in time: nothing arrived for 1 s",
    ),
}


def in_the_past(note: str) -> str:
    """Return what the screen makes of the note about a retry once the retry has begun."""
    assert "trying again now" in note
    return note.replace("trying again now", "tried again at once")


@table(("reply", "text"), RETRIED.values())
async def test_after_the_last_attempt_the_error_says_what_was_kept_and_what_to_do(reply: Reply, text: str) -> None:
    seen = await shown_after([reply] * 2, attempts=2, silence=SILENCE if "nothing arrived" in text else 60.0)

    note, error = seen.printed
    happened = text.removesuffix(LOST)
    assert note == f"note: {text}; trying again now (attempt 2 of 2)"
    advice = r"(?:try again( later)?|check the network, the proxy and the base URL)\."
    assert re.fullmatch(rf"error: {re.escape(happened + KEPT)}{advice}", error)
    assert seen.screen == (in_the_past(note.removeprefix("note: ")), error.removeprefix("error: "))
    assert (seen.requests, seen.code) == (2, ExitCode.RETRY_LATER)


async def test_a_server_that_does_not_run_is_named_at_once() -> None:
    seen = await shown_after([], "http://127.0.0.1:1")

    advice = "start it there, such as with `llama-server --jinja -m MODEL.gguf --port 1`, then try again."
    text = f"No server answers at {HERE}: Connection refused{KEPT}{advice}"
    assert (seen.screen, seen.printed, seen.code) == ((text,), (f"error: {text}",), ExitCode.FAILED)


WINDOW = "The conversation is longer than the model's context window"
START_ANEW = f"{KEPT}remove its largest messages or start a new one."
FULL: dict[str, tuple[Reply, str]] = {
    "400": (fails(400, "invalid_request_error", TOO_LONG), f"{WINDOW} (400): {TOO_LONG}{START_ANEW}"),
    "413": (
        fails(413, "request_too_large", "too many bytes"),
        f"The request is larger than the model's server takes (413): too many bytes{KEPT}take large files or images "
        "out of it.",
    ),
    "stop reason": (
        {"blocks": [BEGUN], "stop_reason": "model_context_window_exceeded"},
        f"{WINDOW}{START_ANEW}",
    ),
}


@table(("reply", "text"), FULL.values())
async def test_a_conversation_that_is_too_long_and_cannot_be_shortened_is_not_to_be_shortened_by_the_user(
    reply: Reply, text: str
) -> None:
    seen = await shown_after([reply])

    why, error = seen.screen
    assert why.startswith("The conversation could not be shortened: ")
    assert error == text
    assert (seen.printed, seen.requests) == ((f"error: {text}",), 1)


async def test_an_answer_at_the_output_limit_is_reported_once() -> None:
    seen = await shown_after([{"blocks": [BEGUN], "stop_reason": "max_tokens"}])

    text = "The answer was cut off at the model's output limit. The text so far is kept; ask the model to continue."
    assert (seen.screen, seen.printed, seen.code) == ((text,), (f"warning: {text}",), ExitCode.DONE)


async def test_an_empty_answer_is_not_called_the_second_one_before_it_is() -> None:
    first = in_the_past("The model gave an empty answer; trying again now (attempt 2 of 2)")
    second = f"The model gave an empty answer twice{KEPT}send another message."

    assert (await shown_after([{}, FINE])).screen == (first,)
    assert (await shown_after([{}, {}])).screen == (first, second)


async def test_an_empty_answer_says_why_the_model_stopped() -> None:
    limit, lost = {"stop_reason": "max_tokens"}, {"stop_reason": "compute_lost"}
    advice = "raise `max_tokens`, or let it think less with /effort."

    assert (await shown_after([limit, limit])).screen[-1] == (
        f"The model reached its output limit before it said anything{KEPT}{advice}"
    )
    assert (await shown_after([lost, lost])).screen[-1] == (
        f"The model gave an empty answer twice: compute_lost{KEPT}send another message."
    )


async def test_without_a_key_no_server_is_blamed() -> None:
    provider = AnthropicProvider("claude-opus-5-5")
    report = await AgentLoop(AgentLoopConfig(provider=provider)).run("hello")
    await provider.aclose()

    assert report.error == (
        f"No key was found{KEPT}set ANTHROPIC_API_KEY, or try `tui-agent --demo`, which needs none."
    )
