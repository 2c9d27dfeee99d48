"""A server over HTTP, made with the protocol's SDK. It wants a token."""

import asyncio
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel
from starlette.responses import PlainTextResponse

server = MCPServer("web")


@server.tool()
async def team(ctx: Context) -> str:
    """The header X-Team of the request."""
    return ctx.headers["x-team"]


@server.tool()
async def count(ctx: Context) -> str:
    """Report progress."""
    for step in (1, 2):
        await ctx.report_progress(step, 2, f"step {step}")
        await asyncio.sleep(0.15)
    return "counted"


@server.tool()
async def broken() -> str:
    """Fail."""
    raise RuntimeError("broken on purpose")


class Order(BaseModel):
    pieces: int


@server.tool()
async def order(ctx: Context) -> str:
    """Ask while the call runs."""
    answer = await ctx.elicit("How many?", Order)
    return f"{answer.action} {answer.data.pieces if answer.action == 'accept' else ''}"


app = server.sse_app() if "sse" in sys.argv else server.streamable_http_app()


async def guarded(scope, receive, send):
    if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != b"Bearer right":
        await PlainTextResponse("who are you?", 401)(scope, receive, send)
    else:
        await app(scope, receive, send)


uvicorn.run(guarded, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
