"""Multipart forms: reads forms with files part by part as they arrive, within limits."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from tertulia.core.errors import Malformed, TooLarge

PARTS_LIMIT = 1000
HEADER_BYTES = 64 << 10
"""The most bytes in a header of a part. Even a very long file name is read, to name it in the error."""
HEADERS = 8
AROUND_BYTES = 1 << 20
"""The most bytes outside of file contents: boundaries, headers and fields."""
FIELD_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class FormPart:
    name: str
    filename: str | None


class FormReader:
    """Yields one part after the other. A part ends where the next begins or where the body ends."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise Malformed("The form has no boundary in its Content-Type.")
        self._body = body
        self._events: deque[FormPart | bytes] = deque()
        self._headers: dict[str, str] = {}
        self._field, self._value = "", ""
        self._parts = 0
        self._around = 0
        self._is_over = False
        self._has_ended = False
        """True after the last boundary."""
        self._parser = self._create_parser(boundary)

    def _create_parser(self, boundary: bytes) -> MultipartParser:
        try:
            return MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_end": self._on_end,
                },
                max_header_count=HEADERS,
                max_header_size=HEADER_BYTES,
            )
        except FormParserError:
            raise Malformed("The form's boundary is too long.") from None

    # ── reading parts

    async def parts(self) -> AsyncIterator[FormPart]:
        while (event := await self._next()) is not None:
            if isinstance(event, FormPart):
                yield event

    async def content(self) -> AsyncIterator[bytes]:
        """The bytes of the part that was yielded last."""
        while (event := await self._next()) is not None:
            if isinstance(event, FormPart):
                self._events.appendleft(event)
                return
            yield event

    async def text(self) -> str:
        """The content of a short field."""
        content = b""
        async for data in self.content():
            content += data
            if len(content) > FIELD_BYTES:
                raise TooLarge("A field of the form is too long.")
        return content.decode("utf-8", "replace")

    async def _next(self) -> FormPart | bytes | None:
        while not self._events:
            if self._is_over:
                return None
            await self._parse_next_chunk()
        return self._events.popleft()

    async def _parse_next_chunk(self) -> None:
        data = await anext(self._body, None)
        if data is None:
            self._is_over = True
            if not self._has_ended:
                raise Malformed("The form ends in the middle.")
            return
        self._around += len(data)
        try:
            self._parser.write(data)
        except FormParserError:
            raise Malformed("The form cannot be read.") from None
        if self._around > AROUND_BYTES:
            raise TooLarge("The form's fields and headers are larger than its files.")

    # ── callbacks of the parser

    def _on_part_begin(self) -> None:
        self._headers, self._parts = {}, self._parts + 1
        if self._parts > PARTS_LIMIT:
            raise TooLarge(f"A form holds at most {PARTS_LIMIT:,} parts. Send the rest in another one.")

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end].decode("latin-1")

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end].decode("latin-1")

    def _on_header_end(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field, self._value = "", ""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        name, filename = options.get(b"name", b""), options.get(b"filename")
        self._events.append(FormPart(_unescaped(name), None if filename is None else _unescaped(filename)))

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._around -= end - start
        self._events.append(data[start:end])

    def _on_end(self) -> None:
        self._has_ended = True


def _unescaped(raw: bytes) -> str:
    """Browsers write names in UTF-8 and percent-encode quotes and line ends."""
    text = raw.decode("utf-8", "replace")
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
