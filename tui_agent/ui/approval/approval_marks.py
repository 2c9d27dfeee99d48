"""Words that mark the dangers of a request, such as `deletes files`. Pure.

They help the user to read and decide nothing: a request without marks is not harmless.
"""

import re
from collections.abc import Iterator

from tui_agent.protocol.permissions import ApprovalRequest

LONGEST_READ = 20_000
"""Characters of a command that are searched for dangers."""

_BEGIN = r"(?:^|[;&|(\n`]|\b(?:sudo|doas|xargs|exec|then|do|env|time|nohup)\s(?:\s*-\S+)*)\s*"
"""The beginning of a simple command in a text."""
_GIT = rf"{_BEGIN}git\s(?:[^;&|\n]*\s)?"
_SHELL = r"(?:ba|z|da|k|fi)?sh|python[\d.]*|perl|ruby|node"
_FETCH = rf"{_BEGIN}(?:curl|wget|fetch)\b"

_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "runs code from the network",
        re.compile(
            rf"{_FETCH}[^;&\n]*\|\s*(?:sudo\s+)?(?:\S*/)?(?:{_SHELL})\b"
            rf"|\b(?:{_SHELL})\s[^;|\n]*(?:<\(|\$\(|`)\s*(?:curl|wget)\b"
        ),
    ),
    ("runs as another user", re.compile(rf"{_BEGIN}(?:sudo|doas|su|pkexec)\b")),
    (
        "deletes files",
        re.compile(
            rf"{_BEGIN}(?:\S*/)?(?:rm|rmdir|unlink|shred)\b|{_BEGIN}find\b[^;|\n]*\s-delete\b|{_GIT}(?:clean|rm)\b"
        ),
    ),
    (
        "discards changes",
        re.compile(rf"{_GIT}(?:reset\s[^;&|\n]*--hard|restore\b|checkout\s[^;&|\n]*--\s|stash\s+(?:drop|clear))"),
    ),
    ("force-pushes", re.compile(rf"{_GIT}push\b[^;&|\n]*\s(?:--force\S*|-\w*f\w*|--mirror|\+\S+)")),
    ("pushes", re.compile(rf"{_GIT}push\b")),
    (
        "publishes",
        re.compile(
            rf"{_BEGIN}(?:(?:npm|pnpm|yarn|cargo|poetry|uv|hatch|flit)\s+publish|twine\s+upload|gem\s+push"
            r"|(?:docker|podman)\s+push|gh\s+release\s+create)\b"
        ),
    ),
    (
        "uses the network",
        re.compile(
            rf"{_FETCH}|{_BEGIN}(?:ssh|scp|rsync|sftp|nc|telnet)\b"
            rf"|{_BEGIN}(?:pip[\d.]*|npm|pnpm|yarn|cargo|gem|brew|apt(?:-get)?)\s+(?:install|add|update|upgrade)\b"
            rf"|{_GIT}(?:fetch|pull|clone)\b"
        ),
    ),
)
_IMPLIED = {"pushes": "force-pushes", "uses the network": "runs code from the network"}
"""Marks that another one includes."""

_OUTSIDE = re.compile(r"outside the workspace")
_SECRET = re.compile(
    r"\b(?:is|may be) private\b|environments? of other processes|(?:^|[\s/'\"=])"
    r"(?:\.env(?:\.\w+)?|\.netrc|\.npmrc|\.pypirc|id_(?:rsa|ed25519|ecdsa)|\.ssh/|\.aws/|\.gnupg/|\S+\.pem)(?=$|[\s/'\";|&)]|\w)"
)


def danger_marks(request: ApprovalRequest) -> tuple[str, ...]:
    """Return a few words on each danger that the request shows, the worst first."""
    return tuple(_marks(request))


def _marks(request: ApprovalRequest) -> Iterator[str]:
    preview = request.preview
    command = preview.text[:LONGEST_READ] if preview is not None and preview.kind == "command" else ""
    found = [mark for mark, pattern in _COMMANDS if command and pattern.search(command)]
    yield from (mark for mark in found if _IMPLIED.get(mark) not in found)
    reasons = "\n".join((request.reason, *(part.reason for part in request.parts)))
    if _OUTSIDE.search(reasons):
        yield "outside the workspace"
    places = "\n".join((command, reasons, *request.targets))
    if _SECRET.search(places):
        yield "may show secrets" if command else "may hold secrets"
