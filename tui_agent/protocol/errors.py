"""Exceptions that the engine raises on purpose.

```
TuiAgentError
├── ConfigurationError          an option, setting or file is wrong; nothing was done
├── AlreadyRunningError         a second run was started on one agent
├── OperationCancelledError     co-operative work noticed its cancellation token
├── InvalidArgumentsError       a tool call's arguments do not fit its schema
├── ToolError                   a tool failed in a way the model should read
├── ProviderError               the model could not be asked, or its answer broke off
├── CompactionError             a compaction, or the undo of one, failed
├── RunError                    a run ended early (in `reports`: it carries the report)
│   ├── RunFailedError          the model or a tool failed
│   │   └── OutputError         the final answer does not fit the output type
│   ├── GuardrailTrippedError   a guardrail ended it
│   ├── RunLimitError           the step cap, the budget or the repetition limit was reached
│   ├── InputRefusedError       an input filter refused the message
│   └── RunInterruptedError     it was stopped or aborted
└── SessionError                a saved session could not be read or written
    └── SessionOpenError        another program has it open
```

Errors of tools reach the model as results (`ToolResult(is_error=True)`).
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
"""Kinds of failed model requests; `ProviderError.retryable` is True if a retry may help."""

RefusalSubject = Literal["", "size", "media", "thinking"]
"""Part of a request that a server refused: its length, a picture or document, or earlier reasoning; empty if it is
something else, or not known."""

_KINDS: tuple[str, ...] = get_args(ProviderErrorKind)

RETRYABLE_KINDS: frozenset[str] = frozenset({"rate_limit", "overloaded", "server", "network", "timeout", "stream_cut"})
"""Kinds after which the same request may succeed later."""


class TuiAgentError(Exception):
    """Base of every error raised on purpose; its text is one sentence for the user."""


class ConfigurationError(TuiAgentError):
    """An option, setting or file is wrong. The text names it and, if possible, the correct form."""


class AlreadyRunningError(TuiAgentError):
    """A run was started while another one runs on the same agent (S4-34, S4-89)."""

    def __init__(self) -> None:
        super().__init__("AgentLoop is already running")


class OperationCancelledError(TuiAgentError):
    """Co-operative work found its cancellation token set."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """Reason of the cancellation, as text for the model and the screen."""


class InvalidArgumentsError(TuiAgentError):
    """A tool call's arguments do not fit the tool's schema; the text says where and what was expected."""


class ToolError(TuiAgentError):
    """A tool failed; the text is what the model reads (S1-23)."""


class ProviderError(TuiAgentError):
    """A request to the model failed, or its answer broke off."""

    def __init__(
        self,
        message: str,
        *,
        kind: ProviderErrorKind,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        summary: str = "",
        subject: RefusalSubject = "",
    ) -> None:
        """Store the message, which tells the user what happened, what was kept and what to do, and the facts.

        Raises:
            ConfigurationError: `kind` is not a `ProviderErrorKind`.
        """
        if kind not in _KINDS:
            raise ConfigurationError(f"ProviderError has no kind {kind!r}; choose from {', '.join(_KINDS)}")
        super().__init__(message)
        self.kind: ProviderErrorKind = kind
        """The loop retries those of `RETRYABLE_KINDS`."""
        self.status = status
        """HTTP status, if one was received; 200 for an error inside a stream."""
        self.retry_after = retry_after
        """Seconds to wait before a retry, if the server named them."""
        self.request_id = request_id
        self.subject: RefusalSubject = subject
        """Part of the request that the server refused; the loop sends the request once more without it."""
        self.summary = summary or message
        """Only what happened; by default the message. While the loop tries again, the user has nothing to do."""

    @property
    def retryable(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in RETRYABLE_KINDS


class CompactionError(TuiAgentError):
    """A compaction, or the undo of one, failed; the conversation is unchanged."""


class SessionError(TuiAgentError):
    """A saved session could not be read or written; the text names what was kept."""


class SessionWriteError(SessionError):
    """The disk refuses a session's file; the session can run without being saved."""


class SessionOpenError(SessionError):
    """Another program has the session open; nothing was changed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session {session_id} is already open in another tui-agent. Nothing was changed. Close it there first, or "
            f"continue in a copy (`tui-agent sessions fork {session_id}` prints its name for --resume), or continue "
            f"without saving (--resume {session_id} --no-session)."
        )
        self.session_id = session_id
