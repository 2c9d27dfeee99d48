"""Plugins that are new or have changed since the last start: they are announced, because pip shows nothing here."""

import json
from collections.abc import Sequence

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.private_directory import make_private_directories
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.settings import Locations
from tui_agent.tools.atomic_write import write_atomically

from .plugin_entries import Plugin, PluginEntry

_LARGEST_FILE = 1 << 20


def plugin_news(plugins: Sequence[Plugin], locations: Locations) -> str:
    """Return a sentence about plugins in use that are new or have changed; empty if none has. Blocks.

    What was announced is kept in `plugins.json`. If that cannot be written, it is announced again.
    """
    path = locations.state_dir / "plugins.json"
    used = [plugin.entry for plugin in plugins if plugin.is_used]
    now: JsonObject = {_key(entry): entry.fingerprint for entry in used}
    before = _read(str(path))
    if now == before:
        return ""
    new = [entry for entry in used if before.get(_key(entry)) != entry.fingerprint]
    try:
        make_private_directories(path.parent)
        write_atomically(path, json.dumps(now, indent=1).encode("utf-8"))
    except OSError:
        pass  # The notice comes again at the next start.
    if not new:
        return ""
    names = ", ".join(entry.shown for entry in new)
    return f"Plugins that are new or have changed since the last start: {names}. `plugins.disabled` turns them off."


def _key(entry: PluginEntry) -> str:
    return f"{entry.distribution}:{entry.kind}:{entry.name}"


def _read(path: str) -> JsonObject:
    try:
        entries: object = json.loads(read_regular_file(path, _LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if is_object(entries) else {}
