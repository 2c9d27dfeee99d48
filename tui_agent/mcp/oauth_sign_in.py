"""Sign-in to a server over HTTP (OAuth 2.1 with PKCE), as the protocol's SDK does it.

Stored tokens are used and refreshed by themselves. A new sign-in begins only at the user's wish (`/mcp login`): the
authorization server redirects the browser to a port on this machine, or the user pastes the address it ends at.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.server_question import FormField, ServerQuestion

from .client_callbacks import checked_url
from .server_parts import Ask, TokenStore
from .tool_listing import clipped

SIGN_IN_SECONDS = 300.0
ADDRESS = "address"
"""Field for the address that the browser ends at."""
_PATH = "/callback"
_LONGEST_HEAD = 16 * 1024
_READ_SECONDS = 5.0
_PAGE = "<!doctype html><meta charset=utf-8><title>tui-agent</title><p>{}"

Receive: TypeAlias = Callable[[str], bool]
"""Takes the target of a request to the port; returns False if it is not an answer of the sign-in."""


class SignInError(OAuthFlowError):
    """The user has to sign in, or the sign-in failed; the text says why."""


class ForeignAnswerError(Exception):
    """An answer of another sign-in arrived, such as one that some page in the browser made up."""


class TokenFile:
    """The stored tokens, as the SDK wants them (`TokenStorage`)."""

    def __init__(self, store: TokenStore, *, begins_anew: bool) -> None:
        """
        Args:
            begins_anew: True for a new sign-in, which ignores what is stored until it succeeds.
        """
        self.context: OAuthContext | None = None
        """The SDK's state, of which a part is stored, too."""
        self._store = store
        self._values: JsonObject = {} if begins_anew else store.read()

    @property
    def is_empty(self) -> bool:
        """True if no token is stored."""
        return not is_object(self._values.get("tokens"))

    def restore(self, context: OAuthContext) -> None:
        """Restore the expiry and the endpoints, without which the SDK cannot refresh a stored token."""
        self.context = context
        expiry = self._values.get("expires_at")
        context.token_expiry_time = float(expiry) if isinstance(expiry, int | float) else None
        with suppress(ValidationError):
            context.oauth_metadata = OAuthMetadata.model_validate(self._values["metadata"]) if self._values else None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens; None if there are none, or if they are not valid."""
        with suppress(ValidationError, KeyError):
            return OAuthToken.model_validate(self._values["tokens"])
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens."""
        self._values["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._values["expires_at"] = None if tokens.expires_in is None else time.time() + tokens.expires_in
        if self.context is not None and self.context.oauth_metadata is not None:
            self._values["metadata"] = self.context.oauth_metadata.model_dump(mode="json", exclude_none=True)
        try:
            await asyncio.to_thread(self._store.write, self._values)
        except OSError as error:
            raise SignInError(f"its token cannot be stored: {error.strerror or error}") from error

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the stored registration."""
        with suppress(ValidationError, KeyError):
            return OAuthClientInformationFull.model_validate(self._values["client"])
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registration; it is stored with the tokens."""
        self._values["client"] = client_info.model_dump(mode="json", exclude_none=True)


class SignIn:
    """One sign-in: shows its page, and waits for the answer."""

    def __init__(self, server: str, ask: Ask) -> None:
        self.problem = ""
        """Reason why it failed; empty if it did not."""
        self._server = server
        self._ask = ask
        self._state = ""
        self._url = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] | None = None

    async def show(self, url: str) -> None:
        """Keep the address of the sign-in page for `wait`, which shows it; opens nothing.

        Raises:
            SignInError: it is not a plain web address.
        """
        try:
            self._url = checked_url(url)
        except ValueError as error:
            raise self._failed(str(error)) from error
        self._state = "".join(parse_qs(urlsplit(url).query).get("state", []))
        self._answer = asyncio.get_running_loop().create_future()

    async def wait(self) -> AuthorizationCodeResult:
        """Ask the user, and return the answer of the authorization server, from the port or from the user.

        Raises:
            SignInError: the user cancelled, the server refused, or no answer came in time.
        """
        answer = self._answer
        assert answer is not None
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._ask_user(answer))
            await asyncio.wait([answer], timeout=SIGN_IN_SECONDS)
            # The dialog closes once the browser has brought the answer.
            asking.cancel()
        if not answer.done():
            raise self._failed(f"no answer came within {SIGN_IN_SECONDS / 60:g} minutes")
        try:
            return answer.result()
        except SignInError as error:
            raise self._failed(str(error)) from error

    def receive(self, target: str) -> bool:
        """Pass the answer in the target or address of a redirect to `wait`; return False if it has none.

        Only the first answer counts.

        Raises:
            ForeignAnswerError: it is the answer of another sign-in; this one still waits.
            SignInError: it is a refusal.
        """
        parts = urlsplit(target)
        values = {name: found[0] for name, found in parse_qs(parts.query).items()}
        if parts.path != _PATH or not ("code" in values or "error" in values):
            return False
        # Any page in the browser can request the port.
        if not self._state or values.get("state") != self._state:
            raise ForeignAnswerError
        if "code" not in values:
            words = " ".join(filter(None, (values.get("error"), values.get("error_description"))))
            raise SignInError(f"the server refused it: {clipped(words, 200)}")
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(
                AuthorizationCodeResult(code=values["code"], state=values["state"], iss=values.get("iss"))
            )
        return True

    def fail(self, problem: str) -> None:
        """Make `wait` raise a `SignInError` with this text; does nothing once there is an answer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(SignInError(problem))

    async def _ask_user(self, answer: asyncio.Future[AuthorizationCodeResult]) -> None:
        field = FormField(name=ADDRESS, title="Address that the browser ended at", required=True, format="uri")
        message = "The browser opens this page only if you say yes. Afterwards it returns here by itself."
        question = ServerQuestion(server=self._server, kind="sign_in", message=message, fields=(field,), url=self._url)
        while not answer.done():
            given = await self._ask(question)
            if given.action != "accept":
                self.fail("you cancelled it")
                return
            address = (given.content or {}).get(ADDRESS)
            words = "This is not the address of an answer: it contains /callback?code=…"
            try:
                if self.receive(str(address)):
                    return
            except ForeignAnswerError:
                words = "This address is the answer of another sign-in: its state differs. Nothing was accepted."
            except SignInError as error:
                self.fail(str(error))
                return
            question = question.model_copy(update={"message": words})

    def _failed(self, problem: str) -> SignInError:
        self.problem = problem
        return SignInError(problem)


@asynccontextmanager
async def signing_in(
    server: str, url: str, store: TokenStore, ask: Ask
) -> AsyncGenerator[tuple[OAuthClientProvider, SignIn]]:
    """Listen on a port of this machine for the answer of a new sign-in, and yield the SDK's authentication.

    Raises:
        SignInError: no port is free.
    """
    sign_in = SignIn(server, ask)
    try:
        listener = await asyncio.start_server(
            lambda reader, writer: _serve(reader, writer, sign_in), "127.0.0.1", 0, limit=_LONGEST_HEAD
        )
    except OSError as error:
        raise SignInError(f"no port on this machine can be opened: {error.strerror or error}") from error
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        files = TokenFile(store, begins_anew=True)
        yield _provider(url, files, f"http://127.0.0.1:{port}{_PATH}", sign_in.show, sign_in.wait), sign_in


def stored_sign_in(url: str, store: TokenStore) -> OAuthClientProvider | None:
    """Return the authentication with stored tokens; None if there are none. Blocks.

    Once they can no longer be refreshed, requests raise `SignInError`.
    """
    files = TokenFile(store, begins_anew=False)
    if files.is_empty:
        return None

    async def refuse(_: str) -> None:
        raise SignInError("its sign-in has ended")

    async def never() -> AuthorizationCodeResult:
        raise SignInError("its sign-in has ended")

    return _provider(url, files, f"http://127.0.0.1{_PATH}", refuse, never)


def _provider(
    url: str,
    files: TokenFile,
    redirect: str,
    show: Callable[[str], Awaitable[None]],
    wait: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect)],
        client_name="tui-agent",
        # A program on the machine of the user cannot keep a secret of its own.
        token_endpoint_auth_method="none",
        grant_types=["authorization_code", "refresh_token"],
    )
    provider = OAuthClientProvider(url, metadata, files, show, wait)
    files.restore(provider.context)
    return provider


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sign_in: SignIn) -> None:
    """Answer one request of a browser; whatever it contains, none of it is repeated."""
    status, words = "404 Not Found", "There is nothing here."
    try:
        async with asyncio.timeout(_READ_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        method, target, *_ = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
        if method == "GET" and sign_in.receive(target):
            status, words = "200 OK", "You are signed in. You can close this window and return to tui-agent."
    except ForeignAnswerError:
        status, words = (
            "400 Bad Request",
            "This belongs to another sign-in; tui-agent waits for its own.",
        )
    except SignInError as error:
        sign_in.fail(str(error))
        status, words = "400 Bad Request", "The sign-in failed. tui-agent shows the reason."
    except (TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        status, words = "400 Bad Request", "This is not a request of a browser."
    with suppress(OSError):
        body = _PAGE.format(words).encode()
        lines = (f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8", f"Content-Length: {len(body)}")
        writer.write("\r\n".join((*lines, "Connection: close", "", "")).encode() + body)
        await writer.drain()
    writer.close()
