"""Reading changes nothing: every GET, HEAD and OPTIONS there is, by someone who is signed in (SE 3)."""

from __future__ import annotations

from tertulia.server.access import Access
from tests.server.cast import gather_cast
from tests.server.requests import HTTP, request_to
from tests.world import World


async def test_reading_changes_nothing(world: World) -> None:
    """The one thing a read may ever write is when a session was last used, every ten minutes."""
    cast = await gather_cast(world)
    asked = [request_to(entry, cast.almas) for entry in HTTP if entry.method == "GET"]
    answers = []
    async with cast.untouched():
        for request in asked:
            for method in ("GET", "HEAD", "OPTIONS"):
                answers.append(
                    (await cast.alma.client.request(method, request.path, params=request.params)).status_code
                )
        for path in ("/", "/new", "/nothing.js"):
            await cast.alma.client.get(path)
    assert answers.count(200) == len([e for e in HTTP if e.method == "GET" and e.access is not Access.ADMIN])
