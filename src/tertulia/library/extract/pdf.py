"""PDF: the text of its pages, each under a line that says which it is."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from tertulia.library.extract.outcome import Enough, NoText, Unreadable

if TYPE_CHECKING:
    from pypdf import PageObject

PAGES_LIMIT = 5000


def text(file: BinaryIO) -> Iterator[str]:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it remarks on every blemish
    pages = _pages(file)
    has_text = False
    for number, page in enumerate(pages, start=1):
        if number > PAGES_LIMIT:
            raise Enough(f"Only its first {PAGES_LIMIT:,} pages can be looked up.")
        written = _text_of(page).strip()
        has_text = has_text or bool(written)
        if written:
            yield f"[Page {number}]\n{written}\n\n"
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
        raise Unreadable("This PDF refers to itself without end.") from None


def _text_of(page: PageObject) -> str:
    """A page that cannot be read leaves the others alone."""
    try:
        return page.extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever the parser meets in a broken page
        return ""
