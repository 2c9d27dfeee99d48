"""Actions on tool servers."""

import re

from textual.content import Content

from tui_agent.ui.text.sanitiser import sanitise

from .action_context import ActionContext, Handlers

_NAMED = re.compile(r"(restart|login|logout|log)[ \t]+(\S+)")
_USAGE = (
    "/mcp shows the tool servers; /mcp restart NAME starts one anew, /mcp log NAME shows its last lines, "
    "/mcp login NAME signs in to one, /mcp logout NAME forgets that."
)


class ServerActions:
    """Show and restart servers."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {"chat.mcp": self._servers}
        """Actions by id of their command."""

    def _servers(self, argument: str) -> bool:
        context = self._context
        if (bench := context.bench()) is None:
            return False
        servers = bench.servers
        named = _NAMED.fullmatch(argument.strip())
        if argument and named is None:
            context.say(_USAGE, wrong=True)
            return False
        facts = servers.list()
        if not facts:
            # Only the offline demo has a label; it starts no servers, whatever is configured.
            is_demo = bool(context.options.label)
            context.say(
                "The demo starts no tool servers. Without --demo, those of your settings and of this folder start."
                if is_demo
                else "No tool server is configured. In a shell: tui-agent mcp add NAME -- COMMAND"
            )
        elif named is None:
            from tui_agent.ui.dialogs.servers_page import ServersPage

            context.screen.app.push_screen(ServersPage(servers))
        elif named[1] == "restart":
            refused = servers.restart(named[2])
            context.say(refused or f"{named[2]} starts anew.", wrong=bool(refused))
            return not refused
        elif named[1] == "login":
            refused = servers.login(named[2])
            context.say(refused or f"{named[2]} starts the sign-in.", wrong=bool(refused))
            return not refused
        elif named[1] == "logout":
            context.say(servers.logout(named[2]))
        else:
            name, missing = named[2], f"There are no lines of a server {named[2]}."
            context.show_page(f"Log of {name}", lambda _: Content(sanitise(servers.log(name)) or missing), follows=True)
        return True
