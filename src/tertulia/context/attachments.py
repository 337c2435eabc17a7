"""Attachments in prompts: an attachment comes right before its message, complete or not at all.

Its bytes are the same when the message is asked and when it is part of an earlier round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tertulia.context.budget import PER_MESSAGE, picture_tokens
from tertulia.context.fences import fenced
from tertulia.context.prompt_inputs import AttachedText, CountTokens, IncludedFile, PromptInputs
from tertulia.core.attachments import Attachment
from tertulia.core.messages import Message
from tertulia.core.prompts import Picture
from tertulia.core.receipts import Layer, LeftOut, LeftOutReason, Segment, SegmentReason, SourceLocation

PICTURE_BYTES = 5_000_000
PICTURE_SIDE = 8_000
"""Pixels; together with PICTURE_BYTES the limits of the strictest provider."""
PICTURES_BYTES = 15_000_000
"""The most bytes of all images of one prompt together."""
DENSEST = 16
"""Characters per token, at most, in a text worth showing. A text longer than this times the free tokens is
left out without counting its tokens."""


@dataclass(slots=True)
class TokenAllowance:
    """The tokens and image bytes that are still free while a prompt is built."""

    tokens: int
    picture_bytes: int = PICTURES_BYTES

    def takes(self, segment: Segment, picture_bytes: int = 0) -> bool:
        """Reserves space for the segment if it fits; returns whether it does."""
        size = segment.tokens + PER_MESSAGE
        if size > self.tokens or picture_bytes > self.picture_bytes:
            return False
        self.tokens -= size
        self.picture_bytes -= picture_bytes
        return True


@dataclass(frozen=True, slots=True)
class AttachedSegments:
    segments: tuple[Segment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def attached(
    message: Message, layer: Layer, inputs: PromptInputs, allowance: TokenAllowance, count: CountTokens
) -> AttachedSegments:
    """The segments of a message's attachments, as far as this model can read them and they fit."""
    segments: list[Segment] = []
    left_out: list[LeftOut] = []
    for attachment in message.attachments:
        if attachment.id in inputs.excluded_ids:
            left_out.append(_left_out(attachment, layer, message.round_number, LeftOutReason.REMOVED_BY_USER))
            continue
        render = _picture_segment if attachment.is_picture else _text_segment
        segment = render(attachment, layer, message.round_number, inputs, allowance, count)
        if isinstance(segment, LeftOut):
            left_out.append(segment)
            segment = _hidden_note(attachment, layer, message.round_number, count)
            if not allowance.takes(segment):
                continue
        segments.append(segment)
    return AttachedSegments(tuple(segments), tuple(left_out))


def shown_texts(segments: Iterable[Segment], inputs: PromptInputs) -> tuple[str, ...]:
    """The attachment texts among these segments."""
    shown_ids = {segment.source_id for segment in segments if segment.reason is SegmentReason.ATTACHED}
    return tuple(
        attachment.text for attachment in inputs.files.attachment_texts if attachment.id in shown_ids
    )


def _picture_segment(
    attachment: Attachment,
    layer: Layer,
    number: int,
    inputs: PromptInputs,
    allowance: TokenAllowance,
    count: CountTokens,
) -> Segment | LeftOut:
    if hidden := _why_picture_hidden(attachment, inputs):
        return _left_out(attachment, layer, number, hidden.reason, limit=hidden.limit)
    text = f"Attached, {attachment.name}: an image, shown with this message."
    tokens = count(text) + picture_tokens(attachment.width, attachment.height)
    picture = Picture(attachment.content_hash, attachment.mime_type)
    segment = _segment(attachment, layer, number, text, tokens, picture)
    if allowance.takes(segment, attachment.size_bytes):
        return segment
    return _left_out(attachment, layer, number, LeftOutReason.OVER_BUDGET, tokens)


@dataclass(frozen=True, slots=True)
class _Hidden:
    reason: LeftOutReason
    limit: int | None = None


def _why_picture_hidden(picture: Attachment, inputs: PromptInputs) -> _Hidden | None:
    """The reason that this model cannot receive the picture; None if it can."""
    if not inputs.model.abilities.vision:
        return _Hidden(LeftOutReason.NO_VISION)
    if picture.size_bytes > PICTURE_BYTES:
        return _Hidden(LeftOutReason.IMAGE_BYTES, PICTURE_BYTES)
    if max(picture.width or 0, picture.height or 0) > PICTURE_SIDE:
        return _Hidden(LeftOutReason.IMAGE_SIDE, PICTURE_SIDE)
    return None


def _text_segment(
    attachment: Attachment,
    layer: Layer,
    number: int,
    inputs: PromptInputs,
    allowance: TokenAllowance,
    count: CountTokens,
) -> Segment | LeftOut:
    extracted = _extracted_text(attachment, inputs)
    if not extracted.text:
        return _left_out(attachment, layer, number, why_no_text(extracted), note=extracted.reason or "")
    if len(extracted.text) > allowance.tokens * DENSEST:
        return _left_out(attachment, layer, number, LeftOutReason.OVER_BUDGET, len(extracted.text) // 4)
    caveat = f" ({extracted.reason.rstrip('.')})" if extracted.reason else ""
    text = f"Attached, {attachment.name}{caveat}:\n{fenced(extracted.text)}"
    segment = _segment(attachment, layer, number, text, count(text))
    if allowance.takes(segment):
        return segment
    return _left_out(attachment, layer, number, LeftOutReason.OVER_BUDGET, segment.tokens)


def why_no_text(file: AttachedText | IncludedFile) -> LeftOutReason:
    """Why a file without text is left out. The reason that the extraction gives becomes the note."""
    if file.is_over_budget:
        return LeftOutReason.OVER_BUDGET
    return LeftOutReason.UNREADABLE if file.reason else LeftOutReason.NO_TEXT


def _extracted_text(attachment: Attachment, inputs: PromptInputs) -> AttachedText:
    matches = (text for text in inputs.files.attachment_texts if text.id == attachment.id)
    return next(matches, AttachedText(attachment.id, "", "It could not be read."))


def _segment(
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
        reason=SegmentReason.ATTACHED,
        tokens=tokens,
        source_id=attachment.id,
        round_number=number,
        picture=picture,
        location=SourceLocation(file_name=attachment.name),
    )


def _left_out(
    attachment: Attachment,
    layer: Layer,
    number: int,
    reason: LeftOutReason,
    tokens: int = 0,
    *,
    limit: int | None = None,
    note: str = "",
) -> LeftOut:
    location = SourceLocation(file_name=attachment.name)
    return LeftOut(layer, reason, tokens, attachment.id, number, location, limit=limit, note=note)


def _hidden_note(attachment: Attachment, layer: Layer, number: int, count: CountTokens) -> Segment:
    """Tells the model that an attachment exists that it cannot see, so that it does not answer as if there
    were none."""
    text = f"(Attached, but not shown to you: {attachment.name}.)"
    return Segment(
        layer,
        "user",
        text,
        SegmentReason.ATTACHED_NOT_SHOWN,
        count(text),
        attachment.id,
        number,
        location=SourceLocation(file_name=attachment.name),
    )
