"""Error types: every failure whose message is shown to a person.

TertuliaError            code = the class name in snake case; message = a sentence that says what to do next
├── Malformed            the request cannot be read
├── NotSignedIn          no credential, or one that no longer holds
├── Forbidden            the actor may see it, but may not do this
│   ├── WrongOrigin
│   └── SetupTokenNeeded
├── NotFound             missing, or not visible to the actor: the error is the same for both
├── Conflict             the current state does not allow the request
│   ├── AlreadySetUp
│   ├── EmailTaken
│   ├── TurnReused
│   └── NothingToContinue
├── VersionConflict      the client's version is out of date: someone changed it since
├── TooLarge
│   └── QuotaSpent       the person's files have used up their quota
├── WrongType            the content type is wrong: send JSON
├── RangeNotSatisfiable  the requested range is beyond the file's end; carries size_bytes
├── Invalid              the request can be read, but its values are not allowed
│   ├── UnknownModel
│   ├── UnknownSetting
│   └── WeakPassword
├── TooMany              the rate limit is reached; carries retry_after_s
│   ├── TooManyTurns
│   └── TooManyAttempts
├── UnknownHost
├── Busy                 try again soon; carries retry_after_s
├── StorageFull
├── StorageFailed        the disk or the database file is unreliable
└── CannotStart          the server prints the reason and exits
    ├── DatabaseInUse
    └── DatabaseTooNew
"""

from __future__ import annotations

import re


class TertuliaError(Exception):
    """The base class: a message for a person and a stable code for a program."""

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


class VersionConflict(TertuliaError): ...


class TooLarge(TertuliaError): ...


class QuotaSpent(TooLarge): ...


class WrongType(TertuliaError): ...


class RangeNotSatisfiable(TertuliaError):
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
