"""Words that mark the dangers of a request, such as `deletes files`. Pure.

They help the user to read and decide nothing: a request without marks is not harmless.
"""

import re
from collections.abc import Iterator

from tui_agent.protocol.permissions import ApprovalRequest

LONGEST_READ = 20_000
"""Characters of a command that are searched for names of secrets."""

OUTSIDE = "outside the workspace"
"""Beginning of the reason for a question about such a path, and the mark for it."""
_SECRET = re.compile(
    r"\b(?:is|may be) private\b|environments? of other processes|(?:^|[\s/'\"=])"
    r"(?:\.env(?:\.\w+)?|\.netrc|\.npmrc|\.pypirc|id_(?:rsa|ed25519|ecdsa)|\.ssh/|\.aws/|\.gnupg/|\S+\.pem)(?=$|[\s/'\";|&)]|\w)"
)


def danger_marks(request: ApprovalRequest) -> tuple[str, ...]:
    """Return a few words on each danger that the request shows, the worst of each part first."""
    return tuple(dict.fromkeys(_marks(request)))


def _marks(request: ApprovalRequest) -> Iterator[str]:
    # The reason is that of the worst part.
    for part in sorted(request.parts, key=lambda part: part.reason != request.reason):
        yield from part.dangers
    preview = request.preview
    command = preview.text[:LONGEST_READ] if preview is not None and preview.kind == "command" else ""
    reasons = "\n".join((request.reason, *(part.reason for part in request.parts)))
    if OUTSIDE in reasons:
        yield OUTSIDE
    places = "\n".join((command, reasons, *request.targets))
    if _SECRET.search(places):
        yield "may show secrets" if command else "may hold secrets"
