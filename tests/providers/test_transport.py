"""Transport: replies arrive over every kind of connection, or fail with a clear error (PF 3, PF 9, PF 14)."""

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
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, Caller, NewCaller
from tests.upstream.scripted import Bare, Finish, Flood, Head, Raw, Stall, Upstream, refuses

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)
ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello."}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip", gzip.compress(ANSWER)), ("deflate", zlib.compress(ANSWER))]
)
async def test_a_compressed_response_is_decoded_although_not_requested(
    upstream: Upstream, caller: Caller, encoding: str, body: bytes
) -> None:
    upstream.plays((Head(headers={"Content-Encoding": encoding}), Raw(body), Bare()))
    reply = await caller.ask()
    assert reply.text == "Hello."
    assert upstream.last.headers["accept-encoding"] == "identity"


@every_dialect
@pytest.mark.parametrize("status", [302, 307, 308])
async def test_redirects_are_not_followed(upstream: Upstream, caller: Caller, key: str, status: int) -> None:
    """The prompt and the key are only for the configured address (SF, rule 4)."""
    upstream.plays(refuses(status, location=f"{upstream.url}/elsewhere"))
    reply = await caller.ask(key)
    assert reply.code is not None
    assert "/elsewhere" not in {request.path for request in upstream.requests}


async def test_an_unknown_compression_gives_an_error(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((Head(headers={"Content-Encoding": "br"}), Raw(b"\x0b\x02\x80abc\x03"), Bare()))
    reply = await caller.ask()
    assert reply.code in ("malformed", "cut", "unavailable")
    assert reply.text == ""


async def test_a_compression_bomb_is_refused_without_filling_the_memory(
    upstream: Upstream, caller: Caller
) -> None:
    bomb = gzip.compress(b": " + b"a" * (64 << 20))
    upstream.plays((Head(headers={"Content-Encoding": "gzip"}), Raw(bomb), Stall()))
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reply = await caller.ask()
    assert reply.code == "too_large"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before < 64 << 10


async def test_a_body_without_length_ends_with_the_connection(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((Head(headers={"Connection": "close"}, is_chunked=False), Raw(ANSWER), Bare()))
    assert (await caller.ask()).text == "Hello."


async def test_a_body_shorter_than_its_content_length_is_complete_with_a_finish_reason(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays((Head(headers={"Content-Length": "9999"}, is_chunked=False), Raw(ANSWER), Bare()))
    reply = await caller.ask()
    assert (reply.text, reply.code) == ("Hello.", None)


async def test_a_body_longer_than_its_content_length_is_cut_off(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((Head(headers={"Content-Length": "70"}, is_chunked=False), Raw(ANSWER), Bare()))
    reply = await caller.ask()
    assert reply.code in ("cut", "unavailable", "malformed")
    assert reply.end is None


@every_dialect
async def test_a_server_that_does_not_speak_http_gives_an_error(new_caller: NewCaller, key: str) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        reply = await at_port(new_caller, server.sockets[0].getsockname()[1]).ask(key)
    assert reply.code in ("malformed", "unavailable")


@every_dialect
async def test_a_flood_of_events_blocks_no_other_task_and_fills_no_memory(
    upstream: Upstream, new_caller: NewCaller, key: str
) -> None:
    """A million events in a second: other tasks run between the slices, up to the limit."""
    event = b'data: {"type":"ping","choices":[],"candidates":[]}\n\n'
    upstream.plays((Flood(event * 1000, 1000), Finish()))
    caller = new_caller(Limits(reply_events=50_000))
    await caller.providers.warm()
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with counted_calls() as calls:
        observer = asyncio.create_task(longest_turn(calls))
        reply = await caller.ask(key)
        observer.cancel()
        longest = await observer
    assert reply.code == "too_large"
    assert longest < 100_000, "a flood is read in slices; whole it is some 150,000 calls"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before < 64 << 10


async def longest_turn(calls: Callable[[], int]) -> int:
    """The most function calls that ran between two turns of this task."""
    longest, last = 0, calls()
    try:
        while True:
            await asyncio.sleep(0)
            longest, last = max(longest, calls() - last), calls()
    except asyncio.CancelledError:
        return longest


# --- no connection (PF 3) ----------------------------------------------------------------------------------


def at_port(new_caller: NewCaller, port: int, scheme: str = "http", **options: Limits) -> Caller:
    root = f"{scheme}://127.0.0.1:{port}"
    urls = {"OPENAI_BASE_URL": f"{root}/v1", "ANTHROPIC_BASE_URL": root, "GOOGLE_BASE_URL": root}
    return new_caller(options.get("limits"), **urls)


@every_dialect
async def test_a_closed_port_gives_an_error_after_two_retries(new_caller: NewCaller, key: str) -> None:
    with socket.socket() as closed_socket:
        closed_socket.bind(("127.0.0.1", 0))
        reply = await at_port(new_caller, closed_socket.getsockname()[1]).ask(key)
    assert (reply.code, len(reply.retries)) == ("unavailable", 2)
    assert reply.error is not None
    assert reply.error.message.endswith("could not be reached.")


@every_dialect
async def test_a_connection_reset_at_once_gives_an_error_after_two_retries(
    new_caller: NewCaller, key: str
) -> None:
    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(slam, "127.0.0.1", 0)
    async with server:
        reply = await at_port(new_caller, server.sockets[0].getsockname()[1]).ask(key)
    assert (reply.code, len(reply.retries)) == ("unavailable", 2)


@pytest.mark.parametrize("key", [CHAT, ANTHROPIC])
async def test_a_self_signed_certificate_is_refused_before_anything_is_sent(
    new_caller: NewCaller, tmp_path: Path, key: str
) -> None:
    async with self_signed_server(tmp_path) as (port, received):
        reply = await at_port(new_caller, port, "https").ask(key)
    assert reply.error is not None
    assert (reply.code, reply.retries) == ("unavailable", [])
    assert reply.error.message.endswith("could not be verified, so nothing was sent.")
    assert received == []


@asynccontextmanager
async def self_signed_server(folder: Path) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A TLS server with a self-signed certificate."""
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


# --- egress ------------------------------------------------------------------------------------------------


@every_dialect
async def test_the_loopback_policy_refuses_every_other_address(new_caller: NewCaller, key: str) -> None:
    remote_addresses = {
        f"{name}_BASE_URL": "https://198.51.100.7" for name in ("OPENAI", "ANTHROPIC", "GOOGLE")
    }
    with pytest.raises(CannotStart, match="Only providers on loopback"):
        await new_caller(**remote_addresses).ask(key)


async def test_proxy_variables_are_ignored(
    upstream: Upstream, new_caller: NewCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await new_caller().ask(CHAT)).code is None
    assert (await new_caller().ask(ANTHROPIC)).code is None
