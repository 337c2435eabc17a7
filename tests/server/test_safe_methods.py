"""Reading changes nothing: every GET, HEAD and OPTIONS there is, by someone who is signed in (SE 3)."""

from __future__ import annotations

from tertulia.server.access import Access
from tests.server.cast import gather_cast
from tests.server.requests import HTTP, request_to
from tests.world import World


async def test_reading_changes_nothing(world: World) -> None:
    """The one thing a read may ever write is when a session was last used, every ten minutes."""
    cast = await gather_cast(world)
    asked = {entry.path: request_to(entry, cast.almas) for entry in HTTP if entry.method == "GET"}
    answered = set()
    async with cast.untouched():
        for path, request in asked.items():
            for method in ("GET", "HEAD", "OPTIONS"):
                answer = await cast.alma.client.request(method, request.path, params=request.params)
                if answer.status_code == 200:
                    answered.add((method, path))
        for path in ("/", "/new", "/nothing.js"):
            await cast.alma.client.get(path)
    reads = [e for e in HTTP if e.method in ("GET", "HEAD") and e.access is not Access.ADMIN]
    assert answered == {(entry.method, entry.path) for entry in reads}
