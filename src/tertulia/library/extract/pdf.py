"""PDF text extraction: the text of each page under a line with its page number."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract.errors import NoTextFound, Truncated, Unreadable

if TYPE_CHECKING:
    from pypdf import PageObject

SHARE = 0.8
"""The share of the time limit after which reading stops, so that the pages read so far are kept."""


def text(
    file: BinaryIO, limits: FileLimits, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every small error
    deadline = monotonic() + SHARE * limits.parse_s
    has_text, unreadable = False, 0
    for number, page in enumerate(_pages(file), start=1):
        if number > limits.pdf_pages or monotonic() >= deadline:
            raise Truncated(f"Only its first {number - 1:,} pages can be searched.")
        page_text = _text_of(page)
        unreadable += page_text is None
        if page_text and page_text.strip():
            has_text = True
            yield f"[Page {number}]\n{page_text.strip()}\n\n"
    _must_have_text(has_text, unreadable)


def _must_have_text(has_text: bool, unreadable: int) -> None:
    if unreadable and has_text:
        raise Truncated(f"{unreadable:,} of its pages cannot be read; they may be damaged.")
    if unreadable:
        raise Unreadable("The pages of this PDF cannot be read; they may be damaged.")
    if not has_text:
        raise NoTextFound("This PDF holds no text, only pictures of pages.")


def _pages(file: BinaryIO) -> Iterator[PageObject]:
    from pypdf import PdfReader  # slow to import, and needed only in the worker process
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
    """The text of a page; None if the page cannot be read, so that the other pages are still read."""
    try:
        return page.extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the parser raises anything for a broken page
        return None
