"""Everything that can go wrong in a way a person is told about.

TertuliaError            code = the class name in snake case; message = a sentence that says what to do next
├── Malformed            the request cannot be read
├── NotSignedIn          no credential, or one that no longer holds
├── Forbidden            visible, but not allowed
│   ├── WrongOrigin
│   └── SetupTokenNeeded
├── NotFound             not there, or not visible: the two are never told apart
├── Conflict             the world is not as the request assumed
│   ├── AlreadySetUp
│   ├── EmailTaken
│   ├── TurnReused
│   └── NothingToContinue
├── Stale                what was read has been changed since
├── TooLarge
│   └── QuotaSpent       no room left for this person's files
├── WrongType            send JSON
├── NoSuchPart           the file is shorter than the range asked for; carries size_bytes
├── Invalid              readable, but not acceptable
│   ├── UnknownModel
│   ├── UnknownSetting
│   └── WeakPassword
├── TooMany              slow down; carries retry_after_s
│   ├── TooManyTurns
│   └── TooManyAttempts
├── UnknownHost
├── Busy                 try again soon; carries retry_after_s
├── StorageFull
├── StorageFailed        the disk or the file cannot be trusted any more
└── CannotStart          the program says why and exits
    ├── DatabaseInUse
    └── DatabaseTooNew
"""

from __future__ import annotations

import re


class TertuliaError(Exception):
    """The root: a message for a person and a stable code for a program."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def code(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()


class Malformed(TertuliaError): ...


class NotSignedIn(TertuliaError): ...


class Forbidden(TertuliaError): ...


class WrongOrigin(Forbidden): ...


class SetupTokenNeeded(Forbidden): ...


class NotFound(TertuliaError): ...


class Conflict(TertuliaError): ...


class AlreadySetUp(Conflict): ...


class EmailTaken(Conflict): ...


class TurnReused(Conflict): ...


class NothingToContinue(Conflict): ...


class Stale(TertuliaError): ...


class TooLarge(TertuliaError): ...


class QuotaSpent(TooLarge): ...


class WrongType(TertuliaError): ...


class NoSuchPart(TertuliaError):
    def __init__(self, message: str, size_bytes: int = 0) -> None:
        super().__init__(message)
        self.size_bytes = size_bytes


class Invalid(TertuliaError): ...


class UnknownModel(Invalid): ...


class UnknownSetting(Invalid): ...


class WeakPassword(Invalid): ...


class TooMany(TertuliaError):
    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TooManyTurns(TooMany): ...


class TooManyAttempts(TooMany): ...


class UnknownHost(TertuliaError): ...


class Busy(TertuliaError):
    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StorageFull(TertuliaError): ...


class StorageFailed(TertuliaError): ...


class CannotStart(TertuliaError): ...


class DatabaseInUse(CannotStart): ...


class DatabaseTooNew(CannotStart): ...
