"""Directories into which a command unpacks an archive, whose members only the archive names."""

import re
from collections.abc import Sequence

_NEVER = re.compile(r"(?!)")
_LETTERS = re.compile(r"-?[a-z]*x[a-z]*\Z|--extract\Z")
_CPIO = (
    re.compile(r"-[a-z0-9]*[ip][a-z0-9]*\Z|--extract\Z|--pass-through\Z"),
    re.compile(r"-[a-z0-9]*t[a-z0-9]*\Z|--list\Z|--to-stdout\Z"),
    re.compile(r"-D(.*)|--directory(?:=(.*))?\Z"),
)
_SEVEN = (re.compile(r"[xe]\Z"), re.compile(r"-so\Z"), re.compile(r"-o(.+)"))
_RAR = (re.compile(r"[xe]\Z"), _NEVER, re.compile(r"(.*/)\Z"))
_FORMS = {
    "ar": (_LETTERS, _NEVER, re.compile(r"--output(?:=(.*))?\Z")),
    "atool": (re.compile(r"-[a-z]*[xX]|--extract"), _NEVER, re.compile(r"-X(.*)|--extract-to(?:=(.*))?\Z")),
    "jar": (_LETTERS, _NEVER, re.compile(r"--dir(?:=(.*))?\Z")),
    "pax": (re.compile(r"-[a-z]*r"), _NEVER, _NEVER),
    "unar": (re.compile(r""), _NEVER, re.compile(r"-(?:o|output-directory)\Z()")),
    **dict.fromkeys(("cpio", "bsdcpio"), _CPIO),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _SEVEN),
    **dict.fromkeys(("rar", "unrar"), _RAR),
}
"""For each program the word with which it unpacks, the word with which it only prints, and the one with, or before, the
directory."""


def unpacks_into(name: str, words: Sequence[str]) -> str | None:
    """Return the directory that a command (with its name) unpacks into, or None."""
    if name not in _FORMS:
        return None
    unpacks, prints, directs = _FORMS[name]
    options = words[1:2] if unpacks is _LETTERS or name.startswith(("7z", "rar", "unrar")) else words[1:]
    if not any(map(unpacks.match, options)) or any(map(prints.match, words)):
        return None
    for word, after in zip(words[1:], (*words[2:], "."), strict=True):
        if found := directs.match(word):
            return next(filter(None, found.groups()), after)
    return "."
