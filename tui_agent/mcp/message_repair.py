"""Messages of servers that are not quite JSON-RPC: a call would wait in vain for an answer that is thrown away."""

import json

import mcp_types as types

from tui_agent.protocol.messages import JsonObject, is_object


def message_of(line: bytes) -> types.JSONRPCMessage | None:
    """Return the message of a line, repaired if need be; None if the line is none.

    Repaired are texts that are not UTF-8, half characters, bare control characters, a missing version, and errors and
    results of another type.
    """
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        value: object = json.loads(line.decode("utf-8-sig", "replace"), strict=False)
        # Half a character can be written in JSON, but not sent on.
        whole: object = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if not is_object(whole) or whole.keys().isdisjoint(("id", "method")):
            return None
        return types.jsonrpc_message_adapter.validate_python(_plain(whole), by_name=False)
    except (ValueError, RecursionError):
        return None


def _plain(message: JsonObject) -> JsonObject:
    plain: JsonObject = {**message, "jsonrpc": "2.0"}
    if isinstance(key := plain.get("id"), float) and key.is_integer():
        plain["id"] = int(key)
    if "method" in plain:
        if not is_object(plain.get("params")):
            plain.pop("params", None)
    elif (error := plain.get("error")) is not None:
        plain.pop("result", None)
        plain["error"] = _plain_error(error)
    elif not is_object(result := plain.get("result")):
        plain["result"] = {} if result is None else {"content": result}
    return plain


def _plain_error(error: object) -> JsonObject:
    fields = error if is_object(error) else {"message": error}
    code, words = fields.get("code"), fields.get("message")
    text = words if isinstance(words, str) else json.dumps(error, ensure_ascii=False)
    return {"data": fields.get("data"), "code": code if type(code) is int else types.INTERNAL_ERROR, "message": text}
