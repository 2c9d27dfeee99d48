"""A strict reader of every request: the faults for which the Messages API refuses a client's request."""

import json
import re
from typing import Any

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_FIELDS = {
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "thinking",
    "output_config",
    "metadata",
    "stop_sequences",
    "cache_control",
}
_MAX_BREAKPOINTS = 4


def read_body(raw: bytes) -> Any:
    """Return the request as JSON.

    Raises:
        ValueError: it is not UTF-8, not JSON, or contains a constant that JSON does not define.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(raw.decode("utf-8"), parse_constant=refuse)


def problems_of(body: Any, *, resuming: bool = False) -> list[str]:
    """Return everything the API would refuse; empty for a valid request.

    Args:
        resuming: True if the previous answer was a `pause_turn`, so the conversation may end with the assistant.
    """
    if not isinstance(body, dict):
        return ["the body must be an object"]
    found = [f"{name}: Extra inputs are not permitted" for name in body if name not in _FIELDS]
    if not isinstance(body.get("model"), str) or not body["model"]:
        found.append("model: must be a non-empty string")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        found.append("max_tokens: must be a positive integer")
    found += _system_problems(body.get("system"))
    found += _tool_problems(body.get("tools"))
    found += _thinking_problems(body)
    found += _message_problems(body.get("messages"), resuming)
    marks = json.dumps([body.get("system"), body.get("tools"), body.get("messages")]).count('"cache_control"')
    if marks > _MAX_BREAKPOINTS:
        found.append(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    return found


def _system_problems(system: Any) -> list[str]:
    if system is None or (isinstance(system, str) and system):
        return []
    if not isinstance(system, list) or not system:
        return ["system: must be a non-empty list of text blocks"]
    return [problem for place, block in enumerate(system) for problem in _text_problems(f"system.{place}", block)]


def _tool_problems(tools: Any) -> list[str]:
    if tools is None:
        return []
    if not isinstance(tools, list) or not tools:
        return ["tools: must be a non-empty list where it is given"]
    found: list[str] = []
    names = [tool.get("name") for tool in tools]
    for place, tool in enumerate(tools):
        if not isinstance(tool.get("name"), str) or not _NAME.match(tool["name"]):
            found.append(f"tools.{place}.name: String should match pattern")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            found.append(f"tools.{place}.input_schema.type: Field required")
    if len(set(names)) != len(names):
        found.append("tools: Tool names must be unique.")
    return found


def _thinking_problems(body: dict[str, Any]) -> list[str]:
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return []
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:
        return ["thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"]
    if isinstance(body.get("max_tokens"), int) and budget >= body["max_tokens"]:
        return ["`max_tokens` must be greater than `thinking.budget_tokens`"]
    return []


def _message_problems(messages: Any, resuming: bool) -> list[str]:
    if not isinstance(messages, list) or not messages:
        return ["messages: at least one message is required"]
    found: list[str] = []
    if messages[0].get("role") != "user":
        found.append("messages.0: first message must use the user role")
    if messages[-1].get("role") != "user" and not resuming:
        found.append("This model does not support assistant message prefill.")
    seen: set[str] = set()
    open_calls: list[str] = []
    role_before = ""
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        role, blocks = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            found.append(f"{where}.role: must be user or assistant")
        if role == role_before:
            found.append(f"{where}: roles must alternate")
        role_before = role
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not isinstance(blocks, list) or not blocks:
            found.append(f"{where}.content: must not be empty")
            blocks = []
        for number, block in enumerate(blocks):
            found += _block_problems(f"{where}.content.{number}", role, block)
        found += _answer_problems(where, blocks, open_calls)
        open_calls = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        found += [f"{where}: `tool_use` ids must be unique" for call in open_calls if call in seen]
        seen.update(open_calls)
    if open_calls and not resuming:
        found.append(f"`tool_use` ids were found without `tool_result` blocks immediately after: {open_calls}")
    return found


def _answer_problems(where: str, blocks: list[Any], open_calls: list[str]) -> list[str]:
    """Return faults unless the message answers every call of the previous one exactly once, first, and nothing else."""
    kinds = [block.get("type") for block in blocks]
    answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    found: list[str] = []
    if sorted(answered, key=str) != sorted(open_calls, key=str):
        found.append(f"{where}: tool_result blocks {answered} do not answer the tool_use blocks {open_calls} once each")
    if answered and kinds[: len(answered)] != ["tool_result"] * len(answered):
        found.append(f"{where}: tool_result blocks must come first")
    return found


def _block_problems(where: str, role: str, block: Any) -> list[str]:
    match block.get("type"):
        case "text":
            return _text_problems(where, block)
        case "image" if role == "user":
            source = block.get("source", {})
            good = source.get("type") == "base64" and source.get("media_type") and source.get("data")
            return [] if good else [f"{where}.source: must hold base64 data and its media type"]
        case "tool_result" if role == "user":
            return _result_problems(where, block)
        case "tool_use" if role == "assistant":
            return _call_problems(where, block)
        case "thinking" if role == "assistant":
            good = block.get("signature") and isinstance(block.get("thinking"), str) and "cache_control" not in block
            return [] if good else [f"{where}: a thinking block needs its signature and takes no cache_control"]
        case "redacted_thinking" if role == "assistant":
            return [] if block.get("data") else [f"{where}.data: Field required"]
        case other:
            return [f"{where}: Input tag {other!r} is not allowed for role {role!r}"]


def _text_problems(where: str, block: Any) -> list[str]:
    if block.get("type") != "text" or not isinstance(block.get("text"), str) or not block["text"].strip():
        return [f"{where}: text content blocks must contain non-whitespace text"]
    return []


def _call_problems(where: str, block: Any) -> list[str]:
    found: list[str] = []
    if not isinstance(block.get("id"), str) or not _ID.match(block["id"]):
        found.append(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block.get("name"), str) or not _NAME.match(block["name"]):
        found.append(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block.get("input"), dict):
        found.append(f"{where}.tool_use.input: Input should be a valid dictionary")
    return found


def _result_problems(where: str, block: Any) -> list[str]:
    found: list[str] = []
    if not isinstance(block.get("is_error", False), bool):
        found.append(f"{where}.is_error: must be a boolean")
    content = block.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        return [*found, f"{where}.content: must not be empty"]
    for number, inner in enumerate(content):
        if inner.get("type") not in ("text", "image"):
            found.append(f"{where}.content.{number}: only text and images may be in a result")
        else:
            found += _block_problems(f"{where}.content.{number}", "user", inner)
    return found
