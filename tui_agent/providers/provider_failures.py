"""Failures of requests to a model, as a `ProviderError` with a clear message.

The message says what happened, what was kept and what to do. It contains no secret: credentials are removed from the
server's own text before it is quoted.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from tui_agent.protocol.errors import RETRYABLE_KINDS, ProviderError, ProviderErrorKind
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.report_text import wait_text
from tui_agent.protocol.secret_variables import mask_secrets

from .error_details import ErrorDetails, is_about_length, is_about_media

_LONGEST_QUOTE = 600
_LONGEST_ADDRESS = 200
_MESSAGES_PATH = "/v1/messages"
_PAGE = "A proxy, firewall or web server answered with a page"
_PAGE_ADVICE = "check the network, the proxy and the base URL"
_PROXY_WANTS_PASSWORD = "A proxy wants a user name and a password"
_PROXY_PASSWORD_ADVICE = "add them to the proxy's address, as in HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
_FINAL_ADVICE = "the server says that another attempt would fail, too"
GATEWAY_KEY_ADVICE = (
    "check the key: ANTHROPIC_API_KEY is sent as x-api-key, ANTHROPIC_AUTH_TOKEN as Authorization: Bearer, and "
    "ANTHROPIC_CUSTOM_HEADERS='NAME: VALUE' adds any other header; for keys that expire, set `key_command`"
)
ISOLATED_KEY_ADVICE = (
    "check the endpoint's key; `headers` of `[providers.NAME]` adds any other header, and `key_command` prints keys "
    "that expire"
)
_MEDIA_ADVICE = "use a model that takes images and PDF files, or remove them from the conversation with /rewind"
_SPENT = re.compile(
    r"spend_limit_reached$|insufficient_(?:quota|balance|credits?)|credit balance|billing", re.IGNORECASE
)

_OVERLOADED = re.compile(
    r"overload|\b(?:at|over|exceeds?|no) capacity\b|\bserver (?:is )?(?:too )?busy\b", re.IGNORECASE
)
_INVALID_REQUEST = "invalid_request_error"

MESSAGES_API = "the Messages API"

_BY_STATUS: dict[int, ProviderErrorKind] = {
    400: "invalid_request",
    401: "authentication",
    402: "permission",
    403: "permission",
    404: "not_found",
    405: "not_found",
    407: "unavailable",
    408: "timeout",
    409: "server",
    413: "too_large",
    422: "invalid_request",
    425: "server",
    429: "rate_limit",
    504: "timeout",
    529: "overloaded",
}
_BY_TYPE: dict[str, ProviderErrorKind] = {
    "invalid_request_error": "invalid_request",
    "authentication_error": "authentication",
    "billing_error": "permission",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "timeout_error": "timeout",
    "api_error": "server",
    "overloaded_error": "overloaded",
    "conflict_error": "server",
    "server_error": "server",
    "rate_limit_exceeded": "rate_limit",
    "insufficient_quota": "permission",
    "throttlingException": "rate_limit",
    "serviceUnavailableException": "overloaded",
    "modelTimeoutException": "timeout",
    "validationException": "invalid_request",
}
BROKE_OFF = "The model's answer broke off"

_WHAT: dict[ProviderErrorKind, str] = {
    "authentication": "The model's server did not accept the key",
    "permission": "The model's server does not allow this request",
    "not_found": "The model's server does not know this model or address",
    "invalid_request": "The model's server refused the request as invalid",
    "too_large": "The request is larger than the model's server takes",
    "context_exceeded": "The conversation is longer than the model's context window",
    "rate_limit": "The model's server asks for fewer requests",
    "overloaded": "The model's server is overloaded",
    "server": "The model's server failed",
    "network": "The model's server cannot be reached",
    "timeout": "The model's server did not answer in time",
    "stream_cut": BROKE_OFF,
    "bad_response": "The model's server answered with something that is not {api}",
    "unavailable": "The model is not available",
}
_ADVICE: dict[ProviderErrorKind, str] = {
    "authentication": "check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN",
    "permission": "use a key that may do this, or another model",
    "not_found": "check the model's name and the base URL",
    "invalid_request": "the same request would be refused again, so change the settings or the conversation",
    "too_large": "take large files or images out of it",
    "context_exceeded": "remove its largest messages or start a new one",
    "rate_limit": "try again later",
    "overloaded": "try again later",
    "server": "try again later",
    "network": "check the network and the base URL, then try again",
    "timeout": "try again",
    "stream_cut": "try again",
    "bad_response": "check the base URL",
    "unavailable": "remove the cause, then try again",
}


@dataclass(frozen=True, slots=True)
class ErrorFactory:
    """Factory for the errors of one provider."""

    secrets: tuple[str, ...] = ()
    """Credentials that no message may contain."""
    address: str = ""
    """Address of the requests, without user name and password."""
    key_advice: str = _ADVICE["authentication"]
    """Advice about a key that the server does not accept."""
    api: str = MESSAGES_API
    """API that the server is expected to speak."""
    profile: str | None = None

    def of_status(self, status: int, body: object, headers: Mapping[str, str]) -> ProviderError:
        """Return the error for an answer with an error status."""
        details = ErrorDetails.of(body)
        kind = _kind_of_status(status, details)
        final = kind in RETRYABLE_KINDS and headers.get("x-should-retry") == "false"
        what, advice = _WHAT[kind].format(api=self.api) if final else "", _FINAL_ADVICE if final else ""
        if details.is_page:
            place = f" for {self.address}" if self.address else ""
            what, advice = f"{_PAGE}{place}", advice or _PAGE_ADVICE
        elif status == 407:
            what, advice = _PROXY_WANTS_PASSWORD, _PROXY_PASSWORD_ADVICE
        elif kind == "invalid_request" and is_about_media(details.words):
            advice = _MEDIA_ADVICE
        failure = self.write(
            "unavailable" if final else kind,
            details.words,
            what=what,
            advice=advice,
            status=status,
            retry_after=retry_after_seconds(headers),
            request_id=headers.get("request-id") or headers.get("x-request-id") or details.request_id,
        )
        if kind in ("invalid_request", "server") and not details.is_page and is_about_media(details.words):
            # Local servers call a picture that they cannot take a failure of their own.
            failure.subject = "media"
        return failure

    def of_redirect(self, status: int, asked: str, location: str, headers: Mapping[str, str]) -> ProviderError:
        """Return the error for a redirect, which is not followed because it would send the key to another address.

        Args:
            status: HTTP status of the answer.
            asked: address of the request.
            location: address in the answer, absolute or relative to that.
            headers: those of the answer.
        """
        target, own = _redirect_target(asked, location), urlsplit(asked)
        place = f" at {self.address}" if self.address else ""
        is_default = self.key_advice in (_ADVICE["authentication"], GATEWAY_KEY_ADVICE)
        setting = "ANTHROPIC_BASE_URL" if is_default else "`base_url` of the provider"
        sent, advice = "", f"check {setting}"
        if target is None:
            where = "to something that is not an address"
        elif _origin_of(target) != _origin_of(own):
            # Only the origin: path and query may contain a token.
            where = f"to {self.redacted(_origin_of(target))}"
            sent = "; nothing was sent there"
            advice = f"set {setting} to that server if you trust it"
        elif _base_path(target) == _base_path(own):
            where = "to itself"
        else:
            where = "to another of its addresses"
        what = f"The model's server{place} redirects {where} ({status}){sent}"
        return self.write("bad_response", what=what, advice=advice, status=status, request_id=headers.get("request-id"))

    def of_event(self, body: JsonObject, request_id: str | None) -> ProviderError:
        """Return the error for an error event in the middle of a stream."""
        details = ErrorDetails.of(body)
        kind = _BY_TYPE.get(details.kind)
        if kind is None:
            kind = "server" if details.status is None else _kind_of_status(details.status, details)
        kind = _kind_of_words(kind, details)
        return self.write(kind, details.words, status=200, request_id=request_id or details.request_id)

    def write(
        self,
        kind: ProviderErrorKind,
        words: str = "",
        *,
        what: str = "",
        advice: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> ProviderError:
        """Return an error of a kind, which says what happened and what to do unless `what` and `advice` do.

        Args:
            kind: decides about retries, and the default texts.
            words: the server's or the system's own, which are quoted without secrets.
            what: what happened; empty: a text for the kind.
            advice: what to do; empty: a text for the kind.
            status: HTTP status of the answer; None without one.
            retry_after: seconds that the server asks to wait; None if it asks for nothing.
            request_id: the server's id of the request, if it named one.
        """
        place = f" at {self.address}" if kind in ("network", "bad_response", "not_found") and self.address else ""
        # An error inside an answer has the status of the answer, which is none of an error.
        code = f" ({status})" if status not in (None, 200) and f"({status})" not in what else ""
        said, happened = self.redacted(words).rstrip("."), what or _WHAT[kind].format(api=self.api)
        # Many servers say no more than their status: "overloaded: Overloaded".
        cause = "" if said.casefold() in happened.casefold() else f": {said}"
        summary = f"{what or happened + place}{code}{cause}"
        if not advice and kind in RETRYABLE_KINDS and retry_after:
            advice = f"try again in {wait_text(retry_after)}, as the server asks"
        elif not advice and kind == "authentication":
            advice = self.key_advice
        return ProviderError(
            f"{summary}. The conversation is kept; {advice or _ADVICE[kind]}.",
            kind=kind,
            status=status,
            retry_after=retry_after,
            request_id=request_id,
            summary=summary,
        )

    def redacted(self, words: str) -> str:
        """Return a message on one line, shortened and without secrets."""
        line = " ".join(mask_secrets(words, self.secrets).split())
        return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


def _redirect_target(asked: str, location: str) -> SplitResult | None:
    """Return the address that a redirect names; None if it names none."""
    try:
        url = urlsplit(urljoin(asked, location))
        _ = url.port  # Raises if it is not a number.
    except ValueError:
        return None
    return url if url.scheme in ("http", "https") and url.hostname else None


def _origin_of(url: SplitResult) -> str:
    """Return scheme, host and port, without user name and password.

    Characters that a terminal acts on, or that look like others, are percent-encoded.
    """
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    origin = f"{url.scheme}://{host}{f':{url.port}' if url.port is not None else ''}"
    shown = "".join(letter if "!" <= letter <= "~" else quote(letter, safe="") for letter in origin)
    return shown if len(shown) <= _LONGEST_ADDRESS else f"{shown[:_LONGEST_ADDRESS]}…"


def _base_path(url: SplitResult) -> str:
    return url.path.removesuffix(_MESSAGES_PATH).rstrip("/")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds the server asks to wait; None if it does not say."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if re.fullmatch(r"\s*[\d.]+\s*", value):
            return float(value)
        # By the clock of this machine the date may have passed.
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _kind_of_status(status: int, details: ErrorDetails) -> ProviderErrorKind:
    if status < 400:
        # Whatever the body says: the address is wrong, and remains so.
        return "bad_response"
    kind = _BY_STATUS.get(status) or ("server" if status >= 500 else "invalid_request")
    kind = _kind_of_words(kind, details)
    if kind in ("rate_limit", "invalid_request") and (_SPENT.search(details.code) or _SPENT.search(details.words)):
        # A spent budget looks like a rate limit, yet waiting does not help.
        kind = "permission"
    return kind


def _kind_of_words(kind: ProviderErrorKind, details: ErrorDetails) -> ProviderErrorKind:
    """Return the kind of an error that its status or its type names too roughly."""
    if _is_full(kind, details):
        return "context_exceeded"
    if kind in ("server", "rate_limit") and _OVERLOADED.search(f"{details.kind}\n{details.words}"):
        return "overloaded"
    # Gateways wrap a refusal into a failure of their own; the same request would fail again.
    if kind == "server" and _INVALID_REQUEST in f"{details.kind}\n{details.words}":
        return "invalid_request"
    return kind


def _is_full(kind: ProviderErrorKind, details: ErrorDetails) -> bool:
    """True if the conversation is too long; some servers report that as their own failure."""
    if kind not in ("invalid_request", "server"):
        return False
    return is_about_length(f"{details.code}\n{details.words}", names_context=kind == "server")
