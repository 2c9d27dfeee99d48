"""What the command palette offers: the commands of the one table, the themes, the permission modes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.commands import COMMANDS
from tui_agent.ui.chat.chat_screen import ChatScreen


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One line of the palette."""

    text: str
    help: str
    run: Callable[[], object]


class CommandProvider(Provider):
    """Everything that can be asked for by name."""

    async def search(self, query: str) -> Hits:
        """The offers that fit what was typed."""
        matcher = self.matcher(query)
        for offer in self._offers():
            score = matcher.match(offer.text)
            if score > 0:
                yield Hit(score, matcher.highlight(offer.text), offer.run, text=offer.text, help=offer.help)

    async def discover(self) -> Hits:
        """All offers, before anything was typed."""
        for offer in self._offers():
            yield DiscoveryHit(offer.text, offer.run, text=offer.text, help=offer.help)

    def _offers(self) -> Iterator[PaletteEntry]:
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
    PermissionMode.ASK: "Ask before whatever no rule decides",
    PermissionMode.ACCEPT_EDITS: "Edit files in the workspace without a question; ask before the rest",
    PermissionMode.PLAN: "Change nothing at all",
    PermissionMode.ALLOW: "Run everything without a question but what a rule denies",
    PermissionMode.DENY: "Refuse whatever no rule allows",
}
