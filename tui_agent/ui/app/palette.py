"""Entries of the command palette: commands, permission modes and themes."""

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
    """Every command, mode and theme."""

    async def search(self, query: str) -> Hits:
        """Yield the entries that match the query."""
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.text)
            if score > 0:
                yield Hit(score, matcher.highlight(entry.text), entry.run, text=entry.text, help=entry.help)

    async def discover(self) -> Hits:
        """Yield all entries while the query is empty."""
        for entry in self._entries():
            yield DiscoveryHit(entry.text, entry.run, text=entry.text, help=entry.help)

    def _entries(self) -> Iterator[PaletteEntry]:
        chat = self.screen
        if not isinstance(chat, ChatScreen):
            return
        commands = chat.input.commands
        for command in COMMANDS:
            if command.palette:
                key = f" ({command.key_text})" if command.keys else ""
                yield PaletteEntry(f"{command.text}{key}", command.help, lambda entry=command: commands.perform(entry))
        for mode in PermissionMode:
            words = mode.value.replace("_", " ")
            yield PaletteEntry(f"mode: {words}", _MODE_HELP[mode], lambda chosen=mode: commands.choose_mode(chosen))
        for name in commands.theme_names:
            yield PaletteEntry(
                f"theme: {name}", "Change the colours", lambda chosen=name: commands.choose_theme(chosen)
            )


_MODE_HELP = {
    PermissionMode.ASK: "Ask before every call that no rule decides",
    PermissionMode.ACCEPT_EDITS: "Edit files in the workspace without asking; ask before other calls",
    PermissionMode.PLAN: "Read only; change nothing",
    PermissionMode.ALLOW: "Run every call that no rule denies, without asking",
    PermissionMode.DENY: "Deny every call that no rule allows",
}
