"""Every failure has the right kind and a clear message without secrets."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.errors import ProviderErrorKind
from tui_agent.protocol.messages import is_object
from tui_agent.providers.provider_failures import ErrorFactory, retry_after_seconds

WRITER = ErrorFactory(("sk-very-secret-1234",), "https://api.example.com")


def body(kind: str = "api_error", message: str = "why", **details: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message, "details": details or None}}


@table(
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


TOO_LONG = """
prompt is too long: 208310 tokens > 200000 maximum
input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000
Input is too long for requested model.
Too many input tokens. Max input tokens: 200000, request input token count: 210000
This model's maximum context length is 8192 tokens
This model's maximum prompt length is 131072 but the request contains 537812 tokens.
Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)
Please reduce the length of the messages or completion.
prompt token count of 135000 exceeds the limit of 128000
Your input exceeds the context window of this model. Please adjust your input and try again.
context_length_exceeded
the request exceeds the available context size
request (41210 tokens) exceeds the available context size (8192 tokens), try increasing it
prompt too long; exceeded max context length by 4120 tokens
The number of tokens to keep from the initial prompt is greater than the context length
Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with 4096 tokens
The decoder prompt (length 9000) is longer than the maximum model length of 8192.
max_tokens must be at least 1, got -1234.
The input (516368 tokens) is longer than the model's context length (262144 tokens).
Prompt contains 40960 tokens and 0 draft tokens, too large for model with 32768 maximum context length
The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).
Unable to submit request because the input token count is 270000 but model only supports up to 131072.
invalid params, context window exceeds limit (2013)
Range of input length should be [1, 98304]
Total tokens of image and text exceed max message tokens
Prompt exceeds max length
Input tokens exceed the configured limit of 272000 tokens.
too many tokens: total number of tokens in the prompt cannot exceed 4081
`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`
Input validation error: `inputs` must have less than 1024 tokens. Given: 5000
Requested token count exceeds the model's maximum context length of 32768 tokens.
Token limit exceeded: 300000
The conversation is too long, please start a new one
Message too large
Your messages do not fit into the model's window
Invalid 'messages[3].content': string too long. Expected a string with maximum length 1048576
Request body too large for this model
Please shorten your prompt.
Prompt 超长
入力が長すぎます
Prompt has 150,000 tokens, but the limit is 131,072
The sum of prompt length (40000.0), query length (0) should not exceed max_num_tokens (32768)
Conversation is over the limit of 200k tokens
input characters limit is 30000
string_above_max_length
Malformed input request: expected maxLength: 400000, actual: 500000, please reformat your input and try again.
no slot has enough space: prompt of 9000 tokens, n_ctx = 8192
KV cache is full
prompt_too_long
INPUT_TOO_LONG
ContentLengthExceeded
The text is too long for the model
The model's context is full
not enough context space for 9000 tokens
the prompt has 10000 tokens but the model only allows 8192
This model supports at most 8192 tokens, but got 9000.
Requested 9000 tokens, only 8192 available
prompt length (9000) + max_tokens (100) > max_seq_len (8192)
Your conversation has grown beyond what this model can handle
""".strip().splitlines()
OTHER_REFUSALS = """
max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens
This model supports at most 16384 completion tokens, whereas you provided 65536.
thinking.budget_tokens: must be less than max_tokens
This request would exceed your organization's rate limit of 30,000 input tokens per minute
You exceeded your current quota, please check your plan and billing details
A maximum of 4 blocks with cache_control may be provided. Found 5.
tools.0.custom.name: String should have at most 64 characters
temperature: range: 0..1
messages.1.content.0: `tool_use` ids were found without `tool_result` blocks
model: some-model is not known
The request exceeded the time limit
Your account's monthly token limit is reached
Concurrent requests exceed the limit for your organization
At least one of the image dimensions exceed max allowed size: 8000 pixels
messages.1.content.1.document: The PDF specified is too large
max_tokens (9000) is too large. The model supports 8192 tokens
max_completion_tokens is over the limit of 8192 tokens
""".strip().splitlines()


def test_a_conversation_that_does_not_fit_has_its_own_kind_in_any_words() -> None:
    kinds = {words: WRITER.of_status(400, body("invalid_request_error", words), {}).kind for words in TOO_LONG}
    others = {words: WRITER.of_status(400, body("invalid_request_error", words), {}).kind for words in OTHER_REFUSALS}

    kinds["a failure of the server"] = WRITER.of_status(500, {"error": "context size exceeded"}, {}).kind
    kinds["only a code"] = WRITER.of_status(400, {"error": {"code": "context_length_exceeded"}}, {}).kind

    assert WRITER.of_status(500, {"error": "the request exceeded a limit"}, {}).kind == "server"
    assert [words for words, kind in kinds.items() if kind != "context_exceeded"] == []
    assert [words for words, kind in others.items() if kind == "context_exceeded"] == []


def test_overload_is_recognised_whatever_its_status_and_words() -> None:
    answers = (
        (503, body("overloaded_error")),
        (429, {"error": {"type": "engine_overloaded_error", "message": "The engine is currently overloaded"}}),
        (503, {"error": {"message": "The model is at capacity"}}),
        (500, {"error": {"message": "Server is busy, please try again later"}}),
        (503, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}}),
    )

    assert {WRITER.of_status(status, answer, {}).kind for status, answer in answers} == {"overloaded"}
    assert WRITER.of_event({"error": {"message": "overloaded"}}, None).kind == "overloaded"
    assert WRITER.of_status(400, {"error": {"message": "operator overloaded"}}, {}).kind == "invalid_request"


def test_a_gateway_that_calls_a_refusal_its_own_failure_is_not_asked_again() -> None:
    words = 'litellm.BadRequestError: {"type":"error","error":{"type":"invalid_request_error","message":"no"}}'

    assert WRITER.of_status(500, {"error": {"message": words}}, {}).kind == "invalid_request"
    assert WRITER.of_status(502, body("invalid_request_error", "no"), {}).kind == "invalid_request"


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
    assert not WRITER.of_status(500, body(), {"x-should-retry": "false"}).retryable, "the server says so itself"


def test_the_message_says_what_happened_what_was_kept_and_what_to_do() -> None:
    assert str(WRITER.of_status(401, body("authentication_error", "invalid x-api-key."), {})) == (
        "The model's server did not accept the key (401): invalid x-api-key. "
        "The conversation is kept; check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN."
    )
    proxy = WRITER.of_status(407, "", {})
    assert (proxy.kind, proxy.retryable) == ("unavailable", False)
    assert "A proxy wants a user name and a password (407)" in str(proxy)
    for words in ("messages.0.content.1: image input is not supported", "unknown block type document"):
        refused = WRITER.of_status(400, body("invalid_request_error", words), {})
        assert "remove them from the conversation with /rewind" in str(refused)
    assert str(WRITER.write("network", "Connection refused")) == (
        "The model's server cannot be reached at https://api.example.com: Connection refused. "
        "The conversation is kept; check the network and the base URL, then try again."
    )


@table(
    ("answer", "quoted"),
    [
        ("plain words", "plain words"),
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


SHAPES: tuple[tuple[object, str], ...] = (
    ({"Message": "Explicit deny"}, "Explicit deny"),
    ({"errors": [{"code": 1, "message": "No route for that URI"}], "success": False}, "No route for that URI"),
    ({"error": {"code": 502, "message": "Provider disconnected"}, "choices": []}, "Provider disconnected"),
    ({"error": {"message": "Provider returned error", "metadata": {"raw": '{"message": "too hot"}'}}}, "too hot"),
    ({"error": "Bad Request", "message": "the model sleeps", "statusCode": 400}, "the model sleeps"),
    ({"Error": {"Code": "X", "Message": "from AWS"}}, "from AWS"),
    ({"detail": [{"loc": ["body"], "msg": "Field required"}]}, "Field required"),
    ({"error": {"type": "request_fail", "upstream_error": {"error": {"message": "deep"}}}}, "deep"),
    ({"fault": {"faultstring": "Invalid API call"}}, "Invalid API call"),
    ({"base_resp": {"status_code": 1, "status_msg": "no balance"}}, "no balance"),
    ([{"error": {"code": 400, "message": "in a list"}}], "in a list"),
    ({"code": 7, "hint": None}, '"code": 7'),
    ('{"message": "JSON as text"}', "JSON as text"),
    ("\ufeff" + '{"message": "after a mark"}', "after a mark"),
    ("<?xml version='1.0'?><Error><Code>A</Code><Message>Access &amp; deny</Message></Error>", "Access & deny"),
)


def test_a_servers_words_are_quoted_whatever_their_shape() -> None:
    lost = [answer for answer, quoted in SHAPES if quoted not in str(WRITER.of_status(403, answer, {}))]
    lost += [one for one, words in SHAPES if is_object(one) and words not in str(WRITER.of_event(one, None))]

    assert lost == []


def test_a_page_of_a_proxy_is_not_taken_for_an_answer_of_the_server() -> None:
    blocked = "<html><title>Attention Required! | Cloudflare</title><body>Sorry, you have been blocked</body></html>"

    refused, failed = WRITER.of_status(403, blocked, {}), WRITER.of_status(502, "<html><h1>Bad Gateway</h1>", {})

    assert str(refused) == (
        "A proxy, firewall or web server answered with a page for https://api.example.com (403): Attention Required! | "
        "Cloudflare. The conversation is kept; check the network, the proxy and the base URL."
    )
    assert failed.retryable
    assert "Bad Gateway" in str(failed)
    untitled = "<html><style>a {}</style><!-- x --><body><p>Your network blocks this site</p></body></html>"
    assert "(403): Your network blocks this site. The" in str(WRITER.of_status(403, untitled, {}))


def test_a_message_is_one_short_line_with_each_fact_once() -> None:
    text = WRITER.redacted("one\n  two\r\n" + "x" * 5000)

    assert text.startswith("one two x")
    assert len(text) < 700
    overloaded = str(WRITER.of_status(529, body("overloaded_error", "Overloaded"), {}))
    assert overloaded.startswith("The model's server is overloaded (529). The conversation")


@table(
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


@pytest.mark.slow
@given(st.integers(100, 599), st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_answer_makes_an_error(status: int, answer: object) -> None:
    assert str(WRITER.of_status(status, answer, {}))
