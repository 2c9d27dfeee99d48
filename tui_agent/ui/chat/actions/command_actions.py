"""Runs `/` commands, entries of the command palette, and requests of the list of calls; lists the palette's entries."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.ui.base.choice_texts import MODES, theme_texts
from tui_agent.ui.base.command_type import PAGE_OPENERS, Command
from tui_agent.ui.base.commands import all_commands
from tui_agent.ui.base.commands import command as command_named
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.composer.prompt_parser import SlashCall, UnknownSlash
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.text.sanitiser import clip

from .action_context import ActionContext, Handlers
from .background_actions import FactActions, JobActions
from .page_actions import PageActions
from .session_actions import SessionActions
from .setting_actions import SettingActions


class CommandActions:
    """Runs commands by their id. A command without an action here runs the Textual action of its key."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        self.settings = SettingActions(context, state)
        """Mode, theme and model."""
        self.session = SessionActions(context, state)
        """Name, files, past and runs of the session."""
        self.pages = PageActions(context, state, self.offers)
        """Pages and facts."""
        self.jobs = JobActions(context, state)
        """Calls and background commands."""
        self.say = context.say
        """Shows a short message for a few seconds."""
        self._context = context
        self._handlers: Handlers = {
            **self.settings.handlers,
            **self.session.handlers,
            **self.pages.handlers,
            **self.jobs.handlers,
            **FactActions(context).handlers,
        }

    def run(self, typed: SlashCall | UnknownSlash) -> bool:
        """Run a typed command; return False if it does not exist, or its argument is missing or unknown."""
        if isinstance(typed, SlashCall):
            return self.perform(typed.command, typed.argument)
        if typed.exists:
            text = f"/{typed.name} is a command, and takes no such text. \\/{typed.name} sends all of it."
            self.say(text, wrong=True)
            return False
        near = f" Did you mean /{typed.nearest}?" if typed.nearest else " /help lists them all."
        self.say(f"There is no command /{typed.name}.{near} \\/{typed.name} sends the text.", wrong=True)
        return False

    def change_call(self, event: CallList.ChangeRequested) -> None:
        """Do with a call what the list of calls asks for."""
        if event.change == "revert":
            self._tried(partial(self.session.rewind, event.view))
        elif reason := self._context.bridge.refusal("call"):
            self.say(reason, wrong=True)
        elif event.change == "cancel":
            self.jobs.cancel_call(event.view.call_id)
        else:
            self.jobs.extend_call(event.view)

    def perform(self, command: Command, argument: str = "") -> bool:
        """Run one command; return False if its argument is missing or unknown."""
        if reason := self._context.bridge.refusal(command.id):
            # The text is right and only of no use here, so it does not stay in the composer.
            self.say(reason, wrong=True)
            return True
        if (handler := self._handlers.get(command.id)) is not None:
            return self._tried(partial(handler, argument))
        screen = self._context.screen
        run = screen.app.run_action if command.where == "app" else screen.run_action
        screen.call_later(run, command.action_name)
        return True

    def _tried(self, do: Callable[[], object]) -> bool:
        """Do something; say what it refuses, and return False."""
        try:
            return do() is not False
        except TuiAgentError as error:
            self.say(str(error), wrong=True)
            return False

    def choose(self, command: Command) -> None:
        """Run a command of the palette; one that takes a name begins in the empty composer."""
        composer = self._context.composer
        # A draft must not be lost to a command that only begins.
        if command.slash and command.argument.strip("[]") in ("NAME", "FILE") and not composer.text:
            composer.put_back(f"/{command.slash} ")
            composer.focus()
        else:
            self.perform(command)

    def begin(self, name: str) -> None:
        """Begin a command of a file in the composer, unless there is a draft."""
        composer = self._context.composer
        if composer.text:
            self.say(f"Send or clear your draft, then type /{name}.")
        else:
            composer.put_back(f"/{name} ")
            composer.focus()

    def offers(self, command: Command) -> bool:
        """Return False if a command does nothing in this program, so that no menu lists it."""
        bridge = self._context.bridge
        if (opener := PAGE_OPENERS.get(command.where)) is not None and not self.offers(command_named(opener)):
            return False
        if command.needs == "sessions" and self._context.options.sessions is None:
            return False
        is_whole = bridge.bench is not None or bridge.status.pending
        is_here = is_whole or command.needs != "session"
        return is_here and not bridge.lacks_tool_of(command.id) and not bridge.refusal(command.id)

    @property
    def own(self) -> tuple[PromptCommand, ...]:
        """The commands of the user's and the project's files."""
        return self._context.bridge.status.commands


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
        commands = found
        settings = commands.settings
        in_order = {command.id: command for command in all_commands() if command.palette and commands.offers(command)}
        last = in_order.pop(_LAST)
        first = [in_order.pop(name) for name in _FIRST if name in in_order]
        entries = [
            PaletteEntry(command.text, command.help, lambda entry=command: commands.choose(entry), command.key_text)
            for command in (*first, *in_order.values(), last)
        ]
        yield from entries[:-1]
        for own in (entry for entry in commands.own if " " not in entry.slash):
            yield PaletteEntry(f"/{own.slash}", own.help, lambda name=own.slash: commands.begin(name))
        for mode in PermissionMode:
            yield PaletteEntry(f"mode: {mode.words}", MODES[mode], lambda chosen=mode: settings.choose_mode(chosen))
        for name, text in theme_texts(settings.theme_names).items():
            yield PaletteEntry(f"theme: {name}", text, lambda chosen=name: settings.choose_theme(chosen))
        yield entries[-1]
