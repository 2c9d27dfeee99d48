"""One session with a server, from its start to its end. The only module that drives the protocol's SDK."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl, ValidationError

from tui_agent import __version__
from tui_agent.protocol.background import first_error, reason_of
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import JsonObject, UserBlock
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.protocol.tool_server import ToolServer

from .call_result import blocks_of, framed, resource_blocks, result_of
from .server_log import ServerLog
from .server_questions import Elicitation, ServerQuestions
from .stdio_transport import ServerProcess, start_process, stdio_streams
from .tool_listing import OfferedTool, clipped

MOST_PAGES = 100
"""Pages of one list that are read."""
_REPORT_INTERVAL = 0.1
"""Least seconds between two reports of one call."""
_LONGEST_REASON = 500
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


@dataclass(slots=True)
class SessionSetup:
    """Everything that a session needs to begin."""

    name: str
    server: ToolServer
    """The server, its variables expanded."""
    shown: str
    """Its command line or URL as written."""
    environment: Mapping[str, str]
    """The environment that a program inherits, without secrets."""
    secrets: Mapping[str, str]
    """The whole environment, in which `bearer_token_env` is looked up."""
    root: Path
    log: ServerLog
    questions: ServerQuestions
    sign_in: Callable[[], httpx2.Auth] | None = None
    """Returns the OAuth sign-in of a server over HTTP; None: there is none."""


_Page: TypeAlias = types.ListToolsResult | types.ListPromptsResult | types.ListResourcesResult


class ServerSession:
    """A session that is open."""

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
        self._calls: dict[str, ToolContext] = {}
        self._reported: dict[str, float] = {}

    # --- beginning and end --------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["ServerSession"]:
        """Start the server and agree on a protocol; in the end close the session and stop the server.

        Raises:
            ConfigurationError: the settings of the server are wrong.
            ToolError: the server cannot be reached.
        """
        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            questions = self._setup.questions
            client = Client(
                transport,
                client_info=types.Implementation(name="tui-agent", version=__version__),
                cache=None,
                log_level="info",
                message_handler=self._on_message,
                logging_callback=self._on_log,
                list_roots_callback=self._roots,
                elicitation_callback=self._elicit if questions.elicit is not None else None,
            )
            try:
                self._client = await stack.enter_async_context(client)
            except (MCPError, httpx2.HTTPError, ExceptionGroup, RuntimeError, ValidationError) as error:
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

    async def _transport(self, stack: AsyncExitStack) -> Any:
        setup = self._setup
        if setup.server.url is None:
            self._process = await start_process(setup.server, setup.shown, setup.environment, setup.root, setup.log)
            return stdio_streams(self._process, setup.log)
        from mcp.client.streamable_http import streamable_http_client

        headers = dict(setup.server.headers)
        if (variable := setup.server.bearer_token_env) is not None:
            if not (token := setup.secrets.get(variable)):
                raise ConfigurationError(f"the variable {variable}, which has its token, is not set")
            headers["Authorization"] = f"Bearer {token}"
        has_token = any(name.lower() == "authorization" for name in headers)
        auth = None if has_token or setup.sign_in is None else setup.sign_in()
        seconds = max(setup.server.timeout, setup.server.startup_timeout)
        http = httpx2.AsyncClient(
            headers=headers,
            auth=auth,
            timeout=httpx2.Timeout(30.0, read=seconds + 30.0),
            # Read in a thread, because that takes a tenth of a second.
            verify=await asyncio.to_thread(_certificates),
            event_hooks={"response": [self._note_status]},
        )
        await stack.enter_async_context(http)
        return streamable_http_client(setup.server.url, http_client=http)

    async def _note_status(self, response: httpx2.Response) -> None:
        """Keep the status of a refused request: the SDK's errors do not contain it."""
        self._status = f" (HTTP {response.status_code} {response.reason_phrase})" if response.is_error else ""

    def fail(self, reason: str) -> None:
        """End the session."""
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
        """Return everything that the server offers now.

        Raises:
            ToolError: it could not be listed.
        """
        self.has_changed = False
        client = self._open_client
        can = client.server_capabilities
        made = Offers()
        info = client.server_info
        made.info = clipped(f"{info.name} {info.version}", 100) if info is not None else ""
        try:
            if can.tools is not None:
                async for page in self._pages(lambda cursor: client.list_tools(cursor=cursor)):
                    made.tools += [_offered_tool(tool) for tool in page.tools]
            if can.prompts is not None:
                async for page in self._pages(lambda cursor: client.list_prompts(cursor=cursor)):
                    made.prompts += [_offered_prompt(prompt) for prompt in page.prompts]
            if can.resources is not None:
                async for page in self._pages(lambda cursor: client.list_resources(cursor=cursor)):
                    made.resources += [_offered_resource(resource) for resource in page.resources]
        except (MCPError, httpx2.HTTPError, ValidationError) as error:
            raise ToolError(self._reason(error)) from error
        return made

    async def _pages(self, ask: Callable[[str | None], Awaitable[Any]]) -> AsyncGenerator[Any]:
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page: _Page = await ask(cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    async def call(self, tool: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call a tool. A cancellation is sent to the server, and the session stays open.

        Raises:
            ToolError: the server refused the call, or the session ended during it.
        """
        self._calls[context.call_id] = context
        name = self._setup.name

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            fraction = progress / total if total else None
            self._report(context, message or f"{progress:g}{f' of {total:g}' if total else ''}", fraction)

        try:
            answer = await self._open_client.call_tool(tool, arguments, progress_callback=on_progress)
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
        return result_of(name, answer)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt.

        Raises:
            ToolError: the server refused it.
        """
        try:
            answer = await self._open_client.get_prompt(name, arguments)
        except (MCPError, httpx2.HTTPError, ValidationError, RuntimeError) as error:
            raise ToolError(self._reason(error)) from error
        blocks = blocks_of(message.content for message in answer.messages)
        texts = [block.text for block in blocks if block.type == "text"]
        return "\n\n".join([f"[Prompt {clipped(name, 100)} of the MCP server {self._setup.name}]", *texts])

    async def resource(self, uri: str) -> Sequence[UserBlock]:
        """Return the content of a resource, marked as data.

        Raises:
            ToolError: the server refused it.
        """
        try:
            answer = await self._open_client.read_resource(uri)
        except (MCPError, httpx2.HTTPError, ValidationError, RuntimeError) as error:
            raise ToolError(self._reason(error)) from error
        return framed(self._setup.name, list(resource_blocks(answer.contents)))

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
        for context in tuple(self._calls.values()):
            self._report(context, text)

    def _report(self, context: ToolContext, text: str, fraction: float | None = None) -> None:
        now = time.monotonic()
        if now - self._reported.get(context.call_id, 0.0) >= _REPORT_INTERVAL:
            self._reported[context.call_id] = now
            context.progress(clipped(text, _LONGEST_REASON), fraction)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        root = self._setup.root.resolve()
        return types.ListRootsResult(roots=[types.Root(uri=AnyUrl(root.as_uri()), name=root.name)])  # pyright: ignore[reportArgumentType]

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        ask = self._setup.questions.elicit
        assert ask is not None
        is_form = isinstance(params, types.ElicitRequestFormParams)
        answer = await ask(
            Elicitation(
                server=self._setup.name,
                message=clipped(params.message, 2_000),
                schema=params.requested_schema if is_form else None,
                url="" if is_form else params.url,
            )
        )
        return types.ElicitResult(action=answer.action, content=answer.content)

    # --- errors -------------------------------------------------------------------------------------------------------

    def _call_failure(self, error: MCPError) -> str:
        name = self._setup.name
        if error.code != types.CONNECTION_CLOSED:
            return f"The server {name} refused the call: {clipped(error.message, _LONGEST_REASON)}"
        end = self._process.end_text if self._process is not None else "the connection was closed"
        self.fail(end)
        return f"The server {name} ended during the call ({end}). It is not known what the call did."

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
