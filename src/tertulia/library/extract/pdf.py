"""PDF: the text of its pages, each under a line that says which it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract.outcome import Enough, NoText, Unreadable

if TYPE_CHECKING:
    from pypdf import PageObject

SHARE = 0.8
"""Of the time there is: then it is better to keep what was read than to lose it with the rest."""


def text(
    file: BinaryIO, limits: FileLimits, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it remarks on every blemish
    until = monotonic() + SHARE * limits.parse_s
    has_text, spoilt = False, 0
    for number, page in enumerate(_pages(file), start=1):
        if number > limits.pdf_pages or monotonic() >= until:
            raise Enough(f"Only its first {number - 1:,} pages can be searched.")
        written = _text_of(page)
        spoilt += written is None
        if written and written.strip():
            has_text = True
            yield f"[Page {number}]\n{written.strip()}\n\n"
    _must_have_text(has_text, spoilt)


def _must_have_text(has_text: bool, spoilt: int) -> None:
    if spoilt and has_text:
        raise Enough(f"{spoilt:,} of its pages cannot be read; they may be damaged.")
    if spoilt:
        raise Unreadable("The pages of this PDF cannot be read; they may be damaged.")
    if not has_text:
        raise NoText("This PDF holds no text, only pictures of pages.")


def _pages(file: BinaryIO) -> Iterator[PageObject]:
    from pypdf import PdfReader  # heavy, and of use only in the process that reads files
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("This PDF is locked with a password.")
        yield from reader.pages
    except (FileNotDecryptedError, DependencyError):
        raise Unreadable("This PDF is locked with a password.") from None
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
        raise Unreadable(f"This PDF is damaged ({type(error).__name__}).") from None
    except RecursionError:
        raise Unreadable("This PDF is damaged: its parts refer to each other in a circle.") from None


def _text_of(page: PageObject) -> str | None:
    """None for a page that cannot be read, which leaves the others alone."""
    try:
        return page.extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever the parser meets in a broken page
        return None
