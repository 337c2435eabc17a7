"""Streaming XML parser (SAX) for office files: rejects document types, entities and external references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol
from xml.parsers import expat

from tertulia.library.extract.errors import Unreadable

BLOCK = 64 << 10
DEPTH = 500
RELATION = "relation"
"""The key of the attribute that refers to another part of the file."""


class XmlListener(Protocol):
    """A SAX handler: receives elements by name without namespace and returns the text it extracts."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def data(self, text: str) -> None: ...
    def take(self) -> list[str]: ...


def parse_xml(file: BinaryIO, listener: XmlListener) -> Iterator[str]:
    """Parses the file and yields the text that the handler extracts, while the file is being read."""
    parser = _parser(listener)
    try:
        while block := file.read(BLOCK):
            parser.Parse(block, False)
            yield from listener.take()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Unreadable(f"Its XML is broken ({error}).") from None
    yield from listener.take()


def _parser(listener: XmlListener) -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    level = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal level
        level += 1
        if level > DEPTH:
            raise Unreadable("Its XML is nested too deeply.")
        listener.start(name.rpartition("}")[2], {_bare(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal level
        level -= 1
        listener.end(name.rpartition("}")[2])

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = listener.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.ExternalEntityRefHandler = _refuse
    return parser


def _bare(key: str) -> str:
    """The attribute's name without namespace.

    The id of a relation gets the key RELATION, since an element may also have an id of its own.
    """
    namespace, _, name = key.rpartition("}")
    return RELATION if name == "id" and namespace.endswith("/relationships") else name


def _refuse(*_: object) -> int:
    raise Unreadable("Its XML declares entities or refers to other files, which an office file never does.")
