"""The page of tool servers: state, target and offers of each, with keys for its log and a new start."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.facts.server_facts import ServerFact
from tui_agent.ui.text.sanitiser import sanitise, visible

from .chooser_page import ChooserPage, Item
from .list_page import ListPage
from .text_page import TextPage

if TYPE_CHECKING:
    from tui_agent.workbench.session_servers import SessionServers

_SERVER_STATES = {
    "ready": ("ready", "success"),
    "failed": ("failed", "error"),
    "degraded": ("starting again", "warning"),
}
"""Words and style for the state of a server."""


class ServersPage(ChooserPage):
    """The tool servers: enter shows the log of one, and a key starts it anew."""

    WHERE = "servers"
    KEYS = ("open_log", "restart", "close")

    def __init__(self, servers: "SessionServers") -> None:
        """Create the page for the servers of a session."""
        rules = "rules for one: allow mcp__NAME__*"
        super().__init__("Tool servers", lambda: server_items(servers.list()), rules, follows=True)
        self._servers = servers

    def action_open_log(self) -> None:
        """Show the last lines of the selected server."""
        if (item := self.selected) is not None:
            name, missing = item.id, f"There are no lines of a server {item.id}."
            log = TextPage(
                f"Log of {name}", lambda _: Content(sanitise(self._servers.log(name)) or missing), follows=True
            )
            self.app.push_screen(log)

    def action_restart(self) -> None:
        """Start the selected server anew."""
        if (item := self.selected) is not None:
            refused = self._servers.restart(item.id)
            self.say(refused or f"{item.id} starts anew.", "warning" if refused else "")

    def key_answers(self) -> list[tuple[str, str, bool]]:
        return ListPage[Item, str].key_answers(self)


def server_items(servers: Sequence[ServerFact]) -> list[Item]:
    """Return each tool server with its state, its target, and what it offers."""
    items: list[Item] = []
    for server in servers:
        state, style = _SERVER_STATES.get(server.state, (server.state, "muted"))
        offers = (
            ("tools", server.tools),
            *(("left out", (problem,)) for problem in server.left_out),
            ("prompts", server.prompts),
            ("resources", server.resources),
        )
        paragraphs = (
            ((server.name, "strong"), (f"  {state}", style), (f"  {sanitise(server.info)}", "muted")),
            *((((sanitise(server.error), "error"),),) if server.error else ()),
            ((visible(f"{server.target}  ({server.origin})"), "muted"),),
            *(((f"{heading}: ", "muted"), (visible(", ".join(entries)), "")) for heading, entries in offers if entries),
        )
        note = visible(server.error.partition("\n")[0]) or count_text(len(server.tools), "tool")
        items.append(Item(server.name, server.name, f"{state} · {note}", ("●", style), paragraphs))
    return items
