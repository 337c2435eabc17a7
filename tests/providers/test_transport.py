"""The same words over every kind of transport, or a clear failure (PF 3, PF 9, PF 14)."""

import asyncio
import gzip
import resource
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tertulia.core.errors import CannotStart
from tertulia.providers.limits import Limits
from tests.calls import counted_calls
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, Listener, NewListener
from tests.upstream.scripted import Bare, Finish, Flood, Head, Raw, Stall, Upstream, refuses

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)
ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello."}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip", gzip.compress(ANSWER)), ("deflate", zlib.compress(ANSWER))]
)
async def test_a_compressed_answer_is_read_though_none_was_asked_for(
    upstream: Upstream, listener: Listener, encoding: str, body: bytes
) -> None:
    upstream.plays((Head(headers={"Content-Encoding": encoding}), Raw(body), Bare()))
    heard = await listener.ask()
    assert heard.text == "Hello."
    assert upstream.last.headers["accept-encoding"] == "identity"


@every_dialect
@pytest.mark.parametrize("status", [302, 307, 308])
async def test_nobody_is_sent_on_to_another_address(
    upstream: Upstream, listener: Listener, key: str, status: int
) -> None:
    """What was asked, and the key, are for the one it was meant for (SF, rule 4)."""
    upstream.plays(refuses(status, location=f"{upstream.url}/elsewhere"))
    heard = await listener.ask(key)
    assert heard.code is not None
    assert "/elsewhere" not in {seen.path for seen in upstream.requests}


async def test_a_compression_nobody_knows_is_a_clear_failure(upstream: Upstream, listener: Listener) -> None:
    upstream.plays((Head(headers={"Content-Encoding": "br"}), Raw(b"\x0b\x02\x80abc\x03"), Bare()))
    heard = await listener.ask()
    assert heard.code in ("malformed", "cut", "unavailable")
    assert heard.text == ""


async def test_a_small_body_that_unpacks_to_gigabytes_is_left(upstream: Upstream, listener: Listener) -> None:
    bomb = gzip.compress(b": " + b"a" * (64 << 20))
    upstream.plays((Head(headers={"Content-Encoding": "gzip"}), Raw(bomb), Stall()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    heard = await listener.ask()
    assert heard.code == "too_large"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


async def test_a_body_that_ends_with_the_connection_is_read(upstream: Upstream, listener: Listener) -> None:
    upstream.plays((Head(headers={"Connection": "close"}, is_chunked=False), Raw(ANSWER), Bare()))
    assert (await listener.ask()).text == "Hello."


async def test_a_body_shorter_than_promised_counts_when_it_has_its_last_word(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((Head(headers={"Content-Length": "9999"}, is_chunked=False), Raw(ANSWER), Bare()))
    heard = await listener.ask()
    assert (heard.text, heard.code) == ("Hello.", None)


async def test_a_body_longer_than_promised_is_cut_where_it_was_promised_to_end(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((Head(headers={"Content-Length": "70"}, is_chunked=False), Raw(ANSWER), Bare()))
    heard = await listener.ask()
    assert heard.code in ("cut", "unavailable", "malformed")
    assert heard.end is None


@every_dialect
async def test_what_is_not_http_is_a_clear_failure(new_listener: NewListener, key: str) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        heard = await at_port(new_listener, server.sockets[0].getsockname()[1]).ask(key)
    assert heard.code in ("malformed", "unavailable")


@every_dialect
async def test_a_flood_of_events_neither_blocks_the_others_nor_fills_the_memory(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    """A million events in a second: what the limit lets through is read in turns."""
    event = b'data: {"type":"ping","choices":[],"candidates":[]}\n\n'
    upstream.plays((Flood(event * 1000, 1000), Finish()))
    listener = new_listener(Limits(answer_events=50_000))
    await listener.providers.warm()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with counted_calls() as calls:
        ticking = asyncio.create_task(longest_turn(calls))
        heard = await listener.ask(key)
        ticking.cancel()
        longest = await ticking
    assert heard.code == "too_large"
    assert longest < 100_000, "a flood is read in slices; whole it is some 150,000 calls"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


async def longest_turn(calls: Callable[[], int]) -> int:
    """The most calls others made between two of our turns on the loop."""
    longest, last = 0, calls()
    try:
        while True:
            await asyncio.sleep(0)
            longest, last = max(longest, calls() - last), calls()
    except asyncio.CancelledError:
        return longest


# --- no connection (PF 3) ----------------------------------------------------------------------------------


def at_port(new_listener: NewListener, port: int, scheme: str = "http", **how: Limits) -> Listener:
    root = f"{scheme}://127.0.0.1:{port}"
    urls = {"OPENAI_BASE_URL": f"{root}/v1", "ANTHROPIC_BASE_URL": root, "GOOGLE_BASE_URL": root}
    return new_listener(how.get("limits"), **urls)


@every_dialect
async def test_a_closed_port_is_told_after_two_retries(new_listener: NewListener, key: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        heard = await at_port(new_listener, unused.getsockname()[1]).ask(key)
    assert (heard.code, len(heard.waits)) == ("unavailable", 2)
    assert heard.fault is not None
    assert heard.fault.message.endswith("could not be reached.")


@every_dialect
async def test_a_connection_torn_down_at_once_is_told(new_listener: NewListener, key: str) -> None:
    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(slam, "127.0.0.1", 0)
    async with server:
        heard = await at_port(new_listener, server.sockets[0].getsockname()[1]).ask(key)
    assert (heard.code, len(heard.waits)) == ("unavailable", 2)


@pytest.mark.parametrize("key", [CHAT, ANTHROPIC])
async def test_a_certificate_nobody_vouches_for_gets_no_word_from_us(
    new_listener: NewListener, tmp_path: Path, key: str
) -> None:
    async with pretender(tmp_path) as (port, received):
        heard = await at_port(new_listener, port, "https").ask(key)
    assert heard.fault is not None
    assert (heard.code, heard.waits) == ("unavailable", [])
    assert heard.fault.message.endswith("could not be verified, so nothing was sent.")
    assert received == []


@asynccontextmanager
async def pretender(folder: Path) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A TLS server with a certificate it signed itself."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1000))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(folder))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], received


def self_signed(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "self-signed.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


# --- nothing leaves ----------------------------------------------------------------------------------------


@every_dialect
async def test_under_pytest_no_provider_is_asked_outside_this_machine(
    new_listener: NewListener, key: str
) -> None:
    away = {f"{name}_BASE_URL": "https://198.51.100.7" for name in ("OPENAI", "ANTHROPIC", "GOOGLE")}
    with pytest.raises(CannotStart, match="only providers on loopback"):
        await new_listener(**away).ask(key)


async def test_proxy_variables_are_not_obeyed(
    upstream: Upstream, new_listener: NewListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await new_listener().ask(CHAT)).code is None
    assert (await new_listener().ask(ANTHROPIC)).code is None
