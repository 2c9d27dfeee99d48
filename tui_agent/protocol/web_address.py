"""The host of a web address, as every part of the program reads it."""

from urllib.parse import urlsplit


def host_of(url: str) -> str | None:
    """Return the host of a web address in lower case, or None where programs may disagree about the host."""
    if not url.isascii() or any(letter <= " " or letter in "\\\x7f" for letter in url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or "%" in parts.netloc:
        return None
    return host.rstrip(".") or None
