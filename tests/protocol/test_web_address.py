"""The host of a web address, and addresses whose host is unclear."""

from tests.support.table import table
from tui_agent.protocol.web_address import host_of


@table(
    ("url", "host"),
    [
        ("https://Docs.Python.org:443/x?y#z", "docs.python.org"),
        ("http://python.org.", "python.org"),
        ("https://[::1]/", "::1"),
        ("https://user@python.org", None),
        ("https://a\\b.org", None),
        ("https://python.org\t.evil.org", None),
        ("https://pyth\u00f6n.org", None),
        ("https://python%2eorg", None),
        ("ftp://python.org", None),
        ("//python.org", None),
        ("https://", None),
        ("https://[x", None),
        ("https://.", None),
        ("", None),
    ],
)
def test_an_ambiguous_host_is_none(url: str, host: str | None) -> None:
    assert host_of(url) == host
