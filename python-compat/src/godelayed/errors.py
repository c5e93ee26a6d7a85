"""The errors of the package, by kind. All of them derive from DelayedError."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from .text import lines, one_line


class DelayedError(Exception):
    """The base of all errors of this package. An error of exactly this class is an unexpected answer of Redis."""

    def __str__(self) -> str:
        """Returns one line: an id may contain any characters, and this escapes control characters."""
        return one_line(super().__str__())


class ArgumentsError(DelayedError, TypeError):
    """Arguments or options that cannot be sent, or are invalid. Nothing was sent."""


class RangeError(ArgumentsError, OverflowError):
    """An integer that does not fit into 64 bits. Nothing was sent."""


class DuplicateError(DelayedError):
    """Another task has the id or holds the lock. `id` names it; nothing was enqueued."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message)
        self.id = id


class FullError(DelayedError):
    """Redis refuses writes because its memory is full or it cannot persist. Nothing was written."""


class UnavailableError(DelayedError):
    """Redis cannot be reached: there is no connection, none is free, Redis is still starting, or a command that only
    reads got no answer.

    Nothing was changed.
    """


class UnknownError(DelayedError):
    """The connection broke during a command that changes something: Redis may or may not have executed it."""


class BatchError(DelayedError):
    """delay_many failed after some batches: the first `sent` tasks were enqueued, the others were not, or may have been
    if the cause is an UnknownError."""

    def __init__(self, message: str, sent: int) -> None:
        super().__init__(message)
        self.sent = sent


class NoIdError(DelayedError):
    """The task carries no id by which it could be found."""


class NoResultError(DelayedError):
    """There is no result and there will be none: nothing is kept of the task, or its result could not be kept."""


class WaitTimeoutError(DelayedError, TimeoutError):
    """The timeout was over before the task had ended."""


class EndedError(DelayedError):
    """The task has ended, so it cannot be cancelled."""


class NotArchivedError(DelayedError):
    """The task is not archived. Where completed tasks would do as well, it is not completed either."""


class NoEntryError(DelayedError):
    """The queue has no periodic entry of that name."""


class RemoteTraceback(Exception):  # noqa: N818
    """The cause of a TaskError: it shows where the task has failed, above the traceback of who asked for its result."""

    def __str__(self) -> str:
        return f'\n"""\n{lines(str(self.args[0]))}"""'


class TaskError(DelayedError):
    """A task has failed for good.

    `id` names the task. `state` is archived, dropped or canceled; `reason` is why: failed, arguments, expired, deaths,
    …; `text` is the text of its last error, '' if there is none. `attempts` counts the runs that failed, `deaths` the
    runs that ended because the worker died. `at` is when the task ended, None if unknown. `stack` is the traceback of
    its last run, or the stack of a panic in Go, up to 4 KiB; '' if there is none. It is also the `__cause__`, so that
    tracebacks of this error show it.
    """

    def __init__(
        self,
        id: str,
        state: str,
        reason: str,
        text: str,
        attempts: int,
        deaths: int,
        at: datetime.datetime | None,
        stack: str = '',
    ) -> None:
        super().__init__(f'task {id} is {state} ({reason}){": " if text else ""}{text}')
        self.id, self.state, self.reason, self.text = id, state, reason, text
        self.attempts, self.deaths, self.at, self.stack = attempts, deaths, at, stack
        if stack:
            self.__cause__ = RemoteTraceback(stack)


class CanceledError(TaskError):
    """A task was cancelled before it had ended."""


class StillRunningError(DelayedError):
    """The worker was stopped while tasks still ran that do not end.

    Their claims remain until the process exits. `functions` names the functions of these tasks.
    """

    def __init__(self, functions: Sequence[str]) -> None:
        super().__init__(f'tasks still run: {", ".join(functions)}')
        self.functions = list(functions)
