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
    personas,
    projects,
    search,
    sessions,
    tables,
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
    personas.router,
    projects.router,
    search.router,
    sessions.router,
    tables.router,
    turns.router,
    users.router,
)
