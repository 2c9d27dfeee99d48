"""`tui-agent stats`: tokens and cost of all saved sessions."""

from datetime import datetime, timedelta

import click

from tui_agent.cli.process.controlling_terminal import say, say_json
from tui_agent.protocol.visible_text import escaped
from tui_agent.session import SessionStore
from tui_agent.session.journal_counts import read_statistics
from tui_agent.settings import Locations

_WIDTH = 100


@click.command()
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Only the last N days. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(days: int | None, as_json: bool) -> None:
    """Show tokens and cost of all sessions by day, model and folder."""
    store = SessionStore(Locations.of_user().sessions_dir)
    since = None if days is None else (datetime.now() - timedelta(days=days - 1)).date()
    found = read_statistics(store.root, store.newest_paths(), since)
    if as_json:
        say_json(found.to_json())
        return
    for line in found.lines(_WIDTH):
        say(escaped(line))
