"""Attachments: files sent with one message. They belong to the project, but not to its files."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.errors import Invalid
from tertulia.core.files import clean_path

PICTURE_KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The MIME types that the interface and models show as an image."""
ATTACHMENTS_LIMIT = 20
"""The most attachments of one message."""
UNSENT_KEPT_MS = 86_400_000
"""An attachment that no message uses is deleted after this time."""


@dataclass(frozen=True, slots=True)
class Attachment:
    id: str
    name: str
    mime_type: str
    size_bytes: int
    content_hash: str
    """SHA-256 of the content, in hex."""
    width: int | None = None
    """Pixels of an image; None if its first bytes do not say."""
    height: int | None = None

    @property
    def is_picture(self) -> bool:
        return self.mime_type in PICTURE_KINDS


def clean_file_name(text: str) -> str:
    """The last part of the client's file path; the folders on the client are private."""
    name = text.replace("\\", "/").rstrip("/").rpartition("/")[2].strip()
    if name in ("", ".", ".."):
        raise Invalid("An attachment has a name, like plan.md.")
    return clean_path(name)
