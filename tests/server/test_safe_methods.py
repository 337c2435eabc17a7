"""Safe methods change nothing: every GET, HEAD and OPTIONS, sent by a signed-in user (SE 3)."""

from __future__ import annotations

from tertulia.server.access import Access
from tests.server.cast import gather_cast
from tests.server.requests import HTTP, request_to
from tests.world import World


async def test_safe_methods_change_nothing(world: World) -> None:
    """A read may only record when its session was last used, at most every ten minutes."""
    cast = await gather_cast(world)
    requests = {entry.path: request_to(entry, cast.almas) for entry in HTTP if entry.method == "GET"}
    successful = set()
    async with cast.untouched():
        for path, request in requests.items():
            for method in ("GET", "HEAD", "OPTIONS"):
                answer = await cast.alma.client.request(method, request.path, params=request.params)
                if answer.status_code == 200:
                    successful.add((method, path))
        for path in ("/", "/new", "/nothing.js"):
            await cast.alma.client.get(path)
    reads = [e for e in HTTP if e.method in ("GET", "HEAD") and e.access is not Access.ADMIN]
    assert successful == {(entry.method, entry.path) for entry in reads}
