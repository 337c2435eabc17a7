"""The title job: names a conversation after the first question asked in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tertulia.core.conversations import Conversation
from tertulia.core.jobs import NameConversation
from tertulia.core.messages import Message
from tertulia.core.models import Model, TokenCount, cost_micros
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.core.titles import cleaned, title_of
from tertulia.engine.dependencies import Dependencies
from tertulia.providers.interface import Completed, ModelRequest, ProviderError, TextDelta
from tertulia.store import conversations, messages, usage
from tertulia.store.database import Tx

_ASK = (
    "Name the conversation that begins with the text below, in its language, in two to six words. "
    "Answer with the name alone: no quotation marks, no full stop.\n\n{text}"
)
_TEXT_LIMIT = 2000
_OUTPUT_LIMIT = 60
TIMEOUT_S = 20.0
"""Other jobs wait for this one."""


async def title(dependencies: Dependencies, job: NameConversation, timeout_s: float = TIMEOUT_S) -> None:
    """Lets the cheapest capable model write the title; without one, the question's beginning is the title."""
    first = await dependencies.db.read(lambda tx: _first_asked(tx, job.conversation_id))
    if first is None:
        return
    conversation, asked = first
    name, count, model = await _choose_title(dependencies, asked.content, timeout_s)

    def save(tx: Tx) -> None:
        conversations.set_title_if_unnamed(tx, job.conversation_id, name)
        if model is not None:
            cost = cost_micros(count, model.prices)
            usage.add(tx, usage.of_job(conversation, "title", model, count, cost))

    await dependencies.db.write(save)


def _first_asked(tx: Tx, conversation_id: str) -> tuple[Conversation, Message] | None:
    """The unnamed conversation and its own first question; a branch is not named after inherited rounds."""
    conversation = conversations.find_unnamed(tx, conversation_id)
    asked = messages.first_asked(tx, conversation_id)
    return None if conversation is None or asked is None else (conversation, asked)


async def _choose_title(
    dependencies: Dependencies, question: str, timeout_s: float
) -> tuple[str, TokenCount, Model | None]:
    model = cheapest_capable(dependencies.providers.models(), dependencies.providers.is_ready)
    if model is None:
        return title_of(question), TokenCount(), None
    prompt = Prompt("", (PromptMessage("user", _ASK.format(text=question[:_TEXT_LIMIT])),))
    try:
        async with asyncio.timeout(timeout_s):
            answer, count = await _answer(dependencies, ModelRequest(model, prompt, _OUTPUT_LIMIT))
    except (ProviderError, TimeoutError):
        return title_of(question), TokenCount(), None
    return cleaned(answer) or title_of(question), count, model


async def _answer(dependencies: Dependencies, call: ModelRequest) -> tuple[str, TokenCount]:
    text, count = "", TokenCount()
    async for item in dependencies.providers.stream(call):
        match item:
            case TextDelta(more):
                text += more
            case Completed(_, counted):
                count = counted
    return text, count


def cheapest_capable(
    models: Sequence[Model], is_ready: Callable[[Model], bool] = lambda model: True
) -> Model | None:
    """The cheapest model with a known price, except for demo and thinking models."""
    capable = [
        m for m in models if not m.is_demo and m.prices.output_micros is not None and not m.abilities.thinking
    ]
    by_price = sorted(capable, key=lambda m: (m.prices.output_micros, m.key))
    return next(filter(is_ready, by_price), None)
