"""What can go wrong, by kind. Everything derives from DelayedError."""

from __future__ import annotations


class DelayedError(Exception):
    """The base of all errors of this package."""


class ArgumentsError(DelayedError, TypeError):
    """Arguments or options that cannot travel, or do not fit. Nothing was sent."""


class RangeError(ArgumentsError, OverflowError):
    """An integer that does not fit 64 bits. Nothing was sent."""


class DuplicateError(DelayedError):
    """Another task has the id or holds the lock. `id` names it; nothing was enqueued."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id


class FullError(DelayedError):
    """Redis refuses writes because its memory is full or it cannot persist. Nothing was enqueued."""


class UnavailableError(DelayedError):
    """There is no connection to Redis, or none is free. Nothing was sent."""


class UnknownError(DelayedError):
    """The connection broke while Redis was asked: what was asked for may or may not have been done."""


class BatchError(DelayedError):
    """A call for many tasks that failed on its way: the first `sent` stand, the others do not (or are unknown: see the cause)."""

    def __init__(self, message: str, sent: int) -> None:
        super().__init__(message)
        self.sent = sent
