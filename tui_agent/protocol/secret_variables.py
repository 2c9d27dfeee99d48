"""Recognition of variables that hold a secret, by their name and by the form of their value."""

import re

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
