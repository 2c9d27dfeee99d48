"""Entries of the command palette, one line each: commands, permission modes and themes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.commands import all_commands
from tui_agent.ui.chat.actions.command_actions import CommandActions
from tui_agent.ui.text.sanitiser import clip

_FIRST = ("chat.search", "chat.toggle_panel", "chat.rewind", "chat.cycle_mode", "chat.help")
"""Ids of the commands used most, in the order of the palette; the others follow."""
_LAST = "app.quit"
"""Id of the last entry, so that no key pressed too often quits."""
_MARGIN = 6
"""Cells of a row beside its text: padding and scrollbar."""
_NAME_WIDTH = 20


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One entry of the palette."""

    text: str
    help: str
    run: Callable[[], object]
    key: str = ""

    def row(self, width: int) -> Text:
        """Return the entry in one row of `width` cells: name, help, and at the right its key."""
        name = f"{clip(self.text, _NAME_WIDTH - 2):<{_NAME_WIDTH}}"
        room = max(0, width - _NAME_WIDTH - len(self.key) - 2)
        return Text.assemble(name, (f"{clip(self.help, room):<{room}}  {self.key}", "not bold"))


class CommandProvider(Provider):
    """Every command, mode and theme; the commands used most come first."""

    async def search(self, query: str) -> Hits:
        """Yield the entries that match the query."""
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.text)
            if score > 0:
                yield Hit(score, entry.row(self._width), entry.run, text=entry.text)

    async def discover(self) -> Hits:
        """Yield all entries while the query is empty."""
        for entry in self._entries():
            yield DiscoveryHit(entry.row(self._width), entry.run, text=entry.text)

    @property
    def _width(self) -> int:
        return self.screen.size.width - _MARGIN

    def _entries(self) -> Iterator[PaletteEntry]:
        found: object = getattr(self.screen, "commands", None)
        if not isinstance(found, CommandActions):
            return
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.item_page import MODES

        commands = found
        settings = commands.settings
        in_order = {command.id: command for command in all_commands() if command.palette}
        last = in_order.pop(_LAST)
        first = [in_order.pop(name) for name in _FIRST]
        entries = [
            PaletteEntry(command.text, command.help, lambda entry=command: commands.choose(entry), command.key_text)
            for command in (*first, *in_order.values(), last)
        ]
        yield from entries[:-1]
        for own in (entry for entry in commands.own if " " not in entry.slash):
            yield PaletteEntry(f"/{own.slash}", own.help, lambda name=own.slash: commands.begin(name))
        for mode in PermissionMode:
            words = mode.value.replace("_", " ")
            yield PaletteEntry(f"mode: {words}", MODES[mode], lambda chosen=mode: settings.choose_mode(chosen))
        for name in settings.theme_names:
            yield PaletteEntry(
                f"theme: {name}", "Change the colours", lambda chosen=name: settings.choose_theme(chosen)
            )
        yield entries[-1]
