"""Runs `/` commands and entries of the command palette."""

from collections.abc import Callable

from tui_agent.protocol.prompt_command import PromptCommand
from tui_agent.ui.base.command_type import Command
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.composer.prompt_parser import SlashCall, UnknownSlash

from .action_context import ActionContext, Handlers
from .job_actions import JobActions
from .page_actions import PageActions
from .run_actions import RunActions
from .server_actions import ServerActions
from .session_actions import ConversationActions, SessionActions
from .setting_actions import SettingActions


class CommandActions:
    """Runs commands by their id. A command without an action here runs the Textual action of its key."""

    def __init__(self, context: ActionContext, state: Callable[[], ScreenState]) -> None:
        self.settings = SettingActions(context, state)
        """Mode, theme and model."""
        self.session = SessionActions(context)
        """Name, files and past of the session."""
        self.pages = PageActions(context, state)
        """Pages and facts."""
        self.jobs = JobActions(context, state)
        """Background commands."""
        self.say = context.say
        """Shows a short message for a few seconds."""
        self._context = context
        self._handlers: Handlers = {
            **self.settings.handlers,
            **self.session.handlers,
            **self.pages.handlers,
            **self.jobs.handlers,
            **ServerActions(context).handlers,
            **RunActions(context).handlers,
            **ConversationActions(context, state).handlers,
        }

    def run(self, typed: SlashCall | UnknownSlash) -> bool:
        """Run a typed command; return False if it does not exist, or its argument is missing or unknown."""
        if isinstance(typed, SlashCall):
            return self.perform(typed.command, typed.argument)
        near = f" Did you mean /{typed.nearest}?" if typed.nearest else " /help lists them all."
        self.say(f"There is no command /{typed.name}.{near} \\/{typed.name} sends the text.", wrong=True)
        return False

    def perform(self, command: Command, argument: str = "") -> bool:
        """Run one command; return False if its argument is missing or unknown."""
        if reason := self._context.bridge.refusal(command.id):
            self.say(reason, wrong=True)
            return True
        if (handler := self._handlers.get(command.id)) is not None:
            return handler(argument) is not False
        screen = self._context.screen
        run = screen.app.run_action if command.where == "app" else screen.run_action
        screen.call_later(run, command.action_name)
        return True

    def choose(self, command: Command) -> None:
        """Run a command of the palette; one that takes a name begins in the empty composer."""
        composer = self._context.composer
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

    @property
    def own(self) -> tuple[PromptCommand, ...]:
        """The commands of the user's and the project's files."""
        return self._context.bridge.status.commands
