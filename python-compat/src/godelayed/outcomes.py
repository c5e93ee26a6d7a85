"""What a task can raise to say what happens to it next, and what is raised in a task that must end."""

from __future__ import annotations

import datetime

from .times import Seconds, milliseconds


class Outcome(Exception):  # noqa: N818
    """The base of what a task raises to say what happens to it next.

    The outermost one counts: raise Snooze(60) from X means Snooze.
    """


class Archive(Outcome):
    """The task is not tried again: it is archived at once, even if it has retries left."""


class Drop(Outcome):
    """The task ends as if it had succeeded, but without keeping a result.

    It is not archived and does not count as a failure.
    """


class _Wait(Outcome):
    def __init__(self, seconds: Seconds, message: str | None = None) -> None:
        self.milliseconds = max(0, milliseconds(seconds, 'seconds'))
        name = type(self).__name__
        super().__init__(message or f'{name} {datetime.timedelta(milliseconds=self.milliseconds)}')


class RetryIn(_Wait):
    """The task has failed and is tried again after this many seconds (or a timedelta), instead of the usual backoff.

    This uses up one retry.
    """


class Snooze(_Wait):
    """The task runs again after this many seconds (or a timedelta).

    That is no failure and uses up no retry; the TTL and the deadline of the task limit it.
    """


class TaskInterrupted(BaseException):  # noqa: N818
    """Raised in a task that must end, in worker processes.

    It does not derive from Exception, so that except Exception does not catch it.

    A task that does not end within the worker's kill_after seconds is killed together with its process.
    """


class TaskTimeout(TaskInterrupted):
    """The task has run for longer than its timeout, or past its deadline. It counts as failed."""


class TaskCanceled(TaskInterrupted):
    """The task was cancelled. It is not tried again."""


class TaskLost(TaskInterrupted):
    """The worker's heartbeat had expired, so another worker may run the task. This run does not count."""


class WorkerStopping(TaskInterrupted):
    """The worker stops. The task is given back and keeps all its retries."""


INTERRUPTS: dict[str, type[TaskInterrupted]] = {
    'timeout': TaskTimeout,
    'canceled': TaskCanceled,
    'lost': TaskLost,
    'stopping': WorkerStopping,
}


def said(error: BaseException | None) -> Outcome | None:
    """Returns the Outcome that a task raised, or the one from which the error was raised; None if there is none."""
    for _ in range(100):
        if error is None or isinstance(error, Outcome):
            return error
        error = error.__cause__
    return None
