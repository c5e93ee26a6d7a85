"""What can go wrong, by kind. Everything derives from DelayedError."""

from __future__ import annotations

import datetime

from .text import one_line


class DelayedError(Exception):
    """The base of all errors of this package. Itself it is an answer of Redis that nobody has expected."""

    def __str__(self) -> str:
        """Is one line: an id has whatever characters its producer chose."""
        return one_line(super().__str__())


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
    """Redis refuses writes because its memory is full or it cannot persist. Nothing was written."""


class UnavailableError(DelayedError):
    """Redis cannot be asked: there is no connection, none is free, it has only just started, or a question got no
    answer.

    Nothing was changed.
    """


class UnknownError(DelayedError):
    """The connection broke while Redis was told to change something: that may or may not have been done."""


class BatchError(DelayedError):
    """A call for many tasks that failed on its way: the first `sent` stand, the others do not (or are unknown: see the
    cause)."""

    def __init__(self, message: str, sent: int) -> None:
        super().__init__(message)
        self.sent = sent


class NoIdError(DelayedError):
    """The task carries no id that others could find it by."""


class NoResultError(DelayedError):
    """There is no result, and none will come: nothing is kept of the task, or its result could not be kept."""


class WaitTimeoutError(DelayedError, TimeoutError):
    """The task had not ended when the time to wait was over."""


class EndedError(DelayedError):
    """The task has ended, so it cannot be cancelled."""


class NotArchivedError(DelayedError):
    """The task is neither archived nor, where that is enough, completed."""


class TaskError(DelayedError):
    """A task has failed for good.

    `id` names it. `state` is what became of it: archived, dropped or canceled; `reason` is why: failed, arguments,
    expired, deaths, …; `text` is that of its last error, '' if there is none. `attempts` are the runs that failed,
    `deaths` the runs that ended with their worker. `at` is when it ended, None if nobody knows.
    """

    def __init__(
        self, id: str, state: str, reason: str, text: str, attempts: int, deaths: int, at: datetime.datetime | None
    ) -> None:
        super().__init__(f'task {id} is {state} ({reason}){": " if text else ""}{text}')
        self.id, self.state, self.reason, self.text = id, state, reason, text
        self.attempts, self.deaths, self.at = attempts, deaths, at


class CanceledError(TaskError):
    """A task was cancelled before it had ended."""
