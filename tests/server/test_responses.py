"""Large responses are compressed if the client accepts gzip."""

from __future__ import annotations


async def test_the_list_of_models_is_compressed_for_clients_that_accept_gzip(ada):
    plain = await ada.client.get("/api/models", headers={"Accept-Encoding": "identity"})
    packed = await ada.client.get("/api/models", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.num_bytes_downloaded < len(plain.content) / 4
    assert packed.json() == plain.json()


async def test_a_small_response_is_not_compressed(ada):
    answer = await ada.client.get("/api/health", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers
