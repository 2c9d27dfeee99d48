"""Masking of credentials in text of servers and libraries, before it is quoted."""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "[hidden]"
"""Replacement for a credential."""

SHORTEST_MASKED = 8
"""Shortest credential in characters that is masked wherever it occurs. Shorter ones are placeholders for servers of the
user's own, such as `x` or `ollama`, and parts of ordinary words."""

_BEGINS = (
    r"(?P<before>(?<![a-z0-9])"
    # An escape sequence ends in a letter or digit, yet the credential begins after it.
    r"|%[0-9a-f]{2}|\\(?:[abfnrtv0]|x[0-9a-f]{2}|u[0-9a-f]{4})|\x1b\[[0-9;]*[a-z])"
)
_ENDS = r"(?![a-z0-9])"
_KEY_SHAPE = re.compile(r"\bsk-[A-Za-z0-9_-]{8,}")
_BEARER = re.compile(r"\bbearer\s+(?P<value>[^\s'\",}]+)", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{0,19}[.:;!?)]*")


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the credentials, and without anything else that has the form of one.

    A credential of at least `SHORTEST_MASKED` characters is masked, in any case and also with percent or JSON escapes,
    unless it is a part of a longer word of ASCII letters and digits. A shorter one is masked only after `Bearer`.
    """
    known = frozenset(secrets)
    forms = {form for secret in known if len(secret) >= SHORTEST_MASKED for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = _pattern(form).sub(_hide_after, text)

    def hide_value(found: re.Match[str]) -> str:
        value = found["value"]
        return HIDDEN if value in known or not _PLAIN_WORD.fullmatch(value) else found[0]

    return _KEY_SHAPE.sub(HIDDEN, _BEARER.sub(hide_value, text))


def _forms(secret: str) -> tuple[str, ...]:
    """Return the credential as it is, in a URL and in a JSON string."""
    return secret, quote(secret, safe=""), json.dumps(secret)[1:-1]


def _pattern(form: str) -> re.Pattern[str]:
    # Punctuation at an end is a boundary itself, as `=` is after Base64.
    begins = _BEGINS if form[0].isalnum() else "(?P<before>)"
    ends = _ENDS if form[-1].isalnum() else ""
    # Without case: a host name, for example, is shown in lower case.
    return re.compile(f"{begins}{re.escape(form)}{ends}", re.IGNORECASE | re.ASCII)


def _hide_after(found: re.Match[str]) -> str:
    return f"{found['before']}{HIDDEN}"
