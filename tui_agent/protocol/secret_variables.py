"""Recognition of variables that hold a secret, by their name and by the form of their value."""

import re

_NAME = re.compile(
    r"""(?!.*_(?:FILE|PATH|DIR)$)  # Such a variable names a place, where the secret is protected as any other file.
    .*(?:
        (?<![A-Z]) KEYS? (?![A-Z]) | (?:API|ACCESS|AUTH|PRIVATE|SECRET|SIGNING|ENCRYPTION) KEYS? (?![A-Z])
      | TOKEN (?![A-Z]) | SECRETS? (?![A-Z]) | PASSW(?:OR)?D | PASSPHRASE | CREDENTIALS? (?![A-Z])
      | (?<!ASK) (?<!BY) (?<!COM) PASS (?![A-Z]) | (?<!^) (?<!OLD) PWD $
      | (?<![A-Z]) (?:O|BASIC|HTTP|PROXY)? AUTH (?![A-Z]) | AUTHORIZATION | BEARER | EXTRAHEADER
      | (?<![A-Z]) (?:PAT|DSN|JWT|COOKIES?|PRIVATE|SALT|MNEMONIC|OTP|PIN) (?![A-Z])
      | WEBHOOK | CONN(?:ECTION)? _? STR(?:ING)? | CONFIG _? (?:DATA|JSON|B(?:ASE)?64)
      | (?:DATABASE|DB|SQL|POSTGRES|POSTGRESQL|PG|MONGO|REDIS|AMQP|RABBITMQ|BROKER|SMTP|LDAP|JDBC) _ UR[IL]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_VALUE = re.compile(
    r"""://[^\s/?\#]*:[^\s/?\#@]+@ | ://[\w.%~+-]{16,}@ | ://hooks\.slack\.com/ | /api/webhooks/ | PRIVATE\ KEY-----
    | (?i:\b(?:\w*passw(?:or)?d|pwd|token|secret|api_?key|access_?key|account_?key|sig|signature) = [^\s&;])
    | (?i:\b(?:basic|bearer)\s+[\w+/=.-]{8}) | \beyJ[\w-]+\.eyJ
    | \b(?:gh[oprsu]_|github_pat_|glpat-|sk-|[rs]k_live_|xox[a-z]-|AKIA|ASIA|AIza|ya29\.|npm_|hf_|pypi-)[\w-]{12}
    """,
    re.VERBOSE,
)


def is_secret_variable(name: str, value: str = "") -> bool:
    """Return True if a variable has the name of a secret, or a value such as an address with a password or a token."""
    return _NAME.match(name) is not None or holds_secret(value)


def holds_secret(text: str) -> bool:
    """Return True if a text holds an address with a password, a token of a known form or a private key."""
    return _VALUE.search(text) is not None
