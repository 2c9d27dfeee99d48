"""What an approval is bound to: the tool, its arguments and what they resolve to, in one hash (C43, P52, P53)."""

import hashlib
import json
from collections.abc import Iterable

from tui_agent.protocol.messages import JsonObject


def call_digest(
    tool_name: str, arguments: JsonObject, targets: Iterable[str] = (), schema: JsonObject | None = None
) -> str:
    """A hash that is the same exactly when tool, arguments and resolved targets are.

    Args:
        tool_name: the tool's name.
        arguments: arguments in effect; the order of keys does not count.
        targets: resolved paths the call would touch; their order does not count.
        schema: what the tool takes: another one makes it another tool; None: any tool of that name.

    Returns:
        64 hexadecimal digits.
    """
    bound = [tool_name, arguments, sorted(targets), *([] if schema is None else [schema])]
    canonical = json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
