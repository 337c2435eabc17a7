"""Embedders: the local process with its starts and ends, and OpenAI-compatible endpoints.

Some tests need the MiniLM model and are skipped without it; `tertulia models pull minilm` installs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tertulia import settings
from tertulia.core.errors import CannotStart
from tertulia.library.embedders import (
    IDLE_S,
    REPAIR_S,
    EmbeddingCharge,
    EmbeddingFailed,
    EndpointEmbedder,
    LocalEmbedder,
    embedder_for,
)
from tertulia.library.wordpiece import WordPieces
from tertulia.providers import embeddings, model_downloads
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.embeddings import EmbeddingEndpoint
from tertulia.providers.limits import Limits
from tests.library.bags import numbers
from tests.patience import PATIENCE_S, soon
from tests.timers import AGES, Timers
from tests.upstream.scripted import Head, Raw, Script, Stall, Upstream, refuses, vectors

HOME = settings.read(os.environ).home
needs_model = pytest.mark.skipif(
    not model_downloads.is_installed(model_downloads.get("minilm"), HOME),
    reason="run `tertulia models pull minilm` first",
)


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(HOME, os.environ)
    yield embedder
    await embedder.close()


def similarity(first: bytes, second: bytes) -> float:
    a, b = (struct.unpack(f"<{len(vector) // 2}e", vector) for vector in (first, second))
    return sum(x * y for x, y in zip(a, b, strict=True))


@needs_model
async def test_texts_with_similar_meaning_have_similar_unit_vectors(embedder: LocalEmbedder) -> None:
    cat, kitten, crash = await embedder.embed(
        ["A cat sat on the mat.", "A kitten was sitting on a rug.", "The stock market crashed in 1929."]
    )
    assert len(cat) == embedder.dimensions * 2
    assert similarity(cat, cat) == pytest.approx(1, abs=0.01)
    assert similarity(cat, kitten) > similarity(cat, crash) + 0.3


@needs_model
async def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: LocalEmbedder) -> None:
    texts = [f"{'word ' * (index % 7)}number {index}" for index in range(20)]
    together = await embedder.embed(texts)
    (alone,) = await embedder.embed([texts[13]])
    assert similarity(alone, together[13]) > 0.98
    assert embedder.starts == 1


@needs_model
async def test_a_killed_process_is_restarted_and_gives_the_same_vectors(embedder: LocalEmbedder) -> None:
    before = await embedder.embed(["a walnut"])
    assert embedder.pid is not None
    os.kill(embedder.pid, signal.SIGKILL)
    assert await embedder.embed(["a walnut"]) == before
    assert embedder.starts == 2


@needs_model
async def test_the_process_stops_when_idle_and_restarts_on_demand() -> None:
    timers = Timers()
    embedder = LocalEmbedder(HOME, os.environ, get_clock=lambda: timers)
    await embedder.embed(["a walnut"])
    timers.move(IDLE_S - 1)
    assert embedder.pid is not None
    timers.move(1)
    assert embedder.pid is None
    assert len(await embedder.embed(["a walnut"])) == 1
    await embedder.close()
    with pytest.raises(EmbeddingFailed):
        await embedder.embed(["too late"])


@needs_model
async def test_a_query_is_embedded_before_a_long_list_of_texts(embedder: LocalEmbedder) -> None:
    order: list[str] = []

    async def embed(name: str, texts: list[str], is_query: bool) -> None:
        await embedder.embed(texts, is_query=is_query)
        order.append(name)

    await embedder.embed(["awake"])
    await asyncio.gather(embed("texts", ["a long text " * 20] * 40, False), embed("query", ["what?"], True))
    assert order == ["query", "texts"]


@needs_model
async def test_a_cancelled_call_leaves_no_late_answer_for_the_next_call(embedder: LocalEmbedder) -> None:
    [cat] = await embedder.embed(["cat"])
    waiting = asyncio.create_task(embedder.embed(["a long text " * 20] * 8))
    await asyncio.sleep(0)  # the request is sent now
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert embedder.pid is None, "a running process would send its late answer to the next call"
    assert await embedder.embed(["cat"]) == (cat,)


@needs_model
@pytest.mark.skipif(sys.platform != "linux", reason="child processes are listed in /proc")
@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_process_cancelled_while_it_starts_does_not_keep_running(
    embedder: LocalEmbedder, is_cancelled: bool
) -> None:
    before = _embedding_processes()
    waiting = asyncio.create_task(embedder.embed(["a walnut"]))
    while embedder.starts == 0:  # noqa: ASYNC110
        await asyncio.sleep(0)
    if is_cancelled:
        waiting.cancel()
    else:
        await embedder.close()
    with pytest.raises((asyncio.CancelledError, EmbeddingFailed)):
        await waiting
    await (
        asyncio.get_running_loop().shutdown_default_executor()
    )  # waits until the thread that starts it is done
    assert _embedding_processes() == before


def _embedding_processes() -> set[str]:
    """The ids of the embedding processes that this process has started."""
    children = {
        pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()
    }
    return {pid for pid in children if "embed_worker" in Path(f"/proc/{pid}/cmdline").read_text()}


@needs_model
@pytest.mark.skipif(sys.platform != "linux", reason="the Linux kernel kills it")
def test_the_process_dies_when_the_server_is_killed() -> None:
    code = (
        "import asyncio, os, sys\nfrom pathlib import Path\n"
        "from tertulia.library.embedders import LocalEmbedder\n"
        "async def main():\n e = LocalEmbedder(Path(sys.argv[1]), os.environ)\n await e.embed(['x'])\n"
        " print(e.pid, flush=True)\n await asyncio.Event().wait()\nasyncio.run(main())\n"
    )
    command = [sys.executable, "-c", code, str(HOME)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        child = os.pidfd_open(int(server.stdout.readline()))
        server.kill()
    ended, _, _ = select.select([child], [], [], 5)
    os.close(child)
    assert ended


async def test_without_the_model_the_embedder_names_the_command_that_installs_it(tmp_path: Path) -> None:
    embedder = LocalEmbedder(tmp_path, {})
    assert "tertulia models pull minilm" in (embedder.unavailable_reason() or "")
    with pytest.raises(EmbeddingFailed, match="tertulia models pull minilm"):
        await embedder.embed(["x"])
    assert embedder.starts == 0


@needs_model
def test_words_are_split_into_the_tokens_that_the_model_was_trained_with() -> None:
    pieces = WordPieces(model_downloads.folder(HOME) / "minilm-l6-tokenizer.json")
    assert pieces.encode("Hello, unaffable WORLD!", 64) == [
        101,
        7592,
        1010,
        14477,
        20961,
        3468,
        2088,
        999,
        102,
    ]
    assert pieces.encode("Crème brûlée", 64) == pieces.encode("creme brulee", 64)
    assert len(pieces.encode("word " * 9_000, 256)) == 256
    assert pieces.encode("x" * 101, 64) == [101, 100, 102]
    assert pieces.encode("", 64) == [101, 102]


def test_an_invalid_endpoint_setting_stops_the_server_from_starting() -> None:
    for setting in (
        "not json",
        "[]",
        '{"base_url": "ftp://x", "model": "m", "dimensions": 8}',
        '{"base_url": "https://x/v1", "model": "m", "dimensions": 9000}',
        '{"model": 1}',
        '{"base_url": "https://x/v1", "model": "m", "dimensions": 8, "price": -1}',
        '{"base_url": "https://x/v1", "model": "m", "dimensions": 8, "price": "cheap"}',
    ):
        with pytest.raises(CannotStart, match=embeddings.VARIABLE):
            settings.read({embeddings.VARIABLE: setting})


def test_the_configured_endpoint_replaces_the_local_embedder() -> None:
    value = '{"base_url": "http://127.0.0.1:1/v1", "key": "secret", "model": "m", "dimensions": 8}'
    configured = settings.read({embeddings.VARIABLE: value})
    embedder = embedder_for(configured.embeddings, {}, Path(), LOOPBACK_ONLY)
    assert isinstance(embedder, EndpointEmbedder)
    assert embedder.dimensions == 8
    assert "secret" not in repr(configured)
    assert isinstance(embedder_for(settings.read({}).embeddings, {}, Path(), LOOPBACK_ONLY), LocalEmbedder)


# ── an endpoint


@pytest.fixture
async def endpoint_embedder(upstream: Upstream) -> AsyncIterator[EndpointEmbedder]:
    upstream.embeds = numbers
    embedder = EndpointEmbedder(endpoint_at(upstream), LOOPBACK_ONLY, query_s=PATIENCE_S)
    yield embedder
    await embedder.close()


def endpoint_at(upstream: Upstream) -> EmbeddingEndpoint:
    return EmbeddingEndpoint(f"{upstream.url}/v1", "m", 64, key="sk-walnut")


async def test_texts_are_sent_to_the_endpoint_in_batches_and_each_gets_its_own_vector(
    endpoint_embedder: EndpointEmbedder, upstream: Upstream
) -> None:
    texts = [f"text number {index}" for index in range(70)]
    vectors = await endpoint_embedder.embed(texts)
    assert [len(request.body["input"]) for request in upstream.requests] == [32, 32, 6]
    assert [text for request in upstream.requests for text in request.body["input"]] == texts
    expected = [struct.pack("<64e", *numbers(text)) for text in texts]
    similarities = [similarity(vector, other) for vector, other in zip(vectors, expected, strict=True)]
    assert similarities == pytest.approx([1.0] * 70, abs=0.01)
    request = upstream.last
    assert (request.path, request.body["model"]) == ("/v1/embeddings", "m")
    assert request.headers["authorization"] == "Bearer sk-walnut"


async def test_each_call_is_billed_with_the_tokens_that_the_endpoint_reports(upstream: Upstream) -> None:
    upstream.embeds = numbers
    bills: list[EmbeddingCharge] = []
    for price in (0.5, None):
        embedder = EndpointEmbedder(
            EmbeddingEndpoint(f"{upstream.url}/v1", "m", 64, "sk", price=price), LOOPBACK_ONLY
        )
        await embedder.embed(["a walnut"] * 40, billed=bills.append)
        await embedder.close()
    assert [(bill.model, bill.tokens, bill.cost_micros) for bill in bills] == [
        ("m", 7, 4),
        ("m", 7, 4),
        ("m", 7, None),
        ("m", 7, None),
    ]


async def test_a_call_without_a_valid_token_count_is_billed_by_an_estimate(
    endpoint_embedder: EndpointEmbedder, upstream: Upstream
) -> None:
    bills: list[EmbeddingCharge] = []
    row = json.dumps({"index": 0, "embedding": [1.0] * 64})
    for usage in ("{}", '{"prompt_tokens": 1e99}', '{"prompt_tokens": -3}', "[]", "null"):
        upstream.plays(page(f'{{"data": [{row}], "usage": {usage}}}'))
        await endpoint_embedder.embed(["a walnut falls on the grass"], billed=bills.append)
    assert [bill.tokens for bill in bills] == [6] * 5


async def test_a_vector_of_any_length_is_scaled_to_length_one(
    endpoint_embedder: EndpointEmbedder, upstream: Upstream
) -> None:
    upstream.embeds = lambda text: [3.0] * 64
    (vector,) = await endpoint_embedder.embed(["x"])
    assert similarity(vector, vector) == pytest.approx(1, abs=0.01)


def page(body: str) -> Script:
    return Head(200, {"Content-Type": "application/json"}), Raw(body.encode())


WRONG = {
    "other dimensions": vectors([[1.0] * 32]),
    "too few": vectors([]),
    "too many": vectors([[1.0] * 64] * 2),
    "the same twice": page('{"data": [{"index": 1, "embedding": []}, {"index": 1, "embedding": []}]}'),
    "not a number": vectors([[float("nan")] * 64]),
    "beyond all bounds": vectors([[float("inf")] * 64]),
    "words": page('{"data": [{"index": 0, "embedding": "hello"}]}'),
    "no data": page("{}"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_an_answer_with_wrong_vectors_is_rejected(
    endpoint_embedder: EndpointEmbedder, upstream: Upstream, case: str
) -> None:
    upstream.plays(WRONG[case])
    with pytest.raises(EmbeddingFailed) as failed:
        await endpoint_embedder.embed(["x"])
    assert failed.value.again_in_s == REPAIR_S


async def test_a_rate_limited_endpoint_is_retried_after_the_time_it_states(
    endpoint_embedder: EndpointEmbedder, upstream: Upstream
) -> None:
    upstream.plays(refuses(429, retry_after="600"))
    with pytest.raises(EmbeddingFailed) as failed:
        await endpoint_embedder.embed(["x"])
    assert failed.value.again_in_s == 600
    upstream.plays(refuses(401, {"error": {"message": "Wrong key: sk-walnut"}}))
    with pytest.raises(EmbeddingFailed) as failed:
        await endpoint_embedder.embed(["x"])
    assert failed.value.again_in_s == REPAIR_S
    assert "sk-walnut" not in failed.value.message


@pytest.mark.parametrize("is_query", [True, False])
async def test_a_call_to_a_silent_endpoint_times_out(
    upstream: Upstream, timers: Timers, is_query: bool
) -> None:
    upstream.plays((Stall(),))
    # Each case has one limit that ends the call; the other one is never reached.
    text_s, query_s = (AGES, 5.0) if is_query else (30.0, AGES)
    limits = Limits(first_byte_s=text_s, idle_s=text_s, total_s=AGES)
    embedder = EndpointEmbedder(endpoint_at(upstream), LOOPBACK_ONLY, limits, query_s=query_s)
    embedding = asyncio.create_task(embedder.embed(["x"], is_query=is_query))
    request = await upstream.wait_for_request()
    with pytest.raises(EmbeddingFailed):
        await timers.move_until_done(embedding)
    async with soon():
        await request.closed.wait()
    await embedder.close()


async def test_after_a_query_timed_out_others_fail_at_once_until_a_call_succeeds(
    upstream: Upstream, timers: Timers
) -> None:
    upstream.embeds = numbers
    upstream.plays((Stall(),))
    limits = Limits(first_byte_s=AGES, idle_s=AGES, total_s=AGES)
    embedder = EndpointEmbedder(endpoint_at(upstream), LOOPBACK_ONLY, limits, query_s=5.0, query_pause_s=AGES)
    waiting = asyncio.create_task(embedder.embed(["x"], is_query=True))
    await upstream.wait_for_request()
    with pytest.raises(EmbeddingFailed, match="in time"):
        await timers.move_until_done(waiting)
    with pytest.raises(EmbeddingFailed, match="in time"):
        await embedder.embed(["x"], is_query=True)
    assert len(upstream.requests) == 1
    upstream.plays()
    await embedder.embed(["a text"])
    assert len(await embedder.embed(["x"], is_query=True)) == 1
    await embedder.close()


async def test_an_unreachable_endpoint_raises_embedding_failed() -> None:
    endpoint = EmbeddingEndpoint("http://127.0.0.1:1/v1", "m", 8)
    embedder = EndpointEmbedder(endpoint, LOOPBACK_ONLY)
    with pytest.raises(EmbeddingFailed):
        await embedder.embed(["x"])
    await embedder.close()
