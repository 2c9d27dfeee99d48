"""One session with a server, from its start to its end. The only module that drives the protocol's SDK."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

import httpx2
import mcp_types as types
from mcp.client.auth import OAuthFlowError
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl, ValidationError

from tui_agent import __version__
from tui_agent.protocol.background import first_error, reason_of
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import JsonObject, TextBlock, UserBlock
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.tool import ToolContext, ToolResult

from .call_result import NOT_ADDED, blocks_of, framed, resource_blocks, result_of
from .client_callbacks import ClientCallbacks
from .oauth_sign_in import SignIn, SignInError, signing_in, stored_sign_in
from .protocol_repair import LimitedTransport, repaired, with_repair
from .server_parts import ServerLog, ServerParts, TokenStore
from .stdio_transport import ServerProcess, start_process, stdio_streams
from .tool_listing import OfferedTool, clipped, contradiction_of

# Without a handler, Python would print the SDK's warnings and errors on the terminal.
logging.getLogger("mcp").addHandler(logging.NullHandler())

MOST_PAGES = 100
"""Pages of one list that are read."""
_REPORT_INTERVAL = 0.1
"""Least seconds between two reports of one call."""
_LONGEST_REASON = 500
_NO_HANDSHAKE = (
    types.METHOD_NOT_FOUND,
    types.INVALID_REQUEST,
    types.INVALID_PARAMS,
    types.UNSUPPORTED_PROTOCOL_VERSION,
)
"""Errors of a server that knows only the protocol without a handshake."""
_CLAIMS = {
    "read_only_hint": "only reads",
    "destructive_hint": "may destroy",
    "idempotent_hint": "may be repeated",
    "open_world_hint": "reaches other systems",
}


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """A prompt of a server."""

    name: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Name, description, and True if it is required."""


@dataclass(frozen=True, slots=True)
class OfferedResource:
    """A resource of a server."""

    uri: str
    name: str
    kind: str


@dataclass(slots=True)
class Offers:
    """Everything that a server offers."""

    tools: list[OfferedTool] = field(default_factory=list[OfferedTool])
    prompts: list[OfferedPrompt] = field(default_factory=list[OfferedPrompt])
    resources: list[OfferedResource] = field(default_factory=list[OfferedResource])
    info: str = ""
    """Name and version, as the server reports them."""
    left_out: tuple[str, ...] = ()
    """Messages about entries that break the protocol."""


@dataclass(slots=True)
class SessionSetup:
    """Everything that a session needs to begin."""

    name: str
    server: ToolServer
    """The server, its variables expanded."""
    shown: str
    """Its command line or URL as written."""
    parts: ServerParts
    """Parts that all servers of a session share."""
    log: ServerLog
    tokens: TokenStore | None = None
    """The stored tokens (OAuth); None: the server needs none."""
    signs_in: bool = False
    """True if the user wants to sign in now."""


_T = TypeVar("_T")


class ServerSession:
    """A session that is open. Requests raise `ToolError` if the server refuses them or ends."""

    def __init__(self, setup: SessionSetup) -> None:
        self.wake = asyncio.Event()
        """Set when the session ended or its lists changed."""
        self.end = ""
        """Reason of the end of the session; empty while it is open."""
        self.has_changed = False
        """True if a list changed since the last `offers`."""
        self._setup = setup
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._status = ""
        self._sign_in: SignIn | None = None
        self._left_out: list[str] = []
        self._outputs: dict[str, JsonObject] = {}
        self._calls: dict[str, ToolContext] = {}
        self._reported: dict[str, float] = {}
        self._callbacks = ClientCallbacks(setup.name, setup.parts.questions, lambda: self._calls, setup.log)

    # --- beginning and end --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["ServerSession"]:
        """Start the server and agree on a protocol; in the end close the session and stop the server.

        Raises:
            ConfigurationError: the settings of the server are wrong.
            ToolError: the server cannot be reached.
        """
        async with AsyncExitStack() as stack:
            try:
                self._client = await self._connected(stack)
            except (MCPError, httpx2.HTTPError, OAuthFlowError, ExceptionGroup, RuntimeError, ValidationError) as error:
                if problem := self._sign_in_problem(error):
                    raise ConfigurationError(problem) from error
                raise ToolError(self._reason(error)) from error
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            followers = [tasks.create_task(self._follow_lists())]
            if self._process is not None:
                followers.append(tasks.create_task(self._follow_process(self._process)))
            try:
                await self._ask_for_log()
                yield self
            finally:
                self._client = None
                for follower in followers:
                    follower.cancel()

    async def _connected(self, stack: AsyncExitStack) -> Client:
        """Connect with the handshake, or without it if the server refuses that."""
        if self._setup.server.transport == "sse":
            with suppress(MCPError, httpx2.HTTPError, ExceptionGroup):
                return await stack.enter_async_context(self._new_client(await self._transport(stack, "sse"), "legacy"))
        try:
            # Without a handshake a server cannot send requests while it works on a call, and many ask the user in this
            # way.
            return await stack.enter_async_context(self._new_client(await self._transport(stack), "legacy"))
        except MCPError as error:
            if error.code not in _NO_HANDSHAKE:
                raise
        return await stack.enter_async_context(self._new_client(await self._transport(stack), "auto"))

    def _new_client(self, transport: Any, mode: Literal["legacy", "auto"]) -> Client:
        questions, callbacks = self._setup.parts.questions, self._callbacks
        may_sample = self._setup.server.sampling and questions.sample is not None
        return Client(
            with_repair(transport, lambda result: repaired(result, self._left_out.append, self._outputs)),
            mode=mode,
            client_info=types.Implementation(name="tui-agent", version=__version__),
            cache=None,
            log_level="info",
            message_handler=self._on_message,
            logging_callback=self._on_log,
            list_roots_callback=self._roots,
            elicitation_callback=callbacks.elicit if questions.ask is not None else None,
            sampling_callback=callbacks.sample if may_sample else None,
        )

    async def _transport(self, stack: AsyncExitStack, kind: Literal["http", "sse"] = "http") -> Any:
        setup = self._setup
        if setup.server.url is None:
            tree = None if setup.parts.new_tree is None else setup.parts.new_tree()
            self._process = await start_process(
                setup.server, setup.shown, setup.parts.environment, setup.parts.root, setup.log, tree
            )
            return stdio_streams(self._process, setup.log)
        http = await self._http_client(stack, setup.server.url)
        if kind == "sse":
            from mcp.client.sse import sse_client

            def client(*_: object, **__: object) -> httpx2.AsyncClient:
                return http

            return sse_client(setup.server.url, httpx_client_factory=client)
        from mcp.client.streamable_http import streamable_http_client

        await stack.enter_async_context(http)
        return streamable_http_client(setup.server.url, http_client=http)

    async def _http_client(self, stack: AsyncExitStack, url: str) -> httpx2.AsyncClient:
        """Return a client with the headers and the sign-in of the server."""
        setup = self._setup
        headers = dict(setup.server.headers)
        if (variable := setup.server.bearer_token_env) is not None:
            if not (token := setup.parts.secrets.get(variable)):
                raise ConfigurationError(f"the variable {variable}, which has its token, is not set")
            headers["Authorization"] = f"Bearer {token}"
        has_token = any(name.lower() == "authorization" for name in headers)
        auth = None if has_token else await self._authentication(stack, url)
        seconds = max(setup.server.timeout, setup.server.startup_timeout)
        return httpx2.AsyncClient(
            headers=headers,
            auth=auth,
            # Longer than a call may take: the limit of the call says what happened, this one does not.
            timeout=httpx2.Timeout(30.0, read=seconds + 30.0),
            # The certificates are read in a thread, because that takes a tenth of a second.
            transport=LimitedTransport(await asyncio.to_thread(_certificates), self.fail),
            event_hooks={"response": [self._note_status]},
        )

    async def _authentication(self, stack: AsyncExitStack, url: str) -> httpx2.Auth | None:
        """Return the sign-in: a new one, the stored one, or None."""
        setup = self._setup
        if setup.tokens is None:
            return None
        if not setup.signs_in or setup.parts.questions.ask is None:
            return await asyncio.to_thread(stored_sign_in, url, setup.tokens)
        try:
            auth, self._sign_in = await stack.enter_async_context(
                signing_in(setup.name, url, setup.tokens, setup.parts.questions.ask)
            )
        except SignInError as error:
            raise ConfigurationError(f"the sign-in failed: {error}") from error
        return auth

    async def _note_status(self, response: httpx2.Response) -> None:
        """Keep the status of a refused request: the SDK's errors do not contain it."""
        self._status = f" (HTTP {response.status_code} {response.reason_phrase})" if response.is_error else ""

    def fail(self, reason: str) -> None:
        """End the session for this reason, unless it has ended for another one; does not wait."""
        self.end = self.end or reason
        self.wake.set()

    async def _follow_process(self, process: ServerProcess) -> None:
        await process.ended.wait()
        self.fail(process.end_text)

    async def _follow_lists(self) -> None:
        """Receive changes of the lists from a server of the newer protocol; older ones send them unasked."""
        client = self._open_client
        with suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as subscription:
                async for _ in subscription:
                    self._note_change()

    async def _ask_for_log(self) -> None:
        client = self._open_client
        if client.server_capabilities.logging is None or client.session.initialize_result is None:
            return
        with suppress(MCPError, ValidationError):
            request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="info"))
            await client.session.send_request(request, types.EmptyResult)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def offers(self) -> Offers:
        """Return everything that the server offers now, in the server's order.

        A list that breaks off is kept as far as it came; `left_out` names it.

        Raises:
            ToolError: the server does not list its tools, or has ended.
        """
        self.has_changed = False
        self._left_out.clear()
        client = self._open_client
        can = client.server_capabilities
        made = Offers()
        info = client.server_info
        made.info = clipped(f"{info.name} {info.version}", 100) if info is not None else ""
        if can.tools is not None:
            made.tools += await self._list("tools", client.list_tools, _offered_tool)
        if can.prompts is not None:
            made.prompts += await self._list("prompts", client.list_prompts, _offered_prompt)
        if can.resources is not None:
            made.resources += await self._list("resources", client.list_resources, _offered_resource)
        made.left_out = tuple(self._left_out)
        return made

    async def _list(self, kind: str, ask: Callable[..., Awaitable[Any]], offered: Callable[[Any], _T]) -> list[_T]:
        """Return the entries of all pages of a list. One that breaks off keeps what came before, and is named."""
        found: list[_T] = []
        cursor: str | None = None
        # A server that repeats a cursor would be asked for ever.
        asked: set[str | None] = {"", None}
        number = 0
        try:
            for number in range(MOST_PAGES):  # noqa: B007 — its last value counts
                page: Any = await ask(cursor=cursor)
                found += map(offered, getattr(page, kind))
                cursor = page.next_cursor
                if cursor in asked:
                    break
                asked.add(cursor)
        except (MCPError, httpx2.HTTPError, ValidationError) as error:
            has_ended = self._process is not None and self._process.process.returncode is not None
            # Without its tools a server is of no use, without its other lists it is.
            if has_ended or (kind == "tools" and number == 0):
                raise ToolError(self._reason(error)) from error
            self._left_out.append(f"{'further ' if number else ''}{kind}: {self._reason(error)}")
        return found

    async def call(self, tool: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call a tool. A cancellation is sent to the server, and the session stays open.

        Raises:
            ToolError: the server refuses the call, cannot be reached, or answers with something that is not a result.
        """
        self._calls[context.call_id] = context
        name = self._setup.name

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            fraction = progress / total if total else None
            self._report(context, message or f"{progress:g}{f' of {total:g}' if total else ''}", fraction)

        try:
            with self._callbacks.during_request():
                try:
                    answer = await self._open_client.call_tool(tool, arguments, progress_callback=on_progress)
                except MCPError as error:
                    if error.code != types.URL_ELICITATION_REQUIRED:
                        raise
                    raise ToolError(await self._pages_needed(error)) from error
        except MCPError as error:
            raise ToolError(self._call_failure(error)) from error
        except ValidationError as error:
            raise ToolError(f"The server {name} answered with something that is not a result.") from error
        except RuntimeError as error:
            text = clipped(str(error), _LONGEST_REASON)
            raise ToolError(f"The call ran, but its result contradicts what {name} claims about it: {text}") from error
        except httpx2.HTTPError as error:
            self.fail(self._reason(error))
            raise ToolError(f"The server {name} could not be reached: {self._reason(error)}") from error
        finally:
            self._calls.pop(context.call_id, None)
            self._reported.pop(context.call_id, None)
        contradiction = ""
        if (schema := self._outputs.get(tool)) is not None and not answer.is_error:
            # A schema of the server decides how long this takes.
            contradiction = await asyncio.to_thread(contradiction_of, schema, answer.structured_content)
        result = result_of(name, answer, contradiction)
        return result.model_copy(update={"content": await self._checked(result.content)})

    async def _checked(self, blocks: Sequence[UserBlock]) -> tuple[UserBlock, ...]:
        """Return blocks with the images and PDF files that models take."""
        check = self._setup.parts.check_media
        if check is None:
            return tuple(blocks)
        return tuple([block if isinstance(block, TextBlock) else await check(block) for block in blocks])

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt, after a line that names the server; a note replaces other blocks.

        Raises:
            ToolError: the server refuses, or cannot be reached.
        """
        try:
            with self._callbacks.during_request():
                answer = await self._open_client.get_prompt(name, arguments)
        except (MCPError, httpx2.HTTPError, ValidationError, RuntimeError) as error:
            raise ToolError(self._reason(error)) from error
        blocks = blocks_of(message.content for message in answer.messages)
        texts = [block.text if isinstance(block, TextBlock) else NOT_ADDED for block in blocks]
        return "\n\n".join([f"[Prompt {clipped(name, 100)} of the MCP server {self._setup.name}]", *texts])

    async def resource(self, uri: str) -> Sequence[UserBlock]:
        """Return the content of a resource, marked as data.

        Raises:
            ToolError: the server refuses, or cannot be reached.
        """
        try:
            with self._callbacks.during_request():
                answer = await self._open_client.read_resource(uri)
        except (MCPError, httpx2.HTTPError, ValidationError, RuntimeError) as error:
            raise ToolError(self._reason(error)) from error
        return framed(self._setup.name, await self._checked(list(resource_blocks(answer.contents))))

    @property
    def _open_client(self) -> Client:
        if self._client is None:
            raise ToolError(f"The session with {self._setup.name} has ended.")
        return self._client

    # --- what the server sends ----------------------------------------------------------------------------------------

    async def _on_message(self, message: IncomingMessage) -> None:
        match message:
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self._note_change()
            case Exception():
                self._setup.log.add(f"error: {self._reason(message)}")
            case _:
                pass

    def _note_change(self) -> None:
        self.has_changed = True
        self.wake.set()

    async def _on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        text = f"{params.level}: {clipped(str(params.data), _LONGEST_REASON)}"
        self._setup.log.add(text)
        # A log message does not name its call.
        for context in tuple(self._calls.values()):
            self._report(context, text)

    def _report(self, context: ToolContext, text: str, fraction: float | None = None) -> None:
        now = time.monotonic()
        if now - self._reported.get(context.call_id, 0.0) >= _REPORT_INTERVAL:
            self._reported[context.call_id] = now
            context.progress(clipped(text, _LONGEST_REASON), fraction)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        root = self._setup.parts.root.resolve()
        return types.ListRootsResult(roots=[types.Root(uri=AnyUrl(root.as_uri()), name=root.name)])  # pyright: ignore[reportArgumentType]

    async def _pages_needed(self, error: MCPError) -> str:
        """Ask the user to open the pages that a call needs; return the message to the model."""
        name = self._setup.name
        if await self._callbacks.open_pages(error):
            return f"The server {name} needed the user to open a page first, which they agreed to. Repeat the call."
        return f"The server {name} needs the user to open a page first, which they declined."

    # --- errors -------------------------------------------------------------------------------------------------------

    def _call_failure(self, error: MCPError) -> str:
        name = self._setup.name
        if error.code != types.CONNECTION_CLOSED:
            return f"The server {name} refused the call: {clipped(error.message, _LONGEST_REASON)}"
        end = self._process.end_text if self._process is not None else self.end or "the connection was closed"
        self.fail(end)
        return f"The server {name} ended during the call ({end}). It is not known what the call did."

    def _sign_in_problem(self, error: Exception) -> str:
        """Return why the user must act before the server can be used; empty if it is another error."""
        hint = f"/mcp login {self._setup.name} signs in"
        if self._sign_in is not None:
            failed = isinstance(first_error(error), OAuthFlowError)
            problem = self._sign_in.problem or (clipped(str(first_error(error)), _LONGEST_REASON) if failed else "")
            return f"the sign-in failed: {problem}; {hint}" if problem else ""
        if self._setup.tokens is None:
            return ""
        if isinstance(first_error(error), OAuthFlowError):
            return f"its sign-in has ended; {hint} again"
        return f"it wants a sign-in (HTTP 401); {hint}" if "HTTP 401" in self._status else ""

    def _reason(self, error: Exception) -> str:
        """Return the reason of an error in one line; for a process that has ended, how."""
        error = first_error(error)
        process = self._process
        if process is not None and (process.process.returncode is not None or process.reason):
            last = self._setup.log.last
            return process.end_text + (f": {last}" if last else "")
        if isinstance(error, MCPError):
            return clipped(error.message, _LONGEST_REASON) + clipped(self._status, 100)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            return clipped(f"its answer breaks the protocol: {place}: {first['msg']}", _LONGEST_REASON)
        return clipped(reason_of(error), _LONGEST_REASON)


@cache
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _offered_tool(tool: types.Tool) -> OfferedTool:
    claims = tool.annotations.model_dump(exclude_none=True) if tool.annotations is not None else {}
    words = tuple(text for name, text in _CLAIMS.items() if claims.get(name) is True)
    return OfferedTool(tool.name, tool.description or tool.title or "", tool.input_schema, words)


def _offered_prompt(prompt: types.Prompt) -> OfferedPrompt:
    arguments = tuple(
        (clipped(one.name, 64), clipped(one.description or "", 200), bool(one.required))
        for one in prompt.arguments or ()
    )
    return OfferedPrompt(prompt.name, clipped(prompt.description or prompt.title or "", 200), arguments)


def _offered_resource(resource: types.Resource) -> OfferedResource:
    return OfferedResource(str(resource.uri), clipped(resource.name, 100), clipped(resource.mime_type or "", 100))
