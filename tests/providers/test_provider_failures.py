"""Every failure has the right kind and a clear message without secrets."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.protocol.errors import ProviderErrorKind
from tui_agent.protocol.secret_mask import HIDDEN
from tui_agent.providers.provider_failures import ErrorFactory, retry_after_seconds

WRITER = ErrorFactory(("sk-very-secret-1234",), "https://api.example.com")


def body(kind: str = "api_error", message: str = "why", **details: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message, "details": details or None}}


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (301, "bad_response", False),
        (400, "invalid_request", False),
        (401, "authentication", False),
        (402, "permission", False),
        (403, "permission", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "server", True),
        (413, "too_large", False),
        (418, "invalid_request", False),
        (422, "invalid_request", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (502, "server", True),
        (503, "server", True),
        (504, "timeout", True),
        (529, "overloaded", True),
        (599, "server", True),
    ],
)
def test_a_status_has_a_kind_that_says_if_a_retry_may_help(
    status: int, kind: ProviderErrorKind, retryable: bool
) -> None:
    error = WRITER.of_status(status, body(), {})

    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 208310 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
        "This model's maximum context length is 8192 tokens",
        "the request exceeds the available context size",
    ],
)
def test_a_conversation_that_does_not_fit_has_its_own_kind(words: str) -> None:
    error = WRITER.of_status(400, body("invalid_request_error", words), {})

    assert error.kind == "context_exceeded"
    assert "remove its largest messages" in str(error)


@pytest.mark.parametrize("words", ["messages.0.content.1: image input is not supported", "unknown block type document"])
def test_a_model_that_takes_no_images_or_documents_is_named_as_the_cause(words: str) -> None:
    error = WRITER.of_status(400, body("invalid_request_error", words), {})

    assert "remove them from the conversation with /rewind" in str(error)


def test_overload_is_recognised_whatever_its_status() -> None:
    assert WRITER.of_status(503, body("overloaded_error"), {}).kind == "overloaded"


@pytest.mark.parametrize(
    "answer",
    [
        body("rate_limit_error", "limit", error_code="contract_spend_limit_reached"),
        body("invalid_request_error", "Your credit balance is too low to access the API"),
    ],
)
def test_a_spent_budget_is_not_retried(answer: dict[str, object]) -> None:
    status = 429 if "rate_limit" in str(answer) else 400

    assert not WRITER.of_status(status, answer, {"retry-after": "1"}).retryable


def test_do_not_retry_of_the_server_is_respected() -> None:
    assert not WRITER.of_status(500, body(), {"x-should-retry": "false"}).retryable


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limit"),
        ("api_error", "server"),
        ("invalid_request_error", "invalid_request"),
        ("authentication_error", "authentication"),
        ("permission_error", "permission"),
        ("not_found_error", "not_found"),
        ("request_too_large", "too_large"),
        ("timeout_error", "timeout"),
        ("billing_error", "permission"),
        ("something_new", "server"),
    ],
)
def test_an_error_event_has_the_kind_of_its_type(kind: str, expected: ProviderErrorKind) -> None:
    error = WRITER.of_event(body(kind), "req_9")

    assert (error.kind, error.status, error.request_id) == (expected, 200, "req_9")


def test_the_message_says_what_happened_what_was_kept_and_what_to_do() -> None:
    assert str(WRITER.of_status(401, body("authentication_error", "invalid x-api-key."), {})) == (
        "The model's server did not accept the key (401): invalid x-api-key. "
        "The conversation is kept; check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN."
    )
    assert str(WRITER.write("network", "Connection refused")) == (
        "The model's server cannot be reached at https://api.example.com: Connection refused. "
        "The conversation is kept; check the network and the base URL, then try again."
    )


@pytest.mark.parametrize(
    ("answer", "quoted"),
    [
        ("plain words", "plain words"),
        ("<html><h1>502</h1></html>", None),
        ({"error": "just text"}, "just text"),
        ({"detail": "from a proxy"}, "from a proxy"),
        (None, None),
        ([1, 2], None),
        ({"error": {"message": None}}, None),
    ],
)
def test_bodies_of_other_servers_are_understood(answer: object, quoted: str | None) -> None:
    text = str(WRITER.of_status(502, answer, {}))

    assert text.startswith("The model's server failed (502)")
    assert quoted is None or quoted in text
    assert "<" not in text


@pytest.mark.parametrize(
    "leak",
    [
        "invalid key sk-very-secret-1234 given",
        "Illegal header value b'Bearer sk-very-secret-1234'",
        "key sk-ant-api03-AbCdEf_123-456 is revoked",
        "Authorization: Bearer eyJhbGciOi.xyz",
    ],
)
def test_secrets_in_a_servers_message_are_hidden(leak: str) -> None:
    text = str(WRITER.of_status(401, body("authentication_error", leak), {}))

    assert HIDDEN in text
    assert not any(secret in text for secret in ("very-secret", "AbCdEf", "eyJhbG"))


def test_long_messages_are_cut_and_lines_joined() -> None:
    text = WRITER.redacted("one\n  two\r\n" + "x" * 5000)

    assert text.startswith("one two x")
    assert len(text) < 700


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1.2.3"}, None),
        ({"retry-after-ms": "x"}, None),
        ({"retry-after": formatdate(0, usegmt=True)}, 0.0),
    ],
)
def test_how_long_to_wait_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


def test_a_date_to_wait_for_lies_ahead() -> None:
    waiting = retry_after_seconds({"retry-after": "Fri, 31 Dec 2399 23:59:59 GMT"})

    assert waiting is not None
    assert waiting > 1e9


@pytest.mark.slow
@given(st.integers(100, 599), st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_answer_makes_an_error(status: int, answer: object) -> None:
    assert str(WRITER.of_status(status, answer, {}))
