"""The ASGI application: routes, guard and pages around an open house."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Route

from tertulia import __version__
from tertulia.app import open_app
from tertulia.providers.egress import Egress
from tertulia.server import errors
from tertulia.server.passwords import Passwords
from tertulia.server.route_inventory import inventory
from tertulia.server.routes import ROUTES
from tertulia.server.security_middleware import SecurityMiddleware, parse_host
from tertulia.server.state import ServerState
from tertulia.server.throttle import Throttle
from tertulia.server.uploads import takes_bytes
from tertulia.server.web_files import WebFiles
from tertulia.settings import LOOPBACK, Settings


def build(
    settings: Settings,
    environ: Mapping[str, str],
    setup_token: str,
    egress: Egress,
    passwords: Passwords | None = None,
) -> FastAPI:
    """The whole application; the house opens with its first breath and closes with its last."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_app(settings, environ, egress) as tertulia:
            app.state.door = ServerState(
                tertulia, Throttle(time.monotonic), setup_token, passwords or Passwords()
            )
            yield

    app = bare(lifespan)
    pages = WebFiles(web_folder())
    app.router.routes.append(Route("/{path:path}", pages.get, methods=["GET", "HEAD"], name="pages"))
    app.add_middleware(
        SecurityMiddleware,
        hosts=own_names(settings),
        policy=pages.policy,
        public_url=settings.public_url,
        takes_bytes=takes_bytes,
    )
    return app


def bare(lifespan: object = None) -> FastAPI:
    """Routes alone: enough for the inventory and the OpenAPI document."""
    app = FastAPI(
        title="Tertulia",
        version=__version__,
        lifespan=lifespan,  # type: ignore[arg-type]
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    for router in ROUTES:
        app.router.routes.extend(router.routes)  # flat, so that the inventory sees each of them
    errors.install(app)
    inventory(app)
    return app


def own_names(settings: Settings) -> set[str]:
    """The names this server answers to."""
    names = {*LOOPBACK, "[::1]", *(name.lower() for name in settings.allowed_hosts)}
    public = parse_host(settings.public_url.partition("://")[2].partition("/")[0])
    if public:
        names.add(public.name)
    if settings.host not in ("0.0.0.0", "::"):
        names.add(settings.host.lower())
    return names


def web_folder() -> Path | None:
    """Packed into the wheel, or built beside the sources."""
    here = Path(__file__).resolve().parent.parent
    candidates = (here / "web", here.parent.parent / "web" / "build")
    return next((folder for folder in candidates if (folder / "index.html").is_file()), None)
