"""Routes, one module per noun."""

from tertulia.server.routes import (
    accounts,
    attachments,
    config,
    conversations,
    files,
    health,
    live,
    messages,
    models,
    projects,
    search,
    sessions,
    turns,
    users,
)

ROUTES = (
    accounts.router,
    attachments.router,
    config.router,
    conversations.router,
    files.router,
    health.router,
    live.router,
    messages.router,
    models.router,
    projects.router,
    search.router,
    sessions.router,
    turns.router,
    users.router,
)
