"""Entries of the command palette: commands, themes and permission modes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.commands import COMMANDS
from tui_agent.ui.chat.chat_screen import ChatScreen


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One entry of the palette."""

    text: str
    help: str
    run: Callable[[], object]


class CommandProvider(Provider):
    """Provides the entries of the palette."""

    async def search(self, query: str) -> Hits:
        """Yield the entries that match the query."""
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.text)
            if score > 0:
                yield Hit(score, matcher.highlight(entry.text), entry.run, text=entry.text, help=entry.help)

    async def discover(self) -> Hits:
        """Yield all entries, before the user has typed."""
        for entry in self._entries():
            yield DiscoveryHit(entry.text, entry.run, text=entry.text, help=entry.help)

    def _entries(self) -> Iterator[PaletteEntry]:
        chat = self.screen
        if not isinstance(chat, ChatScreen):
            return
        for command in COMMANDS:
            if command.palette:
                key = f" ({command.key_text})" if command.keys else ""
                yield PaletteEntry(
                    f"{command.text}{key}", command.help, lambda entry=command: chat.commands.perform(entry)
                )
        for mode in PermissionMode:
            name = mode.value.replace("_", " ")
            yield PaletteEntry(f"mode: {name}", _MODE_HELP[mode], lambda chosen=mode: chat.commands.choose_mode(chosen))
        for name in chat.theme_names:
            yield PaletteEntry(f"theme: {name}", "Change the colours", lambda chosen=name: chat.choose_theme(chosen))


_MODE_HELP = {
    PermissionMode.ASK: "Ask before calls that no rule matches",
    PermissionMode.ACCEPT_EDITS: "Edit files in the workspace without asking; ask before other calls",
    PermissionMode.PLAN: "Change nothing",
    PermissionMode.ALLOW: "Run everything without asking, except calls that a rule denies",
    PermissionMode.DENY: "Deny calls that no rule allows",
}
