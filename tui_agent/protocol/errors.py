"""Every exception the engine raises on purpose.

```
TuiAgentError
├── ConfigurationError          an option, setting or file is wrong; nothing was done
├── AlreadyRunningError         a second run was started on one agent
├── OperationCancelledError     co-operative work noticed its cancellation token
├── InvalidArgumentsError       a tool call's arguments do not fit its schema
├── ToolError                   a tool failed in a way the model should read
├── ProviderError               the model could not be asked, or its answer broke off
├── CompactionError             a conversation could not be made shorter, or that could not be undone
├── RunError                    a run ended early (in `reports`: it carries the report)
│   ├── RunFailedError          the model or a tool failed
│   │   └── OutputError         the final answer does not fit the output type
│   ├── GuardrailTrippedError   a guardrail ended it
│   ├── RunLimitError           the step cap, the budget or the repetition limit was reached
│   ├── InputRefusedError       an input filter refused the message
│   └── RunInterruptedError     it was stopped or aborted
└── SessionError                a stored session could not be read or written
    └── SessionOpenError        another program writes it
```

At the tool border errors are values (`ToolResult(is_error=True)`); everywhere else they are these.
"""

from typing import Literal, get_args

ProviderErrorKind = Literal[
    "authentication",
    "permission",
    "not_found",
    "invalid_request",
    "too_large",
    "context_exceeded",
    "rate_limit",
    "overloaded",
    "server",
    "network",
    "timeout",
    "stream_cut",
    "bad_response",
    "unavailable",
]
"""What went wrong on the way to the model; `ProviderError.retryable` says whether again may help."""

_KINDS: tuple[str, ...] = get_args(ProviderErrorKind)

RETRYABLE_KINDS: frozenset[str] = frozenset({"rate_limit", "overloaded", "server", "network", "timeout", "stream_cut"})
"""Kinds after which the same request may succeed later; the others were refused as such."""


class TuiAgentError(Exception):
    """Base of every error raised on purpose; its text is one sentence for a person."""


class ConfigurationError(TuiAgentError):
    """An option, setting or file is wrong. The text names it and, where there is one, the right form."""


class AlreadyRunningError(TuiAgentError):
    """A run was started while another one runs on the same agent (S4-34, S4-89)."""

    def __init__(self) -> None:
        super().__init__("AgentLoop is already running")


class OperationCancelledError(TuiAgentError):
    """Co-operative work found its cancellation token set."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """Why the token was cancelled, in words for the model and the screen."""


class InvalidArgumentsError(TuiAgentError):
    """A tool call's arguments do not fit the tool's schema; the text says where and what was expected."""


class ToolError(TuiAgentError):
    """A tool failed; the text is what the model reads (S1-23)."""


class ProviderError(TuiAgentError):
    """The model could not be asked, or its answer broke off."""

    def __init__(
        self,
        message: str,
        *,
        kind: ProviderErrorKind,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        """
        Args:
            message: what happened, what was kept and what to do, for the user.
            kind: what went wrong; the loop asks again after those of `RETRYABLE_KINDS`.
            status: HTTP status.
            retry_after: seconds until the server wants to be asked again.
            request_id: the server's own id of the request.

        Raises:
            ConfigurationError: there is no such kind.
        """
        if kind not in _KINDS:
            raise ConfigurationError(f"ProviderError has no kind {kind!r}; there are {', '.join(_KINDS)}")
        super().__init__(message)
        self.kind: ProviderErrorKind = kind
        self.status = status
        """HTTP status, where one was received; an error inside a stream carries 200."""
        self.retry_after = retry_after
        """Seconds the server asked us to wait, if it did."""
        self.request_id = request_id

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later; never for a request that was refused as such."""
        return self.kind in RETRYABLE_KINDS


class CompactionError(TuiAgentError):
    """A conversation could not be made shorter, or that could not be undone; it is as it was."""


class SessionError(TuiAgentError):
    """A stored session could not be read or written; the text says what was kept."""


class SessionOpenError(SessionError):
    """Another program has the session open and writes it; nothing was changed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session {session_id} is already open in another tui-agent. Nothing was changed. Go on with a copy: "
            f"`tui-agent sessions fork {session_id}` prints its name for --resume; or only look at it: "
            f"--resume {session_id} --no-session keeps nothing; or close it there first."
        )
        self.session_id = session_id
