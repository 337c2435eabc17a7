"""ASGI application: builds the FastAPI app with its routes, the security middleware and the web files."""

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
from tertulia.server.origin_check import parse_host
from tertulia.server.passwords import Passwords
from tertulia.server.route_inventory import inventory
from tertulia.server.routes import ROUTES
from tertulia.server.security_middleware import SecurityMiddleware
from tertulia.server.state import ServerState
from tertulia.server.throttle import Throttle
from tertulia.server.uploads import is_upload
from tertulia.server.web_files import WebFiles
from tertulia.settings import LOOPBACK, Settings


def build(
    settings: Settings,
    environ: Mapping[str, str],
    setup_token: str,
    egress: Egress,
    passwords: Passwords | None = None,
) -> FastAPI:
    """The complete application. Its lifespan opens Tertulia at the start and closes it at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_app(settings, environ, egress) as tertulia:
            app.state.server = ServerState(
                tertulia, Throttle(time.monotonic), setup_token, passwords or Passwords()
            )
            yield

    app = bare(lifespan)
    web_files = WebFiles(web_folder())
    app.router.routes.append(Route("/{path:path}", web_files.get, methods=["GET", "HEAD"], name="pages"))
    app.add_middleware(
        SecurityMiddleware,
        hosts=own_hosts(settings),
        policy=web_files.policy,
        public_url=settings.public_url,
        is_upload=is_upload,
    )
    return app


def bare(lifespan: object = None) -> FastAPI:
    """The routes alone, without a database: enough for the route inventory and the OpenAPI document."""
    app = FastAPI(
        title="Tertulia",
        version=__version__,
        lifespan=lifespan,  # type: ignore[arg-type]
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    for router in ROUTES:
        app.router.routes.extend(router.routes)  # flat, so that the inventory sees each route
    errors.install(app)
    inventory(app)
    return app


def own_hosts(settings: Settings) -> set[str]:
    """The host names that this server answers to."""
    names = {*LOOPBACK, "[::1]", *(name.lower() for name in settings.allowed_hosts)}
    public = parse_host(settings.public_url.partition("://")[2].partition("/")[0])
    if public:
        names.add(public.name)
    if settings.host not in ("0.0.0.0", "::"):
        names.add(settings.host.lower())
    return names


def web_folder() -> Path | None:
    """The built web interface: inside the installed package, or next to the sources; None if not built."""
    here = Path(__file__).resolve().parent.parent
    candidates = (here / "web", here.parent.parent / "web" / "build")
    return next((folder for folder in candidates if (folder / "index.html").is_file()), None)
