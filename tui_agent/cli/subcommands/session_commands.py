"""`tui-agent sessions` and `stats`: stored sessions without the screen, and what they cost."""

import json
from datetime import datetime, timedelta

import click

from tui_agent.cli.command_words import OneOf, SessionId
from tui_agent.cli.process.controlling_terminal import say, say_error, say_json, say_json_line
from tui_agent.protocol.amounts import bytes_text, count_text, money_text
from tui_agent.protocol.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tui_agent.protocol.report_text import report_text
from tui_agent.protocol.visible_text import escaped
from tui_agent.session import SessionStore
from tui_agent.session.export import ExportFormat, export_session
from tui_agent.session.journal import with_journal_lock
from tui_agent.session.journal_counts import CountsFile, read_statistics
from tui_agent.settings import Locations
from tui_agent.workbench.sessions.prompt_store import forget_session

TITLE_WIDTH = 60
BRANCH_WIDTH = 16


@click.group()
def sessions() -> None:
    """Manage stored sessions."""


@sessions.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option("--search", metavar="TEXT", default="", help="Only sessions that contain TEXT.")
def list_sessions(as_json: bool, search: str) -> None:
    """List sessions, the one with your latest message first."""
    store = _store()
    found = store.list(search)
    counts = CountsFile(store.root)
    messages = {one.id: counted.messages if (counted := counts.count(one.path)) else None for one in found}
    # Counting reads whole journals, so that the next list starts from these.
    counts.save()
    if as_json:
        rows = [
            {
                "id": summary.id,
                "title": summary.title,
                "cwd": summary.cwd,
                "started": summary.started,
                "last_message": summary.last_message,
                "updated": summary.updated,
                "size": summary.size,
                "branch": summary.branch,
                "messages": messages[summary.id],
                "cost_usd": summary.cost,
                "path": str(summary.path),
            }
            for summary in found
        ]
        say_json(rows)
        return
    if not found:
        say(f"no session contains {search!r}" if search else "no sessions yet")
    for summary in found:
        last_message = datetime.fromtimestamp(summary.last_message / 1000).strftime("%Y-%m-%d %H:%M")
        title = escaped(summary.title)[:TITLE_WIDTH]
        size = bytes_text(summary.size)
        cost = money_text(summary.cost) or "–"
        branch = escaped(summary.branch)[:BRANCH_WIDTH] or "–"
        said = count_text(messages[summary.id] or 0, "message")
        row = f"{summary.id:<14} {last_message}  {title:<{TITLE_WIDTH}}  {branch:<{BRANCH_WIDTH}}"
        say(f"{row}  {said:>12} {size:>8} {cost:>7}  {summary.cwd}")


@sessions.command()
@click.argument("session_id", metavar="ID", type=SessionId())
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: every event, or with --report every report.")
@click.option("--report", "as_report", is_flag=True, help="Print what each run did, how long it took and what it cost.")
def show(session_id: str, as_json: bool, as_report: bool) -> None:
    """Print a session's conversation. ID may be the beginning of an id."""
    store = _store()
    session = store.load(store.find(session_id))
    if as_report:
        for report in session.reports:
            say_json_line(report.model_dump_json()) if as_json else say(f"{report_text(report)}\n")
        return
    if as_json:
        for envelope in session.envelopes:
            say_json_line(envelope.to_json())
        return
    say(f"session {session.id} in {session.cwd}")
    for message in session.messages:
        say(f"\n{_message_text(message)}")
    for problem in session.problems:
        say_error(f"\n! {problem.text}")


@sessions.command()
@click.argument("session_id", metavar="ID", type=SessionId())
@click.option("--format", "form", type=OneOf(("md", "html", "jsonl")), default="md", help="Default: md.")
def export(session_id: str, form: ExportFormat) -> None:
    """Print a session as Markdown, HTML or events."""
    store = _store()
    say(export_session(store.load(store.find(session_id)), form), line_feed=False)


@sessions.command()
@click.argument("session_id", metavar="ID", type=SessionId())
@click.option("--at", "at_seq", type=int, metavar="SEQ", help="Number of the last event to copy. Default: copy all.")
def fork(session_id: str, at_seq: int | None) -> None:
    """Copy a session and print the id of the copy.

    The session may be open in another program.
    """
    store = _store()
    say(store.fork(store.find(session_id), at_seq).id)


@sessions.command()
@click.argument("session_id", metavar="ID", type=SessionId())
@click.argument("title")
def rename(session_id: str, title: str) -> None:
    """Change the title of a session."""
    store = _store()
    store.rename(store.find(session_id), title)


@sessions.command(name="end-processes")
@click.argument("session_id", metavar="ID", type=SessionId())
def end_processes(session_id: str) -> None:
    """End commands that a session left running.

    A command is left running if tui-agent is killed.
    """
    # Imported here, because the other commands need no tools, which take a third of the time.
    from tui_agent.workbench.leftover_commands import end_all, find_running_commands

    store = _store()
    found = store.find(session_id)
    ended: list[str] = []
    # A program that has the session open ends its own commands.
    with_journal_lock(
        store.journal_path(found),
        lambda: ended.extend(end_all(find_running_commands(store.load(found).lost_processes))),
    )
    say(f"ended {', '.join(ended)}" if ended else "no command of this session is running")


@sessions.command()
@click.argument("session_id", metavar="ID", type=SessionId())
def delete(session_id: str) -> None:
    """Delete a session and all its files."""
    store = _store()
    found = store.find(session_id)
    store.delete(found)
    # Its prompts and its draft are stored apart from the journal.
    forget_session(store.root, found)
    say(f"deleted session {found}")


def _store() -> SessionStore:
    return SessionStore(Locations.of_user().sessions_dir)


def _message_text(message: Message) -> str:
    """Return a message as plain text."""
    match message:
        case UserMessage():
            return f"You: {message.text}"
        case AssistantMessage():
            calls = [f"→ {call.name} {json.dumps(call.arguments, ensure_ascii=False)}" for call in message.tool_calls]
            return "\n".join([f"Assistant: {message.text}", *calls])
        case ToolResultMessage():
            return f"← {message.tool_name}{' (error)' if message.is_error else ''}: {message.text}"


_WIDTH = 100


@click.command()
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Only the last N days. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(days: int | None, as_json: bool) -> None:
    """Show tokens and cost of all sessions by day, model and folder."""
    store = SessionStore(Locations.of_user().sessions_dir)
    # Whole days, today included.
    since = None if days is None else (datetime.now() - timedelta(days=days - 1)).date()
    found = read_statistics(store.root, store.newest_paths(), since)
    if as_json:
        say_json(found.to_json())
        return
    for line in found.lines(_WIDTH):
        say(escaped(line))
