"""What a task can raise to say what shall become of it, and what is raised in it when it must end."""

from __future__ import annotations

import datetime

from .task import Seconds, milliseconds


class Outcome(Exception):  # noqa: N818
    """The base of what a task raises to say what shall become of it.

    The outermost holds: raise X from Snooze(60) means Snooze.
    """


class Discard(Outcome):
    """The task is not tried again: it is archived at once, whatever retries are left."""


class Drop(Outcome):
    """The task ends as if it had succeeded, except that no result is kept.

    Nothing is archived and no failure counted.
    """


class _Wait(Outcome):
    def __init__(self, seconds: Seconds, message: str | None = None) -> None:
        self.milliseconds = max(0, milliseconds(seconds, 'seconds'))
        name = type(self).__name__
        super().__init__(message or f'{name} {datetime.timedelta(milliseconds=self.milliseconds)}')


class RetryIn(_Wait):
    """The task has failed and is tried again in so many seconds (or a timedelta), in place of what the backoff says.

    It spends a retry.
    """


class Snooze(_Wait):
    """The task runs again in so many seconds (or a timedelta).

    It is no failure and spends no retry; TTL and deadline bound it.
    """


class TaskInterrupted(BaseException):  # noqa: N818
    """Raised in a task that must end, in worker processes.

    It is no Exception, so that except Exception does not swallow it.

    A task that does not end within the worker's kill_after seconds is killed with its process.
    """


class TaskTimeout(TaskInterrupted):
    """The task has run for its timeout, or past its deadline. It counts as failed."""


class TaskCanceled(TaskInterrupted):
    """The task was cancelled. It is not tried again."""


class TaskLost(TaskInterrupted):
    """The worker's heartbeat had expired: another worker may run the task. Whatever it does now does not count."""


class WorkerStopping(TaskInterrupted):
    """The worker stops. The task is given back, without a retry being spent."""


INTERRUPTS: dict[str, type[TaskInterrupted]] = {
    'timeout': TaskTimeout,
    'canceled': TaskCanceled,
    'lost': TaskLost,
    'stopping': WorkerStopping,
}


def said(error: BaseException | None) -> Outcome | None:
    """Returns what a task says by an error, or by the one that it was raised from."""
    for _ in range(100):
        if error is None or isinstance(error, Outcome):
            return error
        error = error.__cause__
    return None
