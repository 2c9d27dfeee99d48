"""Fields that an endpoint refuses are left out for the rest of the session, with one notice."""

from contextlib import aclosing
from typing import Any

from tests.support.fussy_server import FussyServer, has_field
from tests.support.stream_helpers import heard, text_of
from tests.support.table import table
from tui_agent.protocol.messages import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from tui_agent.protocol.provider import ModelInfo, ModelRequest, SystemPart
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.anthropic_provider import EndpointTraits
from tui_agent.providers.refused_fields import DROPPABLE, refused_fields

ALL = frozenset(DROPPABLE)


def api(words: str) -> Any:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}


PYDANTIC = (
    "[{'type': 'extra_forbidden', 'loc': ('body', 'thinking'), 'msg': 'Extra inputs are not permitted', 'input': "
    "{'type': 'adaptive'}}, {'type': 'extra_forbidden', 'loc': ('body', 'output_config'), 'msg': 'Extra inputs are not "
    "permitted', 'input': {'effort': 'low'}}]"
)
FASTAPI = {"type": "extra_forbidden", "loc": ["body", "output_config"], "msg": "Extra inputs", "input": {"thinking": 1}}
STRING = {"type": "string_type", "loc": ["body", "system"], "msg": "Input should be a valid string", "input": []}
ZOD = '[{"code":"unrecognized_keys","keys":["thinking"],"path":[],"message":"Unrecognized key(s) in object"}]'


@table(
    ("body", "fields"),
    [
        (api("thinking: Extra inputs are not permitted"), {"thinking"}),
        (
            api("output_config: Extra inputs are not permitted; thinking: Extra inputs are not permitted"),
            {"thinking", "output_config"},
        ),
        (api("tools.0.cache_control: Extra inputs are not permitted"), {"cache_control"}),
        (api("messages.0.content.0.text.cache_control: Extra inputs are not permitted"), {"cache_control"}),
        (api("This model does not support the effort parameter."), {"output_config"}),
        (api("`temperature` is deprecated for this model."), {"temperature"}),
        (api("adaptive thinking is not supported on this model"), {"thinking"}),
        (api("thinking.type: Input should be 'enabled' or 'disabled'"), {"thinking"}),
        ({"error": '"llama3.2" does not support thinking'}, {"thinking"}),
        (api("json: cannot unmarshal array into Go struct field R.system of type string"), {"system_blocks"}),
        (api('json: unknown field "output_config"'), {"output_config"}),
        (api(PYDANTIC), {"thinking", "output_config"}),
        ({"detail": [FASTAPI]}, {"output_config"}),
        ({"detail": [STRING]}, {"system_blocks"}),
        (api("1 validation error for Request\nthinking\n  Extra inputs are not permitted [type=x]"), {"thinking"}),
        (api("Unrecognized key(s) in object: 'cache_control'"), {"cache_control"}),
        (api(ZOD), {"thinking"}),
        (api("litellm.UnsupportedParamsError: ollama does not support parameters: ['thinking']"), {"thinking"}),
        (api('anthropic-version: "2026-10-21" is not a valid version'), {"anthropic-version"}),
        (api("messages.2.content.0.tool_result.is_error: Extra inputs are not permitted"), {"is_error"}),
        # Errors about something else:
        (api("`max_tokens` must be greater than `thinking.budget_tokens`"), set()),
        (api("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"), set()),
        (api("messages.1.content.0: Invalid `signature` in `thinking` block"), set()),
        (api("messages.1.content.0: Input tag 'thinking' does not match any of the expected tags"), set()),
        (api("messages.0: all messages must have non-empty content"), set()),
        (api('"gemma" does not support tools'), set()),
        (api("system: text content blocks must be non-empty"), set()),
        ("a page about thinking", set()),
        (None, set()),
    ],
)
def test_the_words_of_known_servers_are_understood(body: Any, fields: set[str]) -> None:
    assert refused_fields(body, ALL) == fields


def test_fields_and_betas_of_the_user_are_found_in_any_words() -> None:
    sent, betas = frozenset({"context_management", "anthropic-beta", "thinking"}), ("new-2026-01-01",)
    words = {
        "context_management": (
            "Unknown parameter: 'context_management'.",
            "Unrecognized request argument supplied: context_management",
            "Additional properties are not allowed ('context_management' was unexpected)",
            'Invalid JSON payload received. Unknown name "context_management": Cannot find field.',
            "property context_management should not exist",
            "Invalid parameter: context_management",
            "'context_management' is not a valid parameter",
            "extraneous key [context_management] is not permitted",
        ),
        "anthropic-beta": (
            "invalid beta flag",
            "Unknown beta: new-2026-01-01",
            "The anthropic-beta header is not supported",
            "Unexpected value(s) `new-2026-01-01` for the `anthropic-beta` header.",
        ),
    }
    found = {text: refused_fields(api(text), sent, betas) for texts in words.values() for text in texts}

    assert found == {text: {name} for name, texts in words.items() for text in texts}


WORDS: dict[str, Any] = {
    "thinking": {"error": '"qwen3" does not support thinking'},
    "output_config": api('json: unknown field "output_config"'),
    "cache_lifetime": "tools.0.cache_control.ephemeral.ttl: Extra inputs are not permitted",
    "cache_control": {"detail": [{"type": "extra_forbidden", "loc": ["body", "cache_control"], "msg": "Extra inputs"}]},
    "temperature": "Unsupported parameter: 'temperature' is not supported with this model.",
    "system_blocks": {"object": "error", "message": "system: Input should be a valid string", "code": 400},
    "is_error": "messages.2.content.0.is_error: Extra inputs are not permitted",
    "anthropic-version": 'anthropic-version: "2026-10-21" is not a valid version',
    "anthropic-beta": "Unexpected value(s) `new-2026-01-01` for the header",
    "context_management": "context_management: Extra inputs are not permitted",
}
REQUEST = ModelRequest(
    (
        user_message("look"),
        AssistantMessage(
            content=(
                ThinkingBlock(thinking="hm", signature="c2ln"),
                TextBlock(text="I look."),
                ToolCall(id="c", name="x"),
            )
        ),
        ToolResultMessage(call_id="c", tool_name="x", content=(TextBlock(text="no"),), is_error=True),
    ),
    system=(SystemPart("Be brief."), SystemPart("Today.", stable=False)),
    temperature=1.0,
    thinking_tokens=8_192,
)


def provider_for(server: FussyServer, notices: list[str]) -> AnthropicProvider:
    info = ModelInfo("box/qwen3", thinking="adaptive")
    provider = AnthropicProvider(
        "qwen3",
        base_url=server.base_url,
        endpoint=EndpointTraits(info),
        betas=["new-2026-01-01"],
        cache="1h",
        extra_body={"context_management": {"edits": []}},
    )
    provider.on_notice = provider.on_warning = notices.append
    return provider


@table("name", [*sorted(WORDS), "all"])
async def test_a_refused_field_is_left_out_from_then_on(name: str) -> None:
    notices: list[str] = []
    refusals = WORDS if name == "all" else {name: WORDS[name]}
    async with FussyServer(refusals=refusals) as server, aclosing(provider_for(server, notices)) as provider:
        first, problem = await heard(provider.stream(REQUEST))
        second, _ = await heard(provider.stream(REQUEST))

    assert problem is None
    assert text_of(first) == text_of(second) == "Hello."
    assert server.refused == len(refusals), "each field is refused once, and never sent again"
    assert len(notices) == 1
    last = server.bodies[-1]
    gone = {*refusals, *({"cache_lifetime"} if name == "cache_control" else ())}
    assert {one for one in WORDS if has_field(last, server.headers[-1], one)} == set(WORDS) - gone
    assert "Be brief." in str(last["system"])
    assert "Today." in str(last["system"])


async def test_all_fields_at_once_are_left_out_after_one_refusal() -> None:
    notices: list[str] = []
    words = {name: f"{name}: Extra inputs are not permitted" for name in ("thinking", "output_config", "temperature")}
    async with (
        FussyServer(refusals=words, at_once=True, status=422) as server,
        aclosing(provider_for(server, notices)) as provider,
    ):
        facts, problem = await heard(provider.stream(REQUEST))

    assert (text_of(facts), problem, server.refused) == ("Hello.", None, 1)
    assert notices == [
        "The endpoint of box/qwen3 refuses `output_config`, `temperature`, `thinking`. Requests do without for the "
        "rest of this session."
    ]


async def test_an_unknown_refusal_stays_an_error_and_changes_nothing() -> None:
    notices: list[str] = []
    words = {"thinking": WORDS["thinking"], "messages": "messages.0: the moon is full"}
    async with FussyServer(refusals=words) as server, aclosing(provider_for(server, notices)) as provider:
        _, problem = await heard(provider.stream(REQUEST))
        server.refusals = {}
        await heard(provider.stream(REQUEST))

    assert problem is not None
    assert problem.kind == "invalid_request"
    assert "the moon is full" in str(problem)
    assert notices == []
    assert "thinking" in server.bodies[-1], "what did not help is undone"


async def test_tokens_are_counted_where_the_endpoint_does() -> None:
    async with FussyServer(counts_tokens=True) as server, aclosing(provider_for(server, [])) as provider:
        assert (await provider.count_tokens(REQUEST) or 0) > 50
        assert "max_tokens" not in server.bodies[-1]
        assert "stream" not in server.bodies[-1]
        server.counts_tokens = False
        assert await provider.count_tokens(REQUEST) is None
        assert await provider.count_tokens(REQUEST) is None
        assert len(server.bodies) == 2, "an endpoint that does not count is not asked again"
