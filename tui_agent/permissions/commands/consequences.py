"""Consequences of a command in a few words, such as `deletes files`. They explain a question and decide nothing: a
command without a known consequence is not harmless."""

import re
from collections.abc import Sequence

from .wrappers import INTERPRETERS, base_name

OUTSIDE = "outside the workspace"
NETWORK_CODE = "runs code from the network"
_NETWORK = "uses the network"
_LOADERS = frozenset(("curl", "wget"))

_PATTERNS = {
    "runs as another user": r"(?:sudo|doas|su|pkexec|runuser)\b",
    "overwrites disks": r"(?:dd|mkfs\S*|fdisk|parted|wipefs|blkdiscard)\b",
    "deletes files": r"(?:rm|rmdir|unlink|shred)\b|git (?:rm|clean)\b|find .* -delete\b",
    "force-pushes": r"git push .*(?:--force|--mirror|-f\b|\+)",
    "discards changes": r"git (?:restore\b|reset .*--hard|checkout .*(?:--|-f|\.)(?: |$)|stash (?:drop|clear))",
    "pushes": r"git push\b",
    _NETWORK: r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|telnet|ftp)\b|git (?:fetch|pull|clone|ls-remote)\b"
    r"|(?:npm|pip3?|cargo|uv|gem|brew|apt|apt-get) .*(?:install|add|publish)\b",
    "ends processes": r"(?:kill|pkill|killall)\b",
}
"""Patterns for the words of a command, the worst consequence first."""
_COMPILED = {text: re.compile(pattern) for text, pattern in _PATTERNS.items()}
_LONGEST_READ = 4_000


def consequences_of(argv: Sequence[str], *, before: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the known consequences of a simple command, the worst first; it reads the output of `before`, if any."""
    if not argv:
        return ()
    line = " ".join((base_name(argv[0]), *argv[1:]))[:_LONGEST_READ]
    found = [text for text, pattern in _COMPILED.items() if pattern.match(line)]
    is_loaded = bool(before) and base_name(before[0]) in _LOADERS and base_name(argv[0]) in INTERPRETERS
    return (*([NETWORK_CODE] if is_loaded else []), *found)
