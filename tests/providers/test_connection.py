"""The environment of real machines: proxies, exceptions to them, certificates, and servers that are not there."""

import asyncio
import gc
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.fussy_server import FussyServer
from tests.support.stream_helpers import HELLO, heard, text_of
from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.web_address import find_proxy
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.demo.demo_server import block_frames, closing_frames, opening_frames
from tui_agent.providers.model_catalog import how_to_start

MORE_AUTHORITIES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", *MORE_AUTHORITIES)
STREAM = b"".join(
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        *opening_frames("msg_1", "m", {"input_tokens": 1}),
        *block_frames(0, {"type": "text", "text": "Hello."}),
        *closing_frames("end_turn", 2, None),
    )
)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def asked(address: str, notices: list[str] | None = None) -> tuple[str, ProviderError | None]:
    """Return the answer of a server, or the error of the one request."""
    async with aclosing(AnthropicProvider("some-model", base_url=address)) as provider:
        provider.on_warning = None if notices is None else notices.append
        facts, error = await heard(provider.stream(HELLO))
        return text_of(facts), error


@asynccontextmanager
async def answering(certificate: tuple[Path, Path] | None = None, reply: bytes = STREAM) -> AsyncGenerator[str]:
    """Run a server that gives every client the same reply, whatever its `Host`, and yield its address."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"


DIRECT, PROXIED = False, True
EXCEPTIONS: tuple[tuple[str, str, bool], ...] = (
    ("127.0.0.1,[::1]", "http://127.0.0.1:80", DIRECT),
    ("127.0.0.1,[::1]", "http://[::1]:80", DIRECT),
    ("[::1]:81", "http://[::1]:80", PROXIED),
    ("::1", "http://[::1]:80", DIRECT),
    ("127.0.0.0/8", "http://127.0.0.1", DIRECT),
    ("10.0.0.0/8 192.168.0.0/16;fd00::/8", "http://[fd00::1]", DIRECT),
    ("10.0.0.0/8 , 192.168.0.0/16", "http://192.168.7.7", DIRECT),
    ("10.0.0.0/8", "http://192.168.7.7", PROXIED),
    (".corp.example", "http://a.corp.example", DIRECT),
    ("*.corp.example", "http://a.corp.example", DIRECT),
    ("corp.example", "http://a.corp.example", DIRECT),
    ("corp.example", "http://notcorp.example", PROXIED),
    ("CORP.example.", "http://corp.EXAMPLE", DIRECT),
    ("a.example:8080", "http://a.example:8080", DIRECT),
    ("a.example:8080", "http://a.example", PROXIED),
    ("192.168.*", "http://192.168.7.7", DIRECT),
    ("http://a.example", "http://a.example", DIRECT),
    ("*", "http://a.example", DIRECT),
    ("", "http://a.example", PROXIED),
    (" , ", "http://a.example", PROXIED),
    ("[::1", "http://a.example", PROXIED),
)


def test_exceptions_to_a_proxy_are_read_in_all_their_forms() -> None:
    found = [
        (entries, address, find_proxy(address, {"HTTP_PROXY": "http://p:1", "NO_PROXY": entries}).proxy is not None)
        for entries, address, _ in EXCEPTIONS
    ]

    assert found == list(EXCEPTIONS)


PROXIES: tuple[tuple[Mapping[str, str], str | None], ...] = (
    ({"ALL_PROXY": "socks://127.0.0.1:1080/"}, "socks5://127.0.0.1:1080 (set by ALL_PROXY)"),
    ({"all_proxy": "socks5h://me:pw@h:1080"}, "socks5h://h:1080 (set by all_proxy)"),
    ({"HTTPS_PROXY": "h:3128", "ALL_PROXY": "socks5://x:1"}, "http://h:3128 (set by HTTPS_PROXY)"),
    ({"HTTP_PROXY": "http://h:3128"}, None),
    ({"https_proxy": " ", "HTTPS_PROXY": ""}, None),
)


def test_proxies_are_read_in_all_their_forms_and_shown_without_a_password() -> None:
    found = [find_proxy("https://api.example", environment).proxy for environment, _ in PROXIES]

    assert [None if proxy is None else str(proxy) for proxy in found] == [shown for _, shown in PROXIES]


@table("value", ["socks4://h:1", "http://[::1", "ftp://h:1", "http://h:99999", "http://"])
def test_a_proxy_that_cannot_be_used_is_an_error_that_names_the_variable(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^ALL_PROXY does not name a usable proxy"):
        find_proxy("https://api.example", {"ALL_PROXY": value})


async def test_a_dead_proxy_is_named_with_its_variable_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: dict[str, str] = {}
    async with FussyServer() as server:
        for name, value in (("HTTP_PROXY", "http://me:pw@127.0.0.1:1"), ("ALL_PROXY", "socks://127.0.0.1:1")):
            with monkeypatch.context() as patch:
                patch.setenv(name, value)
                _, error = await asked(server.base_url)
            assert error is not None
            assert not error.retryable
            texts[name] = str(error).replace(server.base_url, "http://HERE")

    assert texts["HTTP_PROXY"] == (
        "The proxy http://127.0.0.1:1 (set by HTTP_PROXY) does not connect to http://HERE: Connection refused. The "
        "conversation is kept; correct or unset HTTP_PROXY, or name the server in NO_PROXY."
    )
    assert "socks5://127.0.0.1:1 (set by ALL_PROXY)" in texts["ALL_PROXY"]


@asynccontextmanager
async def socks_proxy() -> AsyncGenerator[int]:
    """Run a SOCKS proxy without a password, and yield its port."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        *_, kind = await reader.readexactly(4)
        length = 4 if kind == 1 else (await reader.readexactly(1))[0]
        raw = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2), "big")
        host = ".".join(map(str, raw)) if kind == 1 else raw.decode()
        there, back = await asyncio.open_connection(host, port)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        async with asyncio.TaskGroup() as group:
            group.create_task(pipe(reader, back))
            group.create_task(pipe(there, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("scheme", ["socks5", "socks"])
async def test_a_socks_proxy_works(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    async with FussyServer() as server, socks_proxy() as port:
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:{port}")

        assert await asked(server.base_url) == ("Hello.", None)


async def test_a_proxy_with_an_unread_exception_says_so_once_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    notices: list[str] = []
    async with answering() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "[::1")

        assert await asked("http://model.example", notices) == ("Hello.", None)

    assert notices == ["NO_PROXY: '[::1' cannot be read and has no effect."]


NOTHING = b"\r\ncontent-length: 0\r\n\r\n"
PROXY_ANSWERS: tuple[tuple[str, bytes, bool, str], ...] = (
    ("HTTPS_PROXY=http", b"HTTP/1.1 407 Proxy Authentication Required" + NOTHING, False, "does not connect to"),
    ("HTTPS_PROXY=http", b"HTTP/1.1 403 Forbidden" + NOTHING, False, "does not connect to"),
    ("HTTPS_PROXY=http", b"HTTP/1.1 502 Bad Gateway" + NOTHING, True, "does not connect to"),
    ("HTTPS_PROXY=http", b"", True, "was lost by the proxy http://127.0.0.1"),
    ("ALL_PROXY=socks5", b"\x05\xff", False, "does not connect to"),
    ("ALL_PROXY=socks5", b"HTTP/1.1 400 Bad Request" + NOTHING, False, "does not connect to"),
    ("HTTP_PROXY=http", b"HTTP/1.1 407 Proxy Authentication Required" + NOTHING, False, "A proxy wants a user name"),
)


# The SOCKS client of the HTTP library leaves the connection to a proxy that refuses to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_a_proxy_that_refuses_is_named_and_only_asked_again_if_that_may_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong: dict[bytes, object] = {}
    for setting, reply, is_retried, words in PROXY_ANSWERS:
        variable, _, scheme = setting.partition("=")
        async with answering(reply=reply) as proxy:
            with monkeypatch.context() as patch:
                patch.setenv(variable, proxy.replace("http", scheme))
                _, error = await asked(f"http{'s' * (variable == 'HTTPS_PROXY')}://model.example")
        if error is None or error.retryable is not is_retried or words not in str(error):
            wrong[reply] = error
    del error
    gc.collect()

    assert wrong == {}


async def test_a_server_that_is_not_there_is_explained_and_not_asked_again() -> None:
    async with FussyServer() as server:
        for address, words in (
            (
                "http://localhost:1",
                "No server answers at http://localhost:1: Connection refused. The conversation is kept; start it "
                "there, such as with `llama-server --jinja -m MODEL.gguf --port 1`, then try again.",
            ),
            ("http://no-such-host.invalid", "no-such-host.invalid"),
            (server.base_url.replace("http:", "https:"), "use http:// in the base URL"),
        ):
            _, error = await asked(address)
            assert words in str(error)
            assert error is not None
            assert not error.retryable or words == "no-such-host.invalid", "a name server may answer later"


@table(
    ("address", "profile", "phrase"),
    [
        ("http://localhost:11434", None, "start Ollama there (`ollama serve`)"),
        ("http://127.0.0.1:8080", "box", "start llama.cpp there (`llama-server --jinja -m MODEL.gguf`)"),
        ("http://[::1]:9000", "ollama", "start Ollama there (`OLLAMA_HOST=127.0.0.1:9000 ollama serve`)"),
        ("http://localhost:1234", "vllm", "start vLLM there (`vllm serve MODEL --port 1234`)"),
    ],
)
def test_a_server_is_named_by_its_profile_or_its_port(address: str, profile: str | None, phrase: str) -> None:
    assert how_to_start(address, profile) == phrase


def make_certificate(folder: Path, host: str, *, days: int = 1) -> tuple[Path, Path]:
    """Write a certificate that signs itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(pem)
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "ca.pem", folder / "key.pem"


async def test_a_certificate_of_a_private_authority_names_the_variable_that_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, _ = certificate = make_certificate(tmp_path, "127.0.0.1")
    async with answering(certificate) as address:
        _, error = await asked(address)
        answers: dict[str, object] = {}
        for name in ("SSL_CERT_FILE", *MORE_AUTHORITIES):
            with monkeypatch.context() as patch:
                patch.setenv(name, str(authority))
                answers[name] = await asked(address)
        notices: list[str] = []
        monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(tmp_path / "gone.pem"))
        await asked(address, notices)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
        _, missing = await asked(address)

    assert error is not None
    assert not error.retryable
    assert f"The certificate of the server at {address} cannot be trusted: self-signed certificate" in str(error)
    assert "set SSL_CERT_FILE" in str(error)
    assert answers == dict.fromkeys(("SSL_CERT_FILE", *MORE_AUTHORITIES), ("Hello.", None))
    assert [notice for notice in notices if notice.startswith("NODE_EXTRA_CA_CERTS: ")] == notices
    assert notices
    assert "SSL_CERT_FILE: " in str(missing)


def certificate_faults() -> Iterator[tuple[str, int, str]]:
    yield "127.0.0.2", 1, "check the host in the base URL"
    yield "127.0.0.1", -1, "check the clock of this machine"


@pytest.mark.parametrize(("host", "days", "advice"), certificate_faults())
async def test_a_certificate_that_no_authority_helps_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, days: int, advice: str
) -> None:
    authority, _ = certificate = make_certificate(tmp_path, host, days=days)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with answering(certificate) as address:
        _, error = await asked(address)

    assert advice in str(error)
