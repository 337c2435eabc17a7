"""The embedder: a process that starts when it is needed, dies with the server, and may die without harm.

The weights are fetched by `tertulia models pull minilm`; without them some of these are skipped.
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
from tertulia.library.embed import (
    MUCH_LATER_S,
    Bill,
    EmbeddingFailed,
    EndpointEmbedder,
    LocalEmbedder,
    embedder_for,
)
from tertulia.library.wordpiece import WordPieces
from tertulia.providers import assets, embeddings
from tertulia.providers.embeddings import EmbeddingEndpoint
from tertulia.providers.limits import Limits
from tests.library.bags import numbers
from tests.patience import PATIENCE_S, soon
from tests.timers import AGES, Timers
from tests.upstream.scripted import Head, Raw, Script, Stall, Upstream, refuses, vectors

HOME = settings.read(os.environ).home
needs_weights = pytest.mark.skipif(
    not assets.is_installed(assets.get("minilm"), HOME), reason="run `tertulia models pull minilm` first"
)


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    made = LocalEmbedder(HOME, os.environ)
    yield made
    await made.close()


def likeness(one: bytes, other: bytes) -> float:
    a, b = (struct.unpack(f"<{len(vector) // 2}e", vector) for vector in (one, other))
    return sum(x * y for x, y in zip(a, b, strict=True))


@needs_weights
async def test_what_means_the_same_is_near_and_vectors_have_length_one(embedder: LocalEmbedder) -> None:
    cat, kitten, crash = await embedder.embed(
        ["A cat sat on the mat.", "A kitten was sitting on a rug.", "The stock market crashed in 1929."]
    )
    assert len(cat) == embedder.dimensions * 2
    assert likeness(cat, cat) == pytest.approx(1, abs=0.01)
    assert likeness(cat, kitten) > likeness(cat, crash) + 0.3


@needs_weights
async def test_a_text_has_the_same_vector_alone_and_in_company(embedder: LocalEmbedder) -> None:
    texts = [f"{'word ' * (index % 7)}number {index}" for index in range(20)]
    together = await embedder.embed(texts)
    (alone,) = await embedder.embed([texts[13]])
    assert likeness(alone, together[13]) > 0.98
    assert embedder.starts == 1


@needs_weights
async def test_a_process_that_is_killed_is_replaced_and_nobody_notices(embedder: LocalEmbedder) -> None:
    before = await embedder.embed(["a walnut"])
    assert embedder.pid is not None
    os.kill(embedder.pid, signal.SIGKILL)
    assert await embedder.embed(["a walnut"]) == before
    assert embedder.starts == 2


@needs_weights
async def test_it_ends_when_it_has_nothing_to_do_and_comes_back(embedder: LocalEmbedder) -> None:
    idle = LocalEmbedder(HOME, os.environ, idle_s=0.0)
    await idle.embed(["a walnut"])
    async with soon():
        while idle.pid is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert len(await idle.embed(["a walnut"])) == 1
    await idle.close()
    with pytest.raises(EmbeddingFailed):
        await idle.embed(["too late"])


@needs_weights
async def test_a_question_goes_before_a_heap_of_texts(embedder: LocalEmbedder) -> None:
    order: list[str] = []

    async def embed(name: str, texts: list[str], is_query: bool) -> None:
        await embedder.embed(texts, is_query=is_query)
        order.append(name)

    await embedder.embed(["awake"])
    await asyncio.gather(embed("heap", ["a long text " * 20] * 40, False), embed("question", ["what?"], True))
    assert order == ["question", "heap"]


@needs_weights
async def test_whoever_stops_waiting_leaves_no_answer_behind_for_the_next(embedder: LocalEmbedder) -> None:
    [cat] = await embedder.embed(["cat"])
    waiting = asyncio.create_task(embedder.embed(["a long text " * 20] * 8))
    await asyncio.sleep(0)  # from here on it is being asked
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert embedder.pid is None, "what was asked would answer whoever asks next"
    assert await embedder.embed(["cat"]) == (cat,)


@needs_weights
@pytest.mark.skipif(sys.platform != "linux", reason="where one can see who has which children")
@pytest.mark.parametrize("is_called_off", [True, False])
async def test_one_that_is_not_wanted_any_more_while_it_starts_does_not_stay(
    embedder: LocalEmbedder, is_called_off: bool
) -> None:
    before = _embedding()
    waiting = asyncio.create_task(embedder.embed(["a walnut"]))
    while embedder.starts == 0:  # noqa: ASYNC110
        await asyncio.sleep(0)
    if is_called_off:
        waiting.cancel()
    else:
        await embedder.close()
    with pytest.raises((asyncio.CancelledError, EmbeddingFailed)):
        await waiting
    await asyncio.get_running_loop().shutdown_default_executor()  # whatever starts it has done its work
    assert _embedding() == before


def _embedding() -> set[str]:
    """The processes of this one that embed."""
    children = {
        pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()
    }
    return {pid for pid in children if "embed_worker" in Path(f"/proc/{pid}/cmdline").read_text()}


@needs_weights
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it")
def test_it_dies_with_a_server_that_is_killed() -> None:
    code = (
        "import asyncio, os, sys\nfrom pathlib import Path\n"
        "from tertulia.library.embed import LocalEmbedder\n"
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


async def test_without_weights_it_says_what_to_do(tmp_path: Path) -> None:
    bare = LocalEmbedder(tmp_path, {})
    assert "tertulia models pull minilm" in (bare.unavailable_reason() or "")
    with pytest.raises(EmbeddingFailed, match="tertulia models pull minilm"):
        await bare.embed(["x"])
    assert bare.starts == 0


@needs_weights
def test_words_are_cut_as_the_model_learned_them() -> None:
    pieces = WordPieces(assets.folder(HOME) / "minilm-l6-tokenizer.json")
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


def test_an_endpoint_that_cannot_be_read_stops_the_start() -> None:
    for written in (
        "not json",
        "[]",
        '{"base_url": "ftp://x", "model": "m", "dimensions": 8}',
        '{"base_url": "https://x/v1", "model": "m", "dimensions": 9000}',
        '{"model": 1}',
        '{"base_url": "https://x/v1", "model": "m", "dimensions": 8, "price": -1}',
        '{"base_url": "https://x/v1", "model": "m", "dimensions": 8, "price": "cheap"}',
    ):
        with pytest.raises(CannotStart, match=embeddings.VARIABLE):
            settings.read({embeddings.VARIABLE: written})


def test_an_endpoint_is_used_when_it_is_named() -> None:
    written = '{"base_url": "http://127.0.0.1:1/v1", "key": "secret", "model": "m", "dimensions": 8}'
    read = settings.read({embeddings.VARIABLE: written})
    made = embedder_for(read.embeddings, {}, Path())
    assert isinstance(made, EndpointEmbedder)
    assert made.dimensions == 8
    assert "secret" not in repr(read)
    assert isinstance(embedder_for(settings.read({}).embeddings, {}, Path()), LocalEmbedder)


# ── an endpoint


@pytest.fixture
async def remote(upstream: Upstream) -> AsyncIterator[EndpointEmbedder]:
    upstream.embeds = numbers
    made = EndpointEmbedder(there(upstream), {}, question_s=PATIENCE_S)
    yield made
    await made.close()


def there(upstream: Upstream) -> EmbeddingEndpoint:
    return EmbeddingEndpoint(f"{upstream.url}/v1", "m", 64, key="sk-walnut")


async def test_an_endpoint_is_asked_in_batches_and_each_text_gets_its_own_vector(
    remote: EndpointEmbedder, upstream: Upstream
) -> None:
    texts = [f"text number {index}" for index in range(70)]
    made = await remote.embed(texts)
    assert [len(seen.body["input"]) for seen in upstream.requests] == [32, 32, 6]
    assert [text for seen in upstream.requests for text in seen.body["input"]] == texts
    wanted = [struct.pack("<64e", *numbers(text)) for text in texts]
    assert [likeness(one, other) for one, other in zip(made, wanted, strict=True)] == pytest.approx(
        [1.0] * 70, abs=0.01
    )
    seen = upstream.last
    assert (seen.path, seen.body["model"]) == ("/v1/embeddings", "m")
    assert seen.headers["authorization"] == "Bearer sk-walnut"


async def test_each_call_of_an_endpoint_is_billed_with_the_tokens_it_counted(upstream: Upstream) -> None:
    upstream.embeds = numbers
    bills: list[Bill] = []
    for price in (0.5, None):
        made = EndpointEmbedder(EmbeddingEndpoint(f"{upstream.url}/v1", "m", 64, "sk", price=price), {})
        await made.embed(["a walnut"] * 40, billed=bills.append)
        await made.close()
    assert [(bill.model, bill.tokens, bill.cost_micros) for bill in bills] == [
        ("m", 7, 4),
        ("m", 7, 4),
        ("m", 7, None),
        ("m", 7, None),
    ]


async def test_an_endpoint_that_does_not_count_is_billed_by_an_estimate(
    remote: EndpointEmbedder, upstream: Upstream
) -> None:
    bills: list[Bill] = []
    row = json.dumps({"index": 0, "embedding": [1.0] * 64})
    for usage in ("{}", '{"prompt_tokens": 1e99}', '{"prompt_tokens": -3}', "[]", "null"):
        upstream.plays(page(f'{{"data": [{row}], "usage": {usage}}}'))
        await remote.embed(["a walnut falls on the grass"], billed=bills.append)
    assert [bill.tokens for bill in bills] == [6] * 5


async def test_whatever_its_length_a_vector_is_made_one_long(
    remote: EndpointEmbedder, upstream: Upstream
) -> None:
    upstream.embeds = lambda text: [3.0] * 64
    (made,) = await remote.embed(["x"])
    assert likeness(made, made) == pytest.approx(1, abs=0.01)


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


@pytest.mark.parametrize("what", WRONG)
async def test_what_are_not_the_vectors_it_promised_is_refused(
    remote: EndpointEmbedder, upstream: Upstream, what: str
) -> None:
    upstream.plays(WRONG[what])
    with pytest.raises(EmbeddingFailed) as failed:
        await remote.embed(["x"])
    assert failed.value.again_in_s == MUCH_LATER_S


async def test_an_endpoint_that_is_asked_too_much_says_when_to_come_back(
    remote: EndpointEmbedder, upstream: Upstream
) -> None:
    upstream.plays(refuses(429, retry_after="600"))
    with pytest.raises(EmbeddingFailed) as failed:
        await remote.embed(["x"])
    assert failed.value.again_in_s == 600
    upstream.plays(refuses(401, {"error": {"message": "Wrong key: sk-walnut"}}))
    with pytest.raises(EmbeddingFailed) as failed:
        await remote.embed(["x"])
    assert failed.value.again_in_s == MUCH_LATER_S
    assert "sk-walnut" not in failed.value.message


@pytest.mark.parametrize("is_query", [True, False])
async def test_a_silent_endpoint_is_not_waited_for_long(
    upstream: Upstream, timers: Timers, is_query: bool
) -> None:
    upstream.plays((Stall(),))
    # The other limit is never met: each alone has to end it, and nothing else can happen before.
    text_s, question_s = (AGES, 5.0) if is_query else (30.0, AGES)
    limits = Limits(first_byte_s=text_s, idle_s=text_s, total_s=AGES)
    hasty = EndpointEmbedder(there(upstream), {}, limits, question_s=question_s)
    asking = asyncio.create_task(hasty.embed(["x"], is_query=is_query))
    seen = await upstream.heard()
    with pytest.raises(EmbeddingFailed):
        await timers.move_until_done(asking)
    async with soon():
        await seen.closed.wait()
    await hasty.close()


async def test_once_a_question_has_waited_in_vain_no_other_does_until_something_was_embedded(
    upstream: Upstream, timers: Timers
) -> None:
    upstream.embeds = numbers
    upstream.plays((Stall(),))
    limits = Limits(first_byte_s=AGES, idle_s=AGES, total_s=AGES)
    made = EndpointEmbedder(there(upstream), {}, limits, question_s=5.0, rest_s=AGES)
    waiting = asyncio.create_task(made.embed(["x"], is_query=True))
    await upstream.heard()
    with pytest.raises(EmbeddingFailed, match="in time"):
        await timers.move_until_done(waiting)
    with pytest.raises(EmbeddingFailed, match="in time"):
        await made.embed(["x"], is_query=True)
    assert len(upstream.requests) == 1
    upstream.plays()
    await made.embed(["a text"])
    assert len(await made.embed(["x"], is_query=True)) == 1
    await made.close()


async def test_an_endpoint_that_cannot_be_reached_fails_in_words() -> None:
    endpoint = EmbeddingEndpoint("http://127.0.0.1:1/v1", "m", 8)
    made = EndpointEmbedder(endpoint, {})
    with pytest.raises(EmbeddingFailed):
        await made.embed(["x"])
    await made.close()
