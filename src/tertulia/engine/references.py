"""References: checks the messages that a question replies to and quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tertulia.core.errors import Conflict, Invalid
from tertulia.core.labels import with_names
from tertulia.core.messages import Message, Quote
from tertulia.core.quoting import stands_in
from tertulia.core.users import Actor
from tertulia.store import messages
from tertulia.store.database import Tx


def check(
    tx: Tx, actor: Actor, conversation_id: str, reply_to_id: str | None, quotes: Sequence[Quote]
) -> None:
    """Refuses a reference to a message that the conversation does not show, own or inherited."""
    if reply_to_id is not None:
        _shown_message(tx, actor, conversation_id, reply_to_id, "The message you reply to")
    for quote in quotes:
        message = _shown_message(tx, actor, conversation_id, quote.message_id, "A message you quote")
        content = with_names(message.content, message.read_replies)
        if quote.text not in content and not stands_in(quote.text, content):
            raise Invalid("The words you quote are not in that message. Select them again.")


def _shown_message(tx: Tx, actor: Actor, conversation_id: str, message_id: str, what: str) -> Message:
    message = messages.get(tx, actor, message_id)
    if not messages.is_shown(tx, conversation_id, message):
        raise Conflict(f"{what} is not part of this conversation.")
    return message


@dataclass(frozen=True, slots=True)
class VisibleReferences:
    reply_to_id: str | None
    quotes: tuple[Quote, ...]


def visible_references(tx: Tx, actor: Actor, conversation_id: str, question: Message) -> VisibleReferences:
    """The references of a question from elsewhere that this conversation shows too."""

    def is_shown(message_id: str) -> bool:
        message = messages.find(tx, actor, message_id)
        return message is not None and messages.is_shown(tx, conversation_id, message)

    reply_to_id = question.reply_to_id
    return VisibleReferences(
        reply_to_id if reply_to_id is not None and is_shown(reply_to_id) else None,
        tuple(quote for quote in question.quotes if is_shown(quote.message_id)),
    )
