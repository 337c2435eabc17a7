"""Attachments: what was brought along stands right before its message, whole or not at all.

It stands there in the same bytes when the message is asked and when it has become history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tertulia.context.budget import PER_MESSAGE, picture_tokens
from tertulia.context.fences import fenced
from tertulia.context.material import OVER_BUDGET, TAKEN_OUT, AttachedText, CountTokens, Material
from tertulia.core.attachments import Attachment
from tertulia.core.messages import Message
from tertulia.core.prompts import Picture
from tertulia.core.receipts import Layer, LeftOut, Segment

PICTURE_BYTES = 5_000_000
PICTURE_SIDE = 8_000
"""What the strictest of the providers takes."""
PICTURES_BYTES = 15_000_000
"""Of all pictures of one prompt together."""
DENSEST = 16
"""Characters to a token, at most, in a text worth showing; one that is longer still is not even counted."""


SHOWN = "attached"
"""Why a piece of a prompt is there that holds what was brought along."""


@dataclass(slots=True)
class Room:
    """What is left for a prompt, while it is being filled."""

    tokens: int
    picture_bytes: int = PICTURES_BYTES

    def takes(self, segment: Segment, picture_bytes: int = 0) -> bool:
        """Whether it fits; if so, its room is taken."""
        size = segment.tokens + PER_MESSAGE
        if size > self.tokens or picture_bytes > self.picture_bytes:
            return False
        self.tokens -= size
        self.picture_bytes -= picture_bytes
        return True


@dataclass(frozen=True, slots=True)
class Attached:
    segments: tuple[Segment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def attached(message: Message, layer: Layer, material: Material, room: Room, count: CountTokens) -> Attached:
    """What the message brought along, as far as this model can be shown it and there is room."""
    segments: list[Segment] = []
    left_out: list[LeftOut] = []
    for attachment in message.attachments:
        if attachment.id in material.without:
            left_out.append(_left(attachment, layer, message.round_number, TAKEN_OUT))
            continue
        show = _picture if attachment.is_picture else _text
        shown = show(attachment, layer, message.round_number, material, room, count)
        if isinstance(shown, LeftOut):
            left_out.append(shown)
            shown = _note(attachment, layer, message.round_number, count)
            if not room.takes(shown):
                continue
        segments.append(shown)
    return Attached(tuple(segments), tuple(left_out))


def shown_texts(segments: Iterable[Segment], material: Material) -> tuple[str, ...]:
    """What was brought along as text and is among these pieces of the prompt."""
    shown = {segment.source_id for segment in segments if segment.reason == SHOWN}
    return tuple(one.text for one in material.attached if one.id in shown)


def _picture(
    attachment: Attachment, layer: Layer, number: int, material: Material, room: Room, count: CountTokens
) -> Segment | LeftOut:
    if reason := _why_hidden(attachment, material):
        return _left(attachment, layer, number, reason)
    text = f"Attached, {attachment.name}: an image, shown with this message."
    tokens = count(text) + picture_tokens(attachment.width, attachment.height)
    picture = Picture(attachment.content_hash, attachment.mime_type)
    piece = _piece(attachment, layer, number, text, tokens, picture)
    if room.takes(piece, attachment.size_bytes):
        return piece
    return _left(attachment, layer, number, OVER_BUDGET, tokens)


def _why_hidden(picture: Attachment, material: Material) -> str | None:
    """Why a picture cannot be shown to this model at all."""
    if not material.model.abilities.vision:
        return "this model cannot see images"
    if picture.size_bytes > PICTURE_BYTES or max(picture.width or 0, picture.height or 0) > PICTURE_SIDE:
        return (
            f"models take images of up to {PICTURE_BYTES // 1_000_000} MB and {PICTURE_SIDE:,} pixels a side"
        )
    return None


def _text(
    attachment: Attachment, layer: Layer, number: int, material: Material, room: Room, count: CountTokens
) -> Segment | LeftOut:
    read = _read(attachment, material)
    if not read.text:
        return _left(attachment, layer, number, read.reason or "it holds no text")
    if len(read.text) > room.tokens * DENSEST:
        return _left(attachment, layer, number, OVER_BUDGET, len(read.text) // 4)
    but = f" ({read.reason.rstrip('.')})" if read.reason else ""
    text = f"Attached, {attachment.name}{but}:\n{fenced(read.text)}"
    piece = _piece(attachment, layer, number, text, count(text))
    if room.takes(piece):
        return piece
    return _left(attachment, layer, number, OVER_BUDGET, piece.tokens)


def _read(attachment: Attachment, material: Material) -> AttachedText:
    found = (one for one in material.attached if one.id == attachment.id)
    return next(found, AttachedText(attachment.id, "", "it could not be read"))


def _piece(
    attachment: Attachment,
    layer: Layer,
    number: int,
    text: str,
    tokens: int,
    picture: Picture | None = None,
) -> Segment:
    return Segment(
        layer=layer,
        role="user",
        text=text,
        reason=SHOWN,
        tokens=tokens,
        source_id=attachment.id,
        round_number=number,
        picture=picture,
        name=attachment.name,
    )


def _left(attachment: Attachment, layer: Layer, number: int, reason: str, tokens: int = 0) -> LeftOut:
    return LeftOut(layer, reason, tokens, attachment.id, number, attachment.name)


def _note(attachment: Attachment, layer: Layer, number: int, count: CountTokens) -> Segment:
    """So that a model does not talk as if nothing had been there."""
    text = f"(Attached, but not shown to you: {attachment.name}.)"
    return Segment(
        layer, "user", text, "attached, not shown", count(text), attachment.id, number, name=attachment.name
    )
