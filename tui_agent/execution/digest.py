"""Digest of a call: one hash of the tool, its arguments and the paths they resolve to, which an approval covers."""

import hashlib
import json
from collections.abc import Iterable

from tui_agent.protocol.messages import JsonObject


def call_digest(
    tool_name: str,
    arguments: JsonObject,
    targets: Iterable[str] = (),
    schema: JsonObject | None = None,
    confinement: str = "",
) -> str:
    """Return a hash that is the same exactly if tool, arguments, resolved targets and sandbox are the same.

    Args:
        tool_name: the tool's name.
        arguments: arguments in effect; the order of keys does not matter.
        targets: resolved paths that the call would touch; their order does not matter.
        schema: input schema of the tool, which counts as another tool if it changes; None: any tool of that name.
        confinement: limits of the sandbox that the call runs in; empty outside it.

    Returns:
        64 hexadecimal digits.
    """
    bound = [tool_name, arguments, sorted(targets), *([] if schema is None else [schema])]
    bound += [confinement] if confinement else []
    canonical = json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
