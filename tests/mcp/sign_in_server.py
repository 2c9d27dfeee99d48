"""A server over HTTP with its own authorization server, on a loopback port, in the process of the test."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs


class SignInServer:
    """Issues tokens only for a code with the right verifier (PKCE)."""

    def __init__(self) -> None:
        self.url = ""
        self.valid = {""}
        """Access tokens that work."""
        self.requests: list[str] = []
        """Method and path of each request, with the grant of token requests."""
        self.challenges: dict[str, str] = {}
        """Challenge of each code."""
        self.flood = ""
        """Answer to each call: `whole`, one endless message; `events`, a stream with one; `gzip`, a compressed one."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = head.split(" ", 2)
        self.requests.append(f"{method} {path}")
        status, more, value = self._respond(method, path, headers, body)
        if value is ...:
            await self._flood(writer, more)
            return
        text = b"" if value is None else json.dumps(value).encode()
        kind = "Content-Type: application/json\r\n"
        writer.write(
            f"HTTP/1.1 {status} X\r\n{kind}{more}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode()
        )
        writer.write(text)
        await writer.drain()
        writer.close()

    async def _flood(self, writer: asyncio.StreamWriter, headers: str) -> None:
        """Send events that fit, then 3 MB without an end."""
        writer.write(f"HTTP/1.1 200 X\r\n{headers}Connection: close\r\n\r\n".encode())
        try:
            if self.flood == "events":
                for _ in range(20):
                    writer.write(b": " + b"x" * 100_000 + b"\n\n")
                    await writer.drain()
            for _ in range(30):
                writer.write(b"y" * 100_000)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def _respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, Any]:
        base = self.url.removesuffix("/mcp")
        match path:
            case "/mcp":
                return self._serve_mcp(method, headers, body)
            case "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp":
                return 200, "", {"resource": self.url, "authorization_servers": [base]}
            case "/.well-known/oauth-authorization-server":
                names = {name: f"{base}/{name.split('_')[0]}" for name in ("authorization_endpoint", "token_endpoint")}
                made = {"issuer": base, **names, "registration_endpoint": f"{base}/register"}
                return (
                    200,
                    "",
                    {**made, "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]},
                )
            case "/register":
                return 201, "", {**json.loads(body), "client_id": "client-1"}
            case "/token":
                return self._issue({name: found[0] for name, found in parse_qs(body.decode()).items()})
            case _:
                return 404, "", None

    def _issue(self, form: dict[str, str]) -> tuple[int, str, Any]:
        self.requests[-1] += f" {form['grant_type']}"
        if form["grant_type"] == "authorization_code":
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            if self.challenges.pop(form["code"], None) != base64.urlsafe_b64encode(digest).decode().rstrip("="):
                return 400, "", {"error": "invalid_grant"}
        elif form.get("refresh_token") != "refresh-1":
            return 400, "", {"error": "invalid_grant"}
        token = f"access-{len(self.requests)}"
        self.valid = {token}
        tokens = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        return 200, "", {**tokens, "refresh_token": "refresh-1"}

    def _serve_mcp(self, method: str, headers: dict[str, str], body: bytes) -> tuple[int, str, Any]:
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.valid - {""}:
            page = f"{self.url[:-4]}/.well-known/oauth-protected-resource"
            return 401, f'WWW-Authenticate: Bearer resource_metadata="{page}"\r\n', None
        if method != "POST":
            return 405, "", None
        message = json.loads(body)
        if message.get("method") == "tools/call":
            kind = "text/event-stream" if self.flood == "events" else "application/json"
            packed = "Content-Encoding: gzip\r\n" if self.flood == "gzip" else ""
            return 200, f"Content-Type: {kind}\r\n{packed}", ...
        if "id" not in message:
            return 202, "", None
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "signed", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "secret", "inputSchema": {"type": "object"}}]},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] not in results:
            return 200, "", answer | {"error": {"code": -32601, "message": "no such method"}}
        return 200, "", answer | {"result": results[message["method"]]}


@asynccontextmanager
async def sign_in_server() -> AsyncGenerator[SignInServer]:
    server = SignInServer()
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    async with listener:
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
        yield server
