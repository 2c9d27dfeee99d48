"""The question of a sign-in in a terminal without the screen (`tui-agent mcp login`)."""

import asyncio
import sys

from tui_agent.mcp.server_questions import QuestionAnswer
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.visible_text import escaped
from tui_agent.workbench.open_page import open_page

from .process.controlling_terminal import say


async def ask_in_terminal(question: ServerQuestion) -> QuestionAnswer:
    """Show the page, open it after a yes, and take a pasted address; wait if the input has ended."""
    say(f"Sign in to {question.server} on this page:\n\n  {escaped(question.url)}\n")
    say("Type y to open it in your browser. If the browser cannot return here, paste the address it ends at.")
    while True:
        line = await _next_line()
        if line is None:
            # Another program runs this one; the answer can still come through the port.
            await asyncio.Event().wait()
        elif line.lower() in ("y", "yes"):
            say(await open_page(question.url) or "Waiting for the sign-in in your browser …")
        elif line.lower() in ("n", "no", "q"):
            return QuestionAnswer("decline")
        elif line.startswith(("http://", "https://")):
            return QuestionAnswer("accept", {field.name: line for field in question.fields})


async def _next_line() -> str | None:
    """Return the next line of the input; None at its end. A cancelled wait leaves the input alone."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(sys.stdin.fileno(), lambda: readable.done() or readable.set_result(None))
    except (OSError, ValueError):
        return None
    try:
        await readable
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    return line.strip() if line else None
