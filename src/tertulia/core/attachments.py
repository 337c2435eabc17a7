"""Attachments: files brought along with one message; kept with the project, and not among its files."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.errors import Invalid
from tertulia.core.files import clean_path

PICTURE_KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What is shown as a picture, in a page and to a model."""
ATTACHMENTS_LIMIT = 20
"""How many one message brings along."""
UNSENT_KEPT_MS = 86_400_000
"""An attachment that no message has taken stays this long."""


@dataclass(frozen=True, slots=True)
class Attachment:
    id: str
    name: str
    mime_type: str
    size_bytes: int
    content_hash: str
    """SHA-256 of its bytes, in hex."""
    width: int | None = None
    """Pixels of a picture, as far as its first bytes tell."""
    height: int | None = None

    @property
    def is_picture(self) -> bool:
        return self.mime_type in PICTURE_KINDS


def clean_file_name(text: str) -> str:
    """The last part of whatever a device calls the file; where it lay there is nobody's business."""
    name = text.replace("\\", "/").rstrip("/").rpartition("/")[2].strip()
    if name in ("", ".", ".."):
        raise Invalid("An attachment has a name, like plan.md.")
    return clean_path(name)
