"""Recognition of variables that hold a secret, by name and by form of value; and masking of secrets in text."""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

_NAME = re.compile(
    r"""(?!.*_(?:FILE|PATH|DIR)$)  # Such a variable names a place, where the secret is protected as any other file.
    .*(?:
        (?<![A-Z]) KEYS? (?![A-Z]) | (?:API|ACCESS|AUTH|MASTER|PRIVATE|SECRET|SIGNING|ENCRYPTION|WRITE) KEYS? (?![A-Z])
      | TOKEN (?![A-Z]) | SECRETS? (?![A-Z]) | PASSW(?:OR)?D | PASSPHRASE | CREDENTIALS? (?![A-Z])
      | (?<!ASK) (?<!BY) (?<!COM) PASS (?![A-Z]) | (?<!^) (?<!OLD) PWD $
      | (?<![A-Z]) (?:O|BASIC|HTTP|PROXY)? AUTH (?![A-Z]) | AUTHORIZATION | BEARER | EXTRAHEADER
      | (?<![A-Z]) (?:PAT|DSN|JWT|COOKIES?|PRIVATE|SALT|MNEMONIC|OTP|PIN) (?![A-Z])
      | PW (?![A-Z]) | (?<![A-Z]) (?:SAS|PEM|PFX) (?![A-Z]) | ACCOUNT _ JSON
      | SEED _? PHRASE | (?:MFA|OTP|WALLET) _ SEED
      | WEBHOOK | HOOK_URL | CONN(?:ECTION)? _? STR(?:ING)? | CONFIG _? (?:DATA|JSON|B(?:ASE)?64)
      | (?:DATABASE|DB|SQL|POSTGRES|POSTGRESQL|PG|MONGO|REDIS|AMQP|RABBITMQ|BROKER|SMTP|LDAP|JDBC) _ UR[IL]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_VALUE = re.compile(
    r"""://[^\s/?\#]*:[^\s/?\#@]+@ | ://[\w.%~+-]{16,}@ | ://hooks\.slack\.com/ | /api/webhooks/
    | PRIVATE\ KEY(?:\ BLOCK)?----- | AGE-SECRET-KEY-
    | (?i:\b(?:\w*passw(?:or)?d|pwd|token|secret|api_?key|\w*access_?key|account_?key|sig|signature) = [^\s&;])
    | (?i:\b(?:basic|bearer)\s+[\w+/=.-]{8}) | \beyJ[\w-]+\.eyJ
    | \b(?:gh[oprsu]_|github_pat_|gl(?:pat-|sa_)|sk-|[rs]k_(?:live|test)_|whsec_|xox[a-z]-|AKIA|ASIA|AIza|ya29\.|npm_
        |hf_|pypi-|dop_v1_|dckr_pat_|shp[a-z]{2}_|lin_api_|tskey-|ATATT|SG\.)[\w-]{12}
    """,
    re.VERBOSE,
)


def is_secret_variable(name: str, value: str = "") -> bool:
    """Return True if a variable has the name of a secret, or a value such as an address with a password or a token."""
    return _NAME.match(name) is not None or holds_secret(value)


def holds_secret(text: str) -> bool:
    """Return True if a text holds an address with a password, a token of a known form or a private key."""
    return _VALUE.search(text) is not None


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
    # The longest first, because one key may be the beginning of another.
    for form in sorted(forms, key=len, reverse=True):
        text = _pattern(form).sub(lambda found: f"{found['before']}{HIDDEN}", text)

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
